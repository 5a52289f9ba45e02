//! The apps of a pipeline, their sources, and what makes those look again.

use std::collections::BTreeMap;

use anyhow::Result;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::discovery;
use sluice_core::delivery::pipeline::kind_of;
use sluice_core::offline::simulate::Key;
use sluice_crds::Pipeline;

use super::connection::Connection;
use super::fault::{Cannot, code};

/// The groups of Flux that are looked at.
const SOURCES: &str = "source.toolkit.fluxcd.io";
const NOTIFICATIONS: &str = "notification.toolkit.fluxcd.io";
const IMAGES: &str = "image.toolkit.fluxcd.io";

/// Objects of kinds whose version the cluster chooses.
pub(crate) struct Apps<'c> {
    connection: &'c Connection,
    /// What is served of a group and kind. None: it is not served.
    known: BTreeMap<(String, String), Option<ApiResource>>,
}

/// A source, as an app names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceName {
    pub(crate) kind: String,
    pub(crate) key: Key,
}

impl<'c> Apps<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self {
            connection,
            known: BTreeMap::new(),
        }
    }

    /// The objects of the kind of a pipeline's app in a namespace.
    ///
    /// # Errors
    /// Anything that keeps us from listing them.
    pub(crate) async fn of(
        &mut self,
        object: &Pipeline,
        namespace: &str,
    ) -> Result<Vec<DynamicObject>> {
        match kind_of(&object.spec.app_ref) {
            Some((group, kind)) => self.list(group, kind, namespace).await,
            None => Ok(Vec::new()),
        }
    }

    /// A source. None: there is none.
    ///
    /// # Errors
    /// Anything that keeps us from reading it.
    pub(crate) async fn source(&mut self, name: &SourceName) -> Result<Option<DynamicObject>> {
        let SourceName { kind, key } = name;
        let Some(resource) = self.resource(SOURCES, kind).await? else {
            return Ok(None);
        };
        let api = self.api(&key.namespace, &resource);
        let found = api.get_opt(&key.name).await;
        found.cannot(format_args!("read {kind} {key}"))
    }

    /// The Receivers of a namespace.
    ///
    /// # Errors
    /// Anything that keeps us from listing them.
    pub(crate) async fn receivers(&mut self, namespace: &str) -> Result<Vec<DynamicObject>> {
        self.list(NOTIFICATIONS, "Receiver", namespace).await
    }

    /// The ImageUpdateAutomations of a namespace.
    ///
    /// # Errors
    /// Anything that keeps us from listing them.
    pub(crate) async fn automations(&mut self, namespace: &str) -> Result<Vec<DynamicObject>> {
        let kind = "ImageUpdateAutomation";
        self.list(IMAGES, kind, namespace).await
    }

    async fn list(
        &mut self,
        group: &str,
        kind: &str,
        namespace: &str,
    ) -> Result<Vec<DynamicObject>> {
        let Some(resource) = self.resource(group, kind).await? else {
            return Ok(Vec::new());
        };
        let listed = self.api(namespace, &resource);
        let listed = listed.list(&ListParams::default()).await;
        let what = format!("list the {} of {namespace}", resource.plural);
        Ok(listed.cannot(what)?.items)
    }

    fn api(&self, namespace: &str, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.connection.client.clone(), namespace, resource)
    }

    /// What the cluster serves of a kind.
    async fn resource(&mut self, group: &str, kind: &str) -> Result<Option<ApiResource>> {
        let wanted = (group.to_owned(), kind.to_owned());
        if let Some(known) = self.known.get(&wanted) {
            return Ok(known.clone());
        }
        let found = match discovery::group(&self.connection.client, group).await {
            Ok(found) => found.recommended_kind(kind).map(|(resource, _)| resource),
            Err(kube::Error::Discovery(_)) => None,
            Err(error) if code(&error) == Some(404) => None,
            Err(error) => return Err(error).cannot(format_args!("look for {kind} of {group}")),
        };
        self.known.insert(wanted, found.clone());
        Ok(found)
    }
}
