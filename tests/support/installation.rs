//! An API server with the chart on it.
//!
//! What comes in: a release, and what is to be there before it. What goes out: a control plane whose
//! policies judge and whose roles are aggregated.

use anyhow::{Context, Result, anyhow, ensure};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DynamicObject, ObjectMeta, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use sluice_crds::Gate;
use tokio::sync::OnceCell;

use crate::apply::{Applier, Document};
use crate::cluster::Cluster;
use crate::control_plane::{Binaries, ControlPlane, Options};
use crate::helm::{Helm, Release};
use crate::poll::DEADLINE;
use crate::poll::poll;
use crate::progress::Stderr;
use crate::writes::Writes;

/// The user name of the controller where the chart is installed with its default values.
pub const CONTROLLER: &str = "system:serviceaccount:sluice-system:gate-controller";

/// The chart with its default values, on a server that the tests of this process share. It knows
/// the users `alice` and `bob`, who have no rights until a test grants some.
///
/// # Errors
///
/// If it cannot be installed. Anyone who asks later gets the same error without another try.
pub async fn installed() -> Result<&'static Cluster> {
    static INSTALLED: OnceCell<Result<ControlPlane, String>> = OnceCell::const_new();
    let start = async || {
        let started = start(&Release::default(), "").await;
        started
            .map(|(plane, _)| plane)
            .map_err(|error| format!("{error:#}"))
    };
    match INSTALLED.get_or_init(start).await {
        Ok(plane) => Ok(plane.cluster()),
        Err(error) => Err(anyhow!("the chart is not installed: {error}")),
    }
}

/// The server of an installation: it knows users, and aggregates roles.
#[must_use]
pub fn options() -> Options {
    let mut options = Options::default()
        .with_users(&["alice", "bob"])
        .with_housekeeping();
    options
        .controllers
        .push("clusterrole-aggregation-controller".to_owned());
    options
}

/// Starts a server with `before` and then `release` applied, and waits until its policies judge.
/// Returns the objects of the release as they were stored.
///
/// # Errors
///
/// If an object is refused, or the policies let pass what they must not.
pub async fn start(release: &Release, before: &str) -> Result<(ControlPlane, Vec<DynamicObject>)> {
    start_on(options(), release, before).await
}

/// The same on a server with other options, which are those of [`options`] and more.
///
/// # Errors
///
/// See [`start`].
pub async fn start_on(
    options: Options,
    release: &Release,
    before: &str,
) -> Result<(ControlPlane, Vec<DynamicObject>)> {
    let documents = Helm::ensure(&Stderr::new())?.template(release)?;
    install(options, documents, &release.namespace, before).await
}

/// The same with the objects of an installation that did not come from Helm just now, in `namespace`.
///
/// # Errors
///
/// See [`start`].
pub async fn start_with(
    documents: Vec<Document>,
    namespace: &str,
    before: &str,
) -> Result<(ControlPlane, Vec<DynamicObject>)> {
    install(options(), documents, namespace, before).await
}

async fn install(
    options: Options,
    documents: Vec<Document>,
    namespace: &str,
    before: &str,
) -> Result<(ControlPlane, Vec<DynamicObject>)> {
    let binaries = Binaries::ensure(&Stderr::new())?;
    let plane = ControlPlane::start(&binaries, options).await?;
    let client = plane.client().await?;
    create_restricted_namespace(&client, namespace).await?;
    let applier = Applier::new(client.clone()).in_namespace(namespace);
    applier.text(before).await?;
    let applied = applier.documents(documents).await?;
    wait_until_policies_judge(&client, namespace).await?;
    wait_until_roles_are_aggregated(&client).await?;
    Ok((plane, applied))
}

/// The API server itself refuses pods there that are not as the standard `restricted` asks.
async fn create_restricted_namespace(client: &Client, name: &str) -> Result<()> {
    let labels = [("pod-security.kubernetes.io/enforce", "restricted")];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    let api: Api<Namespace> = Api::all(client.clone());
    api.add(&namespace).await?;
    Ok(())
}

/// A policy takes effect a moment after it is stored: until then it refuses nothing.
async fn wait_until_policies_judge(client: &Client, namespace: &str) -> Result<()> {
    let gates: Api<Gate> = Api::namespaced(client.clone(), namespace);
    let probe = Gate::new("probe", sluice_crds::GateSpec::default());
    gates.add(&probe).await?;
    let parameters = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    poll(DEADLINE, "the policies to judge", async || {
        let force = json!({"metadata": {"annotations": {"sluice.dev/force": "ajar"}}});
        let forced = gates
            .patch("probe", &parameters, &Patch::Merge(force))
            .await;
        let status = json!({"status": {"reason": "Probe"}});
        let reported = gates
            .patch_status("probe", &parameters, &Patch::Merge(status))
            .await;
        ensure!(
            forced.is_err() && reported.is_err(),
            "{forced:?}, {reported:?}"
        );
        Ok(())
    })
    .await?;
    gates.remove("probe").await?;
    Ok(())
}

/// The cluster's own roles take up ours a moment after they are stored.
async fn wait_until_roles_are_aggregated(client: &Client) -> Result<()> {
    let roles: Api<ClusterRole> = Api::all(client.clone());
    for name in ["view", "edit", "admin"] {
        poll(DEADLINE, "the roles to be aggregated", async || {
            let rules = roles.get(name).await?.rules.unwrap_or_default();
            let groups = rules
                .iter()
                .filter_map(|rule| rule.api_groups.as_ref())
                .flatten();
            let found = groups.filter(|group| *group == sluice_crds::GROUP).count();
            let expected = if name == "view" { 1 } else { 2 };
            ensure!(found >= expected, "{name} has {found} rules of ours");
            Ok(())
        })
        .await
        .with_context(|| format!("ClusterRole {name}"))?;
    }
    Ok(())
}
