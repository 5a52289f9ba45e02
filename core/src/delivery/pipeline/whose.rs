//! Whose act it is: the Pipeline by its name.

use sluice_crds::Pipeline;

use crate::delivery::pull_request::Promotion;

/// A Pipeline by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whose<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

impl<'a> Whose<'a> {
    pub(super) fn of(object: &'a Pipeline) -> Self {
        let text = |it: &'a Option<String>| it.as_deref().unwrap_or_default();
        Self {
            namespace: text(&object.metadata.namespace),
            name: text(&object.metadata.name),
        }
    }

    /// Where a promotion to one of its environments leads.
    pub(super) fn to(self, environment: &'a str) -> Promotion<'a> {
        Promotion {
            namespace: self.namespace,
            pipeline: self.name,
            environment,
        }
    }
}
