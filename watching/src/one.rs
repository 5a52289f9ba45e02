//! One object, watched by its name.
//!
//! What comes in: its namespace and name, and what to keep of it. What goes out: how [`Shared`] watches it.
//! The right to list and watch is needed for that one name alone.
//!
//! [`Shared`]: crate::shared::Shared

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use crate::shared::{Setback, Sink};
use crate::{Guard, Step};

/// What was last sent of an object of the kind `K`. If nothing but its metadata is asked for, `METADATA` is
/// true.
pub struct One<K, T, const METADATA: bool> {
    keep: fn(K) -> T,
    /// What the list that is under way has so far.
    listed: Option<T>,
}

/// How an object is watched of which `keep` leaves what is read.
pub fn one<K, T, const METADATA: bool>(
    client: Client,
    (namespace, name): (&str, &str),
    keep: fn(K) -> T,
) -> (Api<Guard<K>>, Config, One<K, T, METADATA>)
where
    K: Resource<Scope = NamespaceResourceScope>,
    K::DynamicType: Default,
{
    let api = Api::namespaced(client, namespace);
    let config = Config::default().fields(&format!("metadata.name={name}"));
    let listed = None;
    (api, config, One { keep, listed })
}

impl<K, T, const METADATA: bool> Sink for One<K, T, METADATA>
where
    K: Clone + Debug + DeserializeOwned + Resource + Send + 'static,
    T: Clone + PartialEq + Send + Sync + 'static,
{
    type Object = K;
    /// None: there is no such object.
    type Told = Option<T>;
    const VANISHES: bool = false;
    const IS_OF_METADATA: bool = METADATA;

    fn take(&mut self, step: Step<Guard<K>>) -> Result<Option<Option<T>>, Setback> {
        match step {
            Step::Begun => self.listed = None,
            Step::Page(objects) => {
                for object in objects {
                    self.listed = Some((self.keep)(object.0?));
                }
            }
            Step::Listed(_) => return Ok(Some(self.listed.take())),
            Step::Apply(object) => return Ok(Some(Some((self.keep)(object.0?)))),
            Step::Delete(_) => return Ok(Some(None)),
            Step::Opened | Step::Alive | Step::Ended | Step::Failed(_) | Step::Silent => {}
        }
        Ok(None)
    }
}
