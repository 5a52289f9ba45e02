//! Step 1: how an environment stands, by all its targets.

use sluice_crds::pipeline::{Environment as Spec, EnvironmentStatus};

use super::key::Lineage;
use super::target::{Runs, Seen, Verdict};
use super::{Sight, Surroundings, Trouble, words};
use crate::revision::Revision;

/// An environment with its targets.
#[derive(Clone, Debug)]
pub(super) struct Environment<'a> {
    pub(super) spec: &'a Spec,
    pub(super) targets: Vec<Seen>,
}

/// How an environment stands towards a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is not known what a target runs: why.
    Unknown(String),
    /// All targets run it healthily.
    Passed,
    /// A target runs it or begins to, and not all run it healthily: which one, and why.
    On(String),
    /// No target runs it.
    Elsewhere,
}

impl<'a> Environment<'a> {
    /// `before`: what the status said of it.
    pub(super) fn new(
        spec: &'a Spec,
        surroundings: Option<&Surroundings>,
        before: Option<&EnvironmentStatus>,
    ) -> Self {
        let sights = surroundings.map_or(&[][..], |it| &it.targets);
        let before = before.map_or(&[][..], |it| &it.targets);
        let targets = spec.targets.iter().enumerate();
        let targets = targets.map(|(place, target)| {
            let unseen = Sight::Unknown(Trouble {
                what: super::Missing::App,
                message: "it has not been looked at yet".to_owned(),
            });
            let sight = sights.get(place).unwrap_or(&unseen);
            Seen::new(target, sight, before.get(place))
        });
        Self {
            spec,
            targets: targets.collect(),
        }
    }

    /// The first of what is missing.
    pub(super) fn trouble(&self) -> Option<&Trouble> {
        self.targets.iter().find_map(|seen| seen.trouble.as_ref())
    }

    /// How it stands towards a revision.
    pub(super) fn standing(&self, lineage: &Lineage) -> Standing {
        let has = |it: &Option<Revision>| it.as_ref().is_some_and(|it| lineage.has(it));
        let mut is_on = false;
        let mut lacking = None;
        for seen in &self.targets {
            let Some(runs) = &seen.runs else {
                return Standing::Unknown(words::unknown(seen));
            };
            let (applied, attempted) = (has(&runs.applied), has(&runs.attempted));
            is_on |= applied || attempted;
            if (!applied || runs.verdict != Verdict::Healthy) && lacking.is_none() {
                lacking = Some(words::lacking(seen, runs));
            }
        }
        match lacking {
            None => Standing::Passed,
            Some(lacking) if is_on => Standing::On(lacking),
            Some(_) => Standing::Elsewhere,
        }
    }

    /// The one revision that all targets run healthily. As an error: why there is none.
    pub(super) fn steady(&self) -> Result<&Revision, String> {
        let mut first: Option<&Revision> = None;
        for seen in &self.targets {
            let Some(runs) = &seen.runs else {
                return Err(words::unknown(seen));
            };
            let Runs {
                applied, verdict, ..
            } = runs;
            let (Some(applied), Verdict::Healthy) = (applied, verdict) else {
                return Err(words::lacking(seen, runs));
            };
            match first {
                Some(first) if !first.is(applied) => {
                    return Err(format!("its targets run {first} and {applied}"));
                }
                Some(_) => {}
                None => first = Some(applied),
            }
        }
        first.ok_or_else(|| "it has no targets".to_owned())
    }

    /// Whether a target runs this revision, or begins to.
    pub(super) fn has(&self, revision: &Revision) -> bool {
        let is = |it: &Option<Revision>| it.as_ref().is_some_and(|it| it.is(revision));
        let mut all = self.targets.iter().filter_map(|seen| seen.runs.as_ref());
        all.any(|runs| is(&runs.applied) || is(&runs.attempted))
    }
}
