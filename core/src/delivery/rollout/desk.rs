//! What a look works with: what is given, the plan, and the workloads as they are.

use jiff::Timestamp;
use serde_json::Value;
use sluice_crds::rollout::{Run, Size, WorkloadRecord, WorkloadReference};
use sluice_crds::{Rollout, RolloutStatus};

use super::app::{self, NotFound};
use super::applied::AppliedAgain;
use super::claim::{Claim, Ended};
use super::course::{called, count, present};
use super::given::{Given, Member, Name, Pod, Sight, references};
use super::identity;
use super::plan::Plan;
use super::why::Why;
use super::workload::{Kind, Workload};
use crate::time::clock::Now;
use crate::time::span::later;

/// What a look works with.
#[derive(Clone, Copy)]
pub(super) struct Desk<'g> {
    pub(super) given: &'g Given,
    pub(super) plan: &'g Plan,
    pub(super) again: &'g AppliedAgain,
}

/// A workload of a run. None: it is gone, or another object has its name.
pub(super) type OfRun<'g> = (&'g WorkloadRecord, Option<Member<'g>>);

impl<'g> Desk<'g> {
    pub(super) fn object(&self) -> &'g Rollout {
        &self.given.object
    }

    pub(super) fn now(&self) -> Now {
        self.given.now
    }

    pub(super) fn at(&self) -> Timestamp {
        self.given.now.at
    }

    pub(super) fn uid(&self) -> &'g str {
        let metadata = &self.object().metadata;
        metadata.uid.as_deref().unwrap_or_default()
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.object().metadata.deletion_timestamp.is_some()
    }

    pub(super) fn has_finalizer(&self) -> bool {
        self.given.has_finalizer()
    }

    /// How many batches there are.
    pub(super) fn batches(&self) -> usize {
        self.plan.sizes.count()
    }

    /// What people are told of a batch.
    pub(super) fn called(&self, index: usize) -> String {
        called(index, self.batches())
    }

    /// The workloads that the spec names, the target first.
    pub(super) fn named(&self) -> Result<Vec<Member<'g>>, NotFound> {
        let all = references(self.object());
        let mut found: Vec<_> = all.map(|(field, it)| self.find(&field, it)).collect();
        // What is unsure may be missing; what is missing is surely so.
        let is_unsure = |it: &Result<_, _>| matches!(it, Err(NotFound::Unsure(_)));
        if let Some(place) = found.iter().position(is_unsure) {
            found.swap(0, place);
        }
        found.into_iter().collect()
    }

    /// Their names, as far as they are known.
    pub(super) fn names(&self) -> Vec<Name> {
        let all = references(self.object());
        let names = all.map(|(field, it)| app::workload(self.given, &field, it));
        names.filter_map(Result::ok).collect()
    }

    fn find(&self, field: &str, reference: &WorkloadReference) -> Result<Member<'g>, NotFound> {
        let name = app::workload(self.given, field, reference)?;
        if let Some(why) = self.unsure(&name) {
            return Err(NotFound::Unsure(why));
        }
        match self.workload(&name) {
            Some(workload) => Ok((name, workload)),
            None => Err(NotFound::Missing(format!("there is no {name}"))),
        }
    }

    fn workload(&self, name: &Name) -> Option<Workload<'g>> {
        let object = self.given.sight(name).object()?;
        let is_going = object.pointer("/metadata/deletionTimestamp").is_some();
        (!is_going).then_some(Workload {
            kind: name.kind,
            object,
        })
    }

    /// Why it is not known, or not up to date. None: it is.
    pub(super) fn unsure(&self, name: &Name) -> Option<Why> {
        let sight = self.given.sight(name);
        if let Sight::Unknown(why) = sight {
            return Some(Why::unreadable(name, why));
        }
        let message = || format!("the state of {name} is out of date");
        sight.is_unsure(name).then(|| Why::new("Stale", message()))
    }

    /// The workloads of the run, in its order.
    pub(super) fn of_run(&self, run: &'g Run) -> Vec<OfRun<'g>> {
        let all = run.workloads.iter();
        all.map(|record| {
            let name = Name::of(&record.r#ref);
            let member = name.and_then(|name| {
                let workload = self.workload(&name)?;
                Some((name, workload))
            });
            (record, member.filter(|(_, it)| is_it(record, it.object)))
        })
        .collect()
    }

    /// The target as the spec names it, if it is here.
    pub(super) fn target(&self) -> Option<Member<'g>> {
        let (field, reference) = references(self.object()).next()?;
        let name = app::workload(self.given, &field, reference).ok()?;
        let workload = self.workload(&name)?;
        Some((name, workload))
    }

    /// How many pods of the new version are available. None: they have to be counted, and are not listed.
    pub(super) fn available(&self, target: &Workload<'_>) -> Option<u32> {
        target.updated_available().or_else(|| {
            let (_, revision) = target.revisions();
            let pods = self.given.pods.as_ref()?.iter();
            let new = pods.filter(|pod| {
                let stays = !pod.is_going && target.has_place(&pod.name);
                stays && Some(pod.revision.as_str()) == revision
            });
            let available = new.filter(|pod| self.is_available(target, pod));
            u32::try_from(available.count()).ok()
        })
    }

    /// Whether a pod has been ready for as long as its StatefulSet asks.
    pub(super) fn is_available(&self, target: &Workload<'_>, pod: &Pod) -> bool {
        let from = |since| later(since, target.soak());
        pod.ready_since
            .is_some_and(|since| target.soak().is_zero() || from(since) <= self.at())
    }

    /// When the next pod will have been ready for long enough: nothing else may tell of that.
    pub(super) fn next_available(&self) -> Option<Timestamp> {
        let (_, target) = self.target()?;
        let pods = self.given.pods.iter().flatten();
        let soaking = pods.filter(|pod| !self.is_available(&target, pod));
        let until = soaking.filter_map(|pod| Some(later(pod.ready_since?, target.soak())));
        until.min()
    }

    /// Whether the workload has the claim of the run.
    pub(super) fn is_claimed(&self, run: &Run, workload: &Workload<'_>) -> bool {
        Claim::of(workload.object).is_some_and(|claim| claim.is_of(self.uid(), run.id))
    }

    /// Whether the workload has the claim of the run, or of one before it that has not ended.
    pub(super) fn is_to_release(&self, run: &Run, workload: &Workload<'_>) -> bool {
        let claim = Claim::of(workload.object).filter(|claim| claim.ended.is_none());
        claim.is_some_and(|claim| claim.is_by(self.object()) && claim.run <= run.id)
    }

    /// Whether the run has given the workload back, for its Rollout is deleted.
    pub(super) fn is_given_back(&self, run: &Run, workload: &Workload<'_>) -> bool {
        Claim::of(workload.object).is_some_and(|claim| claim.is_aborted(self.uid(), run.id))
    }

    /// The claim of the run on a workload to which it has written these sizes.
    pub(super) fn claim(
        &self,
        status: &RolloutStatus,
        run: &Run,
        record: &WorkloadRecord,
        wrote: Size,
        ended: Option<Ended>,
    ) -> Claim {
        let metadata = &self.object().metadata;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        Claim {
            name: metadata.name.clone().unwrap_or_default(),
            uid: self.uid().to_owned(),
            workload: format!("{namespace}/{}", record.r#ref.name),
            run: run.id,
            identity: run.identity.clone(),
            retry: status.last_handled_retry_at.clone(),
            of: status.rollout_target_size.unwrap_or(0),
            was: record.was,
            start: record.start,
            former: record.former.clone(),
            wrote,
            ended,
        }
    }

    /// Whether somebody has asked for another run: it rolls out something else, or by the annotation.
    pub(super) fn is_modified(&self, status: &RolloutStatus) -> bool {
        let object = self.object();
        let retry = identity::retry(object);
        if retry.is_some() && retry != status.last_handled_retry_at {
            return true;
        }
        let Some(run) = &status.run else {
            // It has failed before it began, by a mistake of the spec.
            let is_over =
                status.rolling_state == Some(sluice_crds::rollout::RollingState::RolloutFailed);
            return is_over && status.observed_generation != object.metadata.generation;
        };
        let target = self.target();
        let target = target.as_ref().map(|(_, workload)| workload);
        if status.reverted && target.is_some_and(|it| is_former(run, it)) {
            // The old template is there because the run has brought it back.
            return object.spec.revision.is_some()
                && identity::identity(object, target.map(|it| it.object)).as_ref()
                    != Some(&run.identity);
        }
        let identity = identity::identity(object, target.map(|it| it.object));
        identity.is_some_and(|identity| identity != run.identity)
            || self.has_come(status, run, target)
    }

    /// Whether the template of this revision has come only after the run had found nothing to roll out.
    fn has_come(&self, status: &RolloutStatus, run: &Run, target: Option<&Workload<'_>>) -> bool {
        let has_rolled = status.current_batch.is_some();
        let latched = run.workloads.first().and_then(|it| it.template.as_ref());
        let is_in_place = target.is_some_and(|it| it.kind != Kind::Deployment);
        let template = target.and_then(|it| identity::template(it.object));
        !has_rolled && is_in_place && template.is_some() && template.as_ref() != latched
    }
}

/// Whether a workload is to have the revision again that it had before the run.
fn is_former(run: &Run, workload: &Workload<'_>) -> bool {
    let former = run.workloads.first().and_then(|it| it.former.as_deref());
    former.is_some() && workload.revisions().1 == former
}

/// Whether a workload is of the run: its UID is that of the record.
fn is_it(record: &WorkloadRecord, object: &Value) -> bool {
    object.pointer("/metadata/uid").and_then(Value::as_str) == Some(&record.uid)
}

/// What the workloads of a run have.
pub(super) fn sizes(members: &[OfRun<'_>]) -> Vec<Size> {
    let all = members.iter();
    all.map(|(_, member)| present(member.as_ref().map(|(_, workload)| workload)))
        .collect()
}

/// The pods of the new version, and those of them that are available.
pub(super) fn counted(desk: &Desk<'_>, run: &Run, target: &Workload<'_>) -> (i32, Option<i32>) {
    use sluice_crds::rollout::Mode;
    match run.mode {
        Mode::Pair | Mode::Scale => {
            let seen = target.seen();
            (count(seen.replicas), Some(count(seen.available)))
        }
        Mode::Update => (count(target.updated()), desk.available(target).map(count)),
    }
}
