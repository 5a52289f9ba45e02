//! The objects of Flux around GatedSources, Pipelines and PromotionStrategies.

use std::fmt::Display;

use anyhow::{Result, anyhow};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use sluice_core::delivery::gated_source;
use sluice_core::offline::simulate::Key;
use sluice_crds::GatedSource;
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::gated_source::{ConsumerKind, Strategy, marks};

use super::connection::Connection;
use super::fault::{explain, is_unknown_kind, status};
use super::request::pages;

/// Objects of Flux of one kind.
pub(crate) fn flux(connection: &Connection, kind: FluxKind, namespace: &str) -> Api<FluxObject> {
    Api::namespaced_with(connection.client.clone(), namespace, &kind)
}

/// An object of Flux, where there is one.
///
/// # Errors
/// The API server does not know the kind; anything that keeps us from reading it.
pub(crate) async fn flux_object(
    connection: &Connection,
    kind: FluxKind,
    key: &Key,
) -> Result<Option<FluxObject>> {
    let found = flux(connection, kind, &key.namespace).get(&key.name).await;
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_missing(&error) => Ok(None),
        error => {
            let found = error.cannot_flux(format_args!("read {} {key}", kind.as_str()))?;
            Ok(Some(found))
        }
    }
}

/// The kind is known, and there is no object of that name.
fn is_missing(error: &kube::Error) -> bool {
    status(error).is_some_and(|status| status.code == 404 && status.details.is_some())
        && !is_unknown_kind(error)
}

/// Answers of the API server about objects of Flux.
pub(crate) trait CannotFlux<T> {
    /// An error of one line: we cannot `what`, and why.
    fn cannot_flux(self, what: impl Display) -> Result<T>;
}

impl<T> CannotFlux<T> for Result<T, kube::Error> {
    fn cannot_flux(self, what: impl Display) -> Result<T> {
        self.map_err(|error| match is_unknown_kind(&error) {
            true => anyhow!("cannot {what}: the API server does not know the kind; install Flux"),
            false => explain(error, what),
        })
    }
}

/// What applies what sources bring.
#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    pub(crate) kind: ConsumerKind,
    pub(crate) object: FluxObject,
}

impl Consumer {
    /// Its namespace and its name.
    pub(crate) fn key(&self) -> Key {
        Key::of(&self.object.metadata)
    }

    /// As messages have it, such as `Kustomization apps/app`.
    pub(crate) fn called(&self) -> String {
        format!("{} {}", self.kind.as_str(), self.key())
    }

    /// Whether the two are the same object.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.kind, self.key()) == (other.kind, other.key())
    }
}

/// What applies what sources bring, in all namespaces, or as far as one may see. Returns a note
/// where that is not everywhere.
///
/// # Errors
/// Those of the connection's namespace cannot be listed.
pub(crate) async fn consumers(connection: &Connection) -> Result<(Vec<Consumer>, Option<String>)> {
    let (mut all, mut note) = (Vec::new(), None);
    for kind in [ConsumerKind::Kustomization, ConsumerKind::HelmRelease] {
        let flux = FluxKind::Consumer(kind);
        let everywhere: Api<FluxObject> = Api::all_with(connection.client.clone(), &flux);
        let listed = match pages(&everywhere, ListParams::default()).await {
            Ok(listed) => listed,
            // Not every Flux has both controllers.
            Err(error) if is_unknown_kind(&error) => continue,
            Err(_) => {
                let here = &connection.namespace;
                note = Some(format!(
                    "who uses sources from outside of {here} is not known"
                ));
                let api = self::flux(connection, flux, here);
                let listed = pages(&api, ListParams::default()).await;
                listed.cannot_flux(format_args!("list the {} of {here}", flux.plural()))?
            }
        };
        all.extend(listed.into_iter().map(|object| Consumer { kind, object }));
    }
    Ok((all, note))
}

/// An object of Flux that a gated source makes or suspends.
pub(crate) struct Around {
    pub(crate) kind: FluxKind,
    pub(crate) name: String,
    /// None: it is not there. Err: it cannot be read.
    pub(crate) object: Result<Option<FluxObject>>,
}

/// The children of a gated source; where it makes none, the sources that it suspends.
pub(crate) async fn around(connection: &Connection, source: &GatedSource) -> Vec<Around> {
    let mut around = Vec::new();
    let own = Key::of(&source.metadata);
    for wanted in gated_source::wanted(source) {
        let kind = wanted.child(source.spec.strategy);
        let name = match source.spec.strategy {
            Strategy::Pin | Strategy::Artifact => wanted.target,
            Strategy::Suspend => wanted.name,
        };
        let key = Key {
            name: name.clone(),
            ..own.clone()
        };
        let object = flux_object(connection, kind, &key).await;
        around.push(Around { kind, name, object });
    }
    let Some(selector) = &source.spec.selector else {
        return around;
    };
    let kind = FluxKind::Source(selector.kind);
    let labels = selector.match_labels.iter();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let page = ListParams::default().labels(&labels.join(","));
    let found = flux(connection, kind, &own.namespace).list(&page).await;
    match found.cannot_flux("list the sources that it selects") {
        Ok(found) => around.extend(found.items.into_iter().map(|object| Around {
            kind,
            name: object.name_any(),
            object: Ok(Some(object)),
        })),
        Err(error) => around.push(Around {
            kind,
            name: format!("with {}", labels.join(",")),
            object: Err(error),
        }),
    }
    around
}

/// The GatedSource that made an object, or that suspends it.
pub(crate) fn mark<'a>(object: &'a FluxObject, mark: &str) -> Option<&'a str> {
    object.annotations().get(mark).map(String::as_str)
}

/// The GatedSource whose child `object` is.
pub(crate) fn parent(object: &FluxObject) -> Option<&str> {
    mark(object, marks::CHILD_OF)
}
