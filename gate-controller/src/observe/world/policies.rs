//! The policies and the labels of namespaces, for decisions about sets of gates.

use kube::ResourceExt;
use sluice_core::gate::policy::{Labels, Readable};
use sluice_core::gate::set::Sources;

use super::World;
use crate::cluster::key::KeyRef;
use crate::observe::cache::Seen;

/// The name shown for policies that may have been created while changes were not seen.
const UNSEEN: &str = "not seen";

impl Sources for World {
    fn policies(&self) -> Vec<(String, Readable)> {
        let mut policies: Vec<_> = (self.policies.all().into_iter())
            .map(|(key, seen)| {
                let policy = match seen {
                    Seen::Object(policy) => Ok(policy),
                    Seen::Unreadable(why) => Err(why),
                };
                (key.name.to_string(), policy)
            })
            .collect();
        // A policy that was not seen here may name any gate for anyone.
        policies.extend(
            self.silence()
                .map(|why| (UNSEEN.to_owned(), Err(why.into()))),
        );
        policies.sort_by(|one, other| one.0.cmp(&other.0));
        policies
    }

    fn labels(&self, namespace: &str) -> Option<Labels> {
        let key = KeyRef {
            namespace: "",
            name: namespace,
        };
        let seen = self.namespaces.get(key)?;
        Some(seen.object()?.labels().clone())
    }
}
