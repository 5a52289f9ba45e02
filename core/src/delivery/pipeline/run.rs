//! Step 2: which revision each environment is to have.
//!
//! A run is one revision on its way. It begins when the first environment runs another revision healthily,
//! or when somebody asks for it by the annotation `sluice.dev/retry`. A retry is a run of the same revision
//! with another number, so that nothing of the earlier one has to be undone.

use sluice_crds::Pipeline;
use sluice_crds::pipeline::{Algorithm, PromotionRecord, marks};

use super::environment::{Environment, Standing};
use super::key::{Lineage, next_run};
use super::memory::Memory;
use super::reasons::is_recalled;
use crate::revision::Revision;
use crate::time::clock::Now;

/// What is on its way.
#[derive(Debug)]
pub(super) struct Runs {
    /// The newest run. None: there has never been one.
    pub(super) newest: Option<Wanted>,
    /// Why the first environment does not run one revision healthily.
    pub(super) unsteady: Option<String>,
    /// The value of the annotation that has been dealt with.
    pub(super) retry: Option<String>,
    /// Whether this look begins a run because somebody asked for it.
    is_retry: bool,
    /// The greatest number that is taken.
    greatest: Option<i64>,
}

/// A revision that an environment is to have, in a run.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) run: i64,
    pub(super) revision: Revision,
    pub(super) lineage: Lineage,
}

impl Wanted {
    fn new(run: i64, revision: Revision, memory: &Memory) -> Self {
        let lineage = Lineage::new(revision.clone(), &memory.merges);
        Self {
            run,
            revision,
            lineage,
        }
    }

    /// None: its revision makes no sense, as in a status that somebody else has written.
    fn read(run: i64, revision: &str, memory: &Memory) -> Option<Self> {
        Some(Self::new(run, Revision::parse(revision).ok()?, memory))
    }

    fn of_record(record: &PromotionRecord, memory: &Memory) -> Option<Self> {
        Self::read(record.run, &record.revision, memory)
    }
}

impl Runs {
    /// `may_begin`: whether a run may begin in this look.
    pub(super) fn new(
        object: &Pipeline,
        first: Option<&Environment<'_>>,
        memory: &Memory,
        may_begin: bool,
        now: Now,
    ) -> Self {
        let status = object.status.as_ref();
        let annotations = object.metadata.annotations.as_ref();
        let asked = annotations.and_then(|all| all.get(marks::RETRY)).cloned();
        let handled = status.and_then(|status| status.last_handled_retry.clone());
        let present = memory.run.as_ref();
        let present = present.and_then(|(run, text)| Wanted::read(*run, text, memory));
        let mut runs = Self {
            newest: present,
            unsteady: None,
            retry: handled.clone(),
            is_retry: false,
            greatest: memory.greatest,
        };
        let Some(first) = first else {
            return runs;
        };
        let candidate = match runs.newest.as_ref() {
            Some(run) if first.standing(&run.lineage) == Standing::Passed => Ok(None),
            run => first.steady().map(|revision| {
                let is_new = run.is_none_or(|run| !run.lineage.has(revision));
                is_new.then(|| revision.clone())
            }),
        };
        let other = match candidate {
            Err(why) => {
                runs.unsteady = Some(why);
                return runs;
            }
            Ok(other) => other,
        };
        if !may_begin || memory.waits.is_some() {
            return runs;
        }
        // Where the status is lost, it is not known whether the annotation has been dealt with: as it would
        // undo what people have decided since, it counts as if it had.
        let is_known = status.is_some_and(|status| status.run.is_some());
        let is_retry = is_known && asked.is_some() && asked != handled;
        let same = runs.newest.as_ref().filter(|_| is_retry);
        let revision = other.or_else(|| same.map(|run| run.revision.clone()));
        if let Some(revision) = revision {
            let id = runs.next(now);
            runs.newest = Some(Wanted::new(id, revision, memory));
        }
        runs.is_retry = is_retry;
        runs.retry = asked.or(handled);
        runs
    }

    fn next(&mut self, now: Now) -> i64 {
        let id = next_run(now.at, self.greatest);
        self.greatest = Some(id);
        id
    }

    /// The revision that the environment at `place` is to have. The first one has what people give it.
    ///
    /// With the algorithm `run` it is that of the newest run. With `pairwise` it is what the environment
    /// before it runs steadily; while that runs nothing steadily, it is what it was.
    pub(super) fn wanted(
        &mut self,
        algorithm: Algorithm,
        place: usize,
        all: &[Environment<'_>],
        memory: &Memory,
        now: Now,
    ) -> Option<Wanted> {
        let before = match (algorithm, place) {
            (_, 0) => return None,
            (Algorithm::Run, _) | (Algorithm::Pairwise, 1) => return self.newest.clone(),
            (Algorithm::Pairwise, _) => all.get(place - 1)?,
        };
        let record = memory.records.get(&all.get(place)?.spec.name);
        let known = record.filter(|record| !is_recalled(record));
        let known = known.and_then(|record| Wanted::of_record(record, memory));
        if let Some(known) = &known
            && !self.is_retry
            && before.standing(&known.lineage) == Standing::Passed
        {
            return Some(known.clone());
        }
        match before.steady() {
            Err(_) => known,
            Ok(revision) => {
                let same = known.filter(|known| known.lineage.has(revision));
                let revision = same.map_or_else(|| revision.clone(), |same| same.revision);
                // Nothing is asked for before the first run, nor while nothing may be begun.
                self.newest.as_ref()?;
                let id = self.next(now);
                Some(Wanted::new(id, revision, memory))
            }
        }
    }
}
