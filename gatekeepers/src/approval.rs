//! Evidence for `approval`: the authors of revisions, in a ConfigMap. The votes are added by the code
//! that watches them.

use futures::FutureExt;
use futures::future::BoxFuture;
use sluice_core::gatekeeper::Evidence;
use sluice_core::gatekeeper::approval::{Authors, Reading, Votes};
use sluice_crds::gatekeeper::ApprovalRule;

use crate::observation::{Look, Observation, Observe};
use crate::{Source, lists};

impl Observe for ApprovalRule {
    fn needs_evidence(&self) -> bool {
        self.forbid_self.is_some()
    }

    fn sources(&self, namespace: &str) -> Vec<Source> {
        lists::sources(self.config_map_refs(), namespace)
    }

    fn known(&self, last: &Observation) -> Option<Evidence> {
        lists::known::<Authors>(self.config_map_refs(), last).map(evidence)
    }

    fn observe<'a>(&'a self, look: Look<'a>) -> BoxFuture<'a, Observation> {
        lists::observe(
            self.config_map_refs().collect(),
            look,
            Authors::parse,
            evidence,
        )
        .boxed()
    }
}

fn evidence(authors: Vec<Reading>) -> Evidence {
    Evidence::of(Votes {
        authors: authors.into_iter().next(),
        ..Votes::default()
    })
}
