//! Evidence for `revisions`: its lists in ConfigMaps.

use futures::FutureExt;
use futures::future::BoxFuture;
use sluice_core::gatekeeper::Evidence;
use sluice_core::gatekeeper::revisions::List;
use sluice_crds::gatekeeper::{ConfigMapKeyReference, Revisions};

use crate::observation::{Look, Observation, Observe};
use crate::{Source, lists};

impl Observe for Revisions {
    fn needs_evidence(&self) -> bool {
        references(self).next().is_some()
    }

    fn sources(&self, namespace: &str) -> Vec<Source> {
        lists::sources(references(self), namespace)
    }

    fn known(&self, last: &Observation) -> Option<Evidence> {
        lists::known::<List>(references(self), last).map(Evidence::of)
    }

    fn observe<'a>(&'a self, look: Look<'a>) -> BoxFuture<'a, Observation> {
        lists::observe(references(self).collect(), look, List::parse, Evidence::of).boxed()
    }
}

fn references(spec: &Revisions) -> impl Iterator<Item = &ConfigMapKeyReference> {
    let all = spec.allow_from.iter().chain(&spec.deny_from);
    all.map(|source| &source.config_map_ref)
}
