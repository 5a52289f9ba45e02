//! Apps that nobody has read: as a status told of them, or as they will be.

use std::collections::BTreeMap;

use sluice_crds::pipeline::TargetStatus;

use super::{App, Ready};
use crate::revision::Revision;

impl App {
    /// One that runs this revision healthily.
    pub fn healthy(revision: Revision) -> Self {
        Self {
            applied: Ok(Some(revision)),
            attempted: None,
            is_suspended: false,
            is_observed: true,
            ready: Ready::True,
            versions: BTreeMap::new(),
            unshown: Vec::new(),
        }
    }

    /// One as a status told of it. None: it said of no revision that it runs there.
    pub fn told(status: &TargetStatus) -> Option<Self> {
        let read = |text: &String| Revision::parse(text).ok();
        let healthy = Self::healthy(status.revision.as_ref().and_then(read)?);
        Some(Self {
            attempted: status.attempted.as_ref().and_then(read),
            ready: match status.ready {
                true => Ready::True,
                false => Ready::False(status.error.clone().unwrap_or_default()),
            },
            versions: status.versions.clone(),
            ..healthy
        })
    }
}
