//! A forge with pull requests, and a list of all that was ever opened and merged.

use std::collections::BTreeMap;

use sluice_core::delivery::pipeline::Recalled;
use sluice_crds::pull_request::{About, PullRequestState};

/// A pull request of the forge.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) about: About,
    pub(super) state: PullRequestState,
    /// The uid of the Pipeline that asked for it, or that has taken it over.
    pub(super) by: Option<String>,
}

/// The forge: its pull requests in the order in which they were opened, and what is in the branch that
/// they are merged into, by environment.
#[derive(Debug, Default)]
pub(super) struct Forge {
    pub(super) all: Vec<Opened>,
    pub(super) base: BTreeMap<String, String>,
}

impl Forge {
    pub(super) fn find(&mut self, key: &str) -> Option<&mut Opened> {
        self.all.iter_mut().rev().find(|it| it.about.key == key)
    }

    pub(super) fn open_of(&mut self, environment: &str) -> Option<&mut Opened> {
        let is_open = |it: &&mut Opened| {
            it.about.environment == environment && it.state == PullRequestState::Open
        };
        self.all.iter_mut().rev().find(is_open)
    }

    /// Opens one. `weak`: statuses or objects were wiped.
    pub(super) fn open(
        &mut self,
        about: &About,
        by: Option<String>,
        weak: bool,
    ) -> Result<(), String> {
        let of = |it: &&Opened| it.about.environment == about.environment;
        let mut same = self.all.iter().filter(of);
        if same.clone().any(|it| it.state == PullRequestState::Open) {
            return Err(format!("two are open: {about:?} beside {:?}", self.all));
        }
        if !weak && same.any(|it| it.about.run == about.run) {
            return Err(format!("opened twice in a run: {about:?}, {:?}", self.all));
        }
        self.all.push(Opened {
            about: about.clone(),
            state: PullRequestState::Open,
            by,
        });
        Ok(())
    }

    pub(super) fn merge(&mut self, key: &str) -> Result<(), String> {
        let Some(found) = self.find(key) else {
            return Err(format!("{key} is merged, and was never opened"));
        };
        found.state = PullRequestState::Merged;
        let about = found.about.clone();
        let revision = about.revision.clone().unwrap_or_default();
        self.base.insert(about.environment.clone(), revision);
        let is_same = |it: &&Opened| {
            it.state == PullRequestState::Merged
                && (&it.about.environment, it.about.run) == (&about.environment, about.run)
        };
        match self.all.iter().filter(is_same).count() {
            1 => Ok(()),
            _ => Err(format!("merged twice in a run: {about:?}")),
        }
    }

    /// The newest pull request of an environment, as the trailers of its commit say.
    pub(super) fn recall(&self, environment: &str) -> Option<Recalled> {
        let mut all = self.all.iter().rev();
        let found = all.find(|it| it.about.environment == environment)?;
        Some(Recalled {
            run: found.about.run?,
            revision: found.about.revision.clone()?,
            key: found.about.key.clone(),
            state: found.state,
            url: None,
            merge: None,
        })
    }
}
