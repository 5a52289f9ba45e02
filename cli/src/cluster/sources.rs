//! GatedSources, and the objects of Flux around them.

use anyhow::{Error, Result, anyhow};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::gated_source::{ConsumerKind, marks};
use sluice_crds::{Decision, GatedSource};

use super::{Connection, Scope, explain, load, status};

/// The GatedSources of `scope`. There are none where the API server does not know the kind.
///
/// # Errors
/// Whatever keeps us from listing them.
pub(crate) async fn sources(connection: &Connection, scope: &Scope) -> Result<Vec<GatedSource>> {
    let client = connection.client.clone();
    let here = || Api::namespaced(connection.client.clone(), &connection.namespace);
    let (api, page): (Api<GatedSource>, ListParams) = match scope {
        Scope::Everywhere(page) => (Api::all(client), page.clone()),
        Scope::Namespace(page) => (here(), page.clone()),
        Scope::Named(_) | Scope::Asked(..) | Scope::Of(..) | Scope::These(_) => {
            (here(), ListParams::default())
        }
    };
    match load::pages(&api, page).await {
        Err(error) if is_unknown_kind(&error) => Ok(Vec::new()),
        listed => listed.map_err(|error| explain(error, "list gated sources")),
    }
}

/// The GatedSource of that name, in the connection's namespace.
///
/// # Errors
/// There is none; whatever keeps us from reading it.
pub(crate) async fn source(connection: &Connection, name: &str) -> Result<GatedSource> {
    let api: Api<GatedSource> = Api::namespaced(connection.client.clone(), &connection.namespace);
    let found = api.get_opt(name).await;
    let found = found.map_err(|error| explain(error, &format!("read the gated source {name}")))?;
    found.ok_or_else(|| {
        anyhow!(
            "there is no gated source `{name}` in the namespace {}; name another, or another namespace with -n",
            connection.namespace
        )
    })
}

/// Objects of Flux of one kind.
pub(crate) fn flux(client: &Client, kind: FluxKind, namespace: &str) -> Api<FluxObject> {
    Api::namespaced_with(client.clone(), namespace, &kind)
}

/// An object of Flux, where there is one.
///
/// # Errors
/// The API server does not know the kind; whatever keeps us from reading it.
pub(crate) async fn flux_object(
    connection: &Connection,
    kind: FluxKind,
    namespace: &str,
    name: &str,
) -> Result<Option<FluxObject>> {
    let found = flux(&connection.client, kind, namespace).get(name).await;
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => {
            let what = format!("read {} {namespace}/{name}", kind.as_str());
            Err(explain_flux(error, &what))
        }
    }
}

/// The kind is known, and there is no object of that name.
fn is_missing(error: &kube::Error) -> bool {
    status(error).is_some_and(|status| status.code == 404 && status.details.is_some())
        && !is_unknown_kind(error)
}

fn is_unknown_kind(error: &kube::Error) -> bool {
    status(error).is_some_and(|status| {
        let said = status.message.trim();
        let unknown = said.contains("could not find the requested resource");
        status.code == 404 && (unknown || said == "404 page not found")
    })
}

/// Why we cannot `what`, with objects of Flux.
pub(crate) fn explain_flux(error: kube::Error, what: &str) -> Error {
    if is_unknown_kind(&error) {
        return anyhow!("cannot {what}: the API server does not know the kind; install Flux");
    }
    explain(error, what)
}

/// Whoever applies what sources bring.
#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    pub(crate) kind: ConsumerKind,
    pub(crate) object: FluxObject,
}

impl Consumer {
    /// Its namespace.
    pub(crate) fn namespace(&self) -> String {
        self.object.namespace().unwrap_or_default()
    }

    /// As messages have it, such as `Kustomization apps/app`.
    pub(crate) fn called(&self) -> String {
        let (kind, namespace) = (self.kind.as_str(), self.namespace());
        format!("{kind} {namespace}/{}", self.object.name_any())
    }
}

/// Whoever applies what sources bring, in all namespaces, or as far as one may see. Returns a note
/// where that is not everywhere.
///
/// # Errors
/// Those of the connection's namespace cannot be listed.
pub(crate) async fn consumers(connection: &Connection) -> Result<(Vec<Consumer>, Option<String>)> {
    let (mut all, mut note) = (Vec::new(), None);
    for kind in [ConsumerKind::Kustomization, ConsumerKind::HelmRelease] {
        let flux = FluxKind::Consumer(kind);
        let everywhere: Api<FluxObject> = Api::all_with(connection.client.clone(), &flux);
        let listed = match load::pages(&everywhere, ListParams::default()).await {
            Ok(listed) => listed,
            // Not every Flux has both controllers.
            Err(error) if is_unknown_kind(&error) => continue,
            Err(_) => {
                let here = &connection.namespace;
                note = Some(format!(
                    "who uses sources from outside of {here} is not known"
                ));
                let api = self::flux(&connection.client, flux, here);
                let what = format!("list the {} of {here}", flux.plural());
                let listed = load::pages(&api, ListParams::default()).await;
                listed.map_err(|error| explain_flux(error, &what))?
            }
        };
        all.extend(listed.into_iter().map(|object| Consumer { kind, object }));
    }
    Ok((all, note))
}

/// The GatedSource that made an object, or that suspends it.
pub(crate) fn mark<'a>(object: &'a FluxObject, mark: &str) -> Option<&'a str> {
    object.annotations().get(mark).map(String::as_str)
}

/// The GatedSource whose child `object` is.
pub(crate) fn parent(object: &FluxObject) -> Option<&str> {
    mark(object, marks::CHILD_OF)
}

/// What the controller said last of what waits at a source.
pub(crate) fn last_decision(source: &GatedSource) -> Option<&Decision> {
    source.status.as_ref()?.last_decision.as_ref()
}
