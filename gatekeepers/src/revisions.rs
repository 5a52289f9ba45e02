//! Evidence for `revisions`: its lists in ConfigMaps.

use futures::FutureExt;
use futures::future::BoxFuture;
use sluice_core::gatekeeper::Evidence;
use sluice_core::gatekeeper::revisions::List;
use sluice_crds::gatekeeper::Revisions;

use crate::observation::{Look, Observation, Observe};
use crate::{Source, lists};

impl Observe for Revisions {
    fn needs_evidence(&self) -> bool {
        self.config_map_refs().next().is_some()
    }

    fn sources(&self, namespace: &str) -> Vec<Source> {
        lists::sources(self.config_map_refs(), namespace)
    }

    fn known(&self, last: &Observation) -> Option<Evidence> {
        lists::known::<List>(self.config_map_refs(), last).map(Evidence::of)
    }

    fn observe<'a>(&'a self, look: Look<'a>) -> BoxFuture<'a, Observation> {
        lists::observe(
            self.config_map_refs().collect(),
            look,
            List::parse,
            Evidence::of,
        )
        .boxed()
    }
}
