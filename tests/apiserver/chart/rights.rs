//! Rights: the controller's are enough for every call that it makes, and are no more; people's
//! leave out `override`.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use futures::TryStreamExt;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview, SelfSubjectRulesReviewSpec, SubjectRulesReviewStatus,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace as KubeNamespace, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sluice_crds::{
    CommitStatus, Gate, GatePolicy, Gatekeeper, GitRepositoryAccess, Pipeline, PromotionStrategy,
    PullRequest, RevertCommit,
};
use sluice_tests::apply::{self, Document};
use sluice_tests::helm::{Helm, Release};
use sluice_tests::progress::Stderr;
use sluice_tests::{DEADLINE, Namespace, Writes, poll};

use super::{CONTROLLER, installed};

/// The Lease of a controller that has all shards.
const LEASE: &str = "gate-controller";

fn object<K: DeserializeOwned>(value: Value) -> Result<K> {
    Ok(serde_json::from_value(value)?)
}

async fn create_gate_and_gatekeeper(client: &Client, namespace: &str) -> Result<()> {
    let gates: Api<Gate> = Api::namespaced(client.clone(), namespace);
    let gatekeepers: Api<Gatekeeper> = Api::namespaced(client.clone(), namespace);
    let gate = json!({"metadata": {"name": "production"}, "spec": {}});
    gates.add(&object(with_types("Gate", gate))?).await?;
    let switch = json!({"metadata": {"name": "switch"}, "spec": {"manual": {"state": "open"}}});
    gatekeepers
        .add(&object(with_types("Gatekeeper", switch))?)
        .await?;
    Ok(())
}

fn with_types(kind: &str, mut value: Value) -> Value {
    value["apiVersion"] = "sluice.dev/v1alpha1".into();
    value["kind"] = kind.into();
    value
}

#[tokio::test]
async fn the_controller_may_read_what_it_decides_from() -> Result<()> {
    async fn read<K>(client: &Client) -> Result<()>
    where
        K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(client.clone());
        api.list(&ListParams::default()).await?;
        let second = WatchParams::default().timeout(1);
        let events: Vec<_> = api.watch(&second, "0").await?.try_collect().await?;
        for event in events {
            ensure!(!matches!(event, WatchEvent::Error(_)), "{event:?}");
        }
        Ok(())
    }
    let client = installed().await?.client_for(CONTROLLER).await?;
    tokio::try_join!(
        read::<Gate>(&client),
        read::<Gatekeeper>(&client),
        read::<GatePolicy>(&client),
        read::<Pipeline>(&client),
        read::<PullRequest>(&client),
        read::<GitRepositoryAccess>(&client),
        read::<PromotionStrategy>(&client),
        read::<CommitStatus>(&client),
        read::<RevertCommit>(&client),
        read::<KubeNamespace>(&client),
        read::<ConfigMap>(&client),
        read::<ValidatingAdmissionPolicy>(&client),
        read::<ValidatingAdmissionPolicyBinding>(&client),
    )?;
    Ok(())
}

#[tokio::test]
async fn the_controller_may_write_status_and_complete_a_force() -> Result<()> {
    let cluster = installed().await?;
    let namespace = Namespace::create(cluster, "rights").await?;
    create_gate_and_gatekeeper(&cluster.client().await?, namespace.name()).await?;
    let client = cluster.client_for(CONTROLLER).await?;
    let gates: Api<Gate> = Api::namespaced(client.clone(), namespace.name());
    let gatekeepers: Api<Gatekeeper> = Api::namespaced(client, namespace.name());
    let apply = PatchParams::apply("gate-controller").force();

    let status = json!({"status": {"state": "Closed", "reason": "Default", "message": "closed"}});
    let report = Patch::Apply(with_types("Gate", status.clone()));
    gates.patch_status("production", &apply, &report).await?;
    let report = Patch::Apply(with_types("Gatekeeper", status));
    gatekeepers.patch_status("switch", &apply, &report).await?;

    let complete = json!({"metadata": {"annotations": {"sluice.dev/force-seen": "now"}}});
    let complete = Patch::Apply(with_types("Gate", complete));
    gates.patch("production", &apply, &complete).await?;
    Ok(())
}

#[tokio::test]
async fn the_controller_may_tell_and_take_the_lead() -> Result<()> {
    let cluster = installed().await?;
    let namespace = Namespace::create(cluster, "events").await?;
    let client = cluster.client_for(CONTROLLER).await?;

    let events: Api<Event> = Api::namespaced(client.clone(), namespace.name());
    let event = json!({
        "metadata": {"generateName": "production-"},
        "eventTime": "2026-11-21T10:00:00.000000Z",
        "reportingController": "gate-controller", "reportingInstance": "pod",
        "action": "Decide", "reason": "Closed", "type": "Normal",
        "regarding": {"apiVersion": "sluice.dev/v1alpha1", "kind": "Gate", "name": "production",
            "namespace": namespace.name()},
    });
    events.add(&object(event)?).await?;

    // By reviews: another test has the Lease itself.
    for (verb, name, allowed) in [
        ("create", None, true),
        ("get", Some(LEASE), true),
        ("update", Some(LEASE), true),
        ("get", Some("another"), false),
        ("update", Some("another"), false),
        ("delete", Some(LEASE), false),
    ] {
        let may = on_leases(&client, verb, name).await?;
        ensure!(may == allowed, "{verb} {name:?}: {may}");
    }
    Ok(())
}

/// Whether somebody has a right on a Lease in the release's namespace.
async fn on_leases(client: &Client, verb: &str, name: Option<&str>) -> Result<bool> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: Some("coordination.k8s.io".to_owned()),
                resource: Some("leases".to_owned()),
                namespace: Some("sluice-system".to_owned()),
                verb: Some(verb.to_owned()),
                name: name.map(str::to_owned),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let review = reviews.add(&review).await?;
    Ok(review.status.context("no answer")?.allowed)
}

/// Every right, one a line, as `group/resource verb`. Those of any authenticated user are left
/// out: they ask who they are and what they may.
async fn rights(user: &str, namespace: &str) -> Result<BTreeSet<String>> {
    let client = installed().await?.client_for(user).await?;
    let reviews: Api<SelfSubjectRulesReview> = Api::all(client);
    let review = SelfSubjectRulesReview {
        spec: SelfSubjectRulesReviewSpec {
            namespace: Some(namespace.to_owned()),
        },
        ..SelfSubjectRulesReview::default()
    };
    let answer = reviews.add(&review).await?;
    let SubjectRulesReviewStatus {
        incomplete,
        resource_rules,
        ..
    } = answer.status.context("no answer")?;
    ensure!(!incomplete, "the answer is incomplete");
    let mut rights = BTreeSet::new();
    for rule in resource_rules {
        let names = rule.resource_names.unwrap_or_default();
        let only = if names.is_empty() {
            String::new()
        } else {
            format!(" {}", names.join(","))
        };
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                let own = ["authentication.k8s.io", "authorization.k8s.io"];
                if own.contains(&group.as_str()) && resource.starts_with("self") {
                    continue;
                }
                let verbs = rule.verbs.iter();
                rights.extend(verbs.map(|verb| format!("{group}/{resource}{only} {verb}")));
            }
        }
    }
    Ok(rights)
}

fn lines(lists: &[(&str, &[&str])]) -> BTreeSet<String> {
    lists
        .iter()
        .flat_map(|(what, verbs)| verbs.iter().map(move |verb| format!("{what} {verb}")))
        .collect()
}

const READ: &[&str] = &["get", "list", "watch"];

#[tokio::test]
async fn the_controller_has_no_other_right() -> Result<()> {
    const POLICIES: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
    const BINDINGS: &str = "admissionregistration.k8s.io/validatingadmissionpolicybindings";
    let mut expected = lines(&[
        ("sluice.dev/approvals", READ),
        ("sluice.dev/gates", READ),
        ("sluice.dev/gates", &["patch", "override"]),
        ("sluice.dev/gatekeepers", READ),
        ("sluice.dev/pipelines", READ),
        ("sluice.dev/pullrequests", READ),
        ("sluice.dev/pullrequests", &["create", "patch", "delete"]),
        ("sluice.dev/pullrequests/status", &["patch"]),
        ("sluice.dev/gitrepositoryaccesses", READ),
        ("sluice.dev/gitrepositoryaccesses/status", &["patch"]),
        ("sluice.dev/promotionstrategies", READ),
        ("sluice.dev/promotionstrategies/status", &["patch"]),
        ("sluice.dev/commitstatuses", READ),
        ("sluice.dev/commitstatuses/status", &["patch"]),
        ("sluice.dev/revertcommits", READ),
        ("sluice.dev/revertcommits/status", &["patch"]),
        ("sluice.dev/rollouts", READ),
        ("sluice.dev/rollouts", &["patch"]),
        ("sluice.dev/rollouts/status", &["patch"]),
        ("sluice.dev/gates/status", &["patch"]),
        ("sluice.dev/gatekeepers/status", &["patch"]),
        ("sluice.dev/pipelines/status", &["patch"]),
        ("sluice.dev/gatedsources", READ),
        ("sluice.dev/gatedsources", &["patch"]),
        ("sluice.dev/gatedsources/status", &["patch"]),
        (
            "source.toolkit.fluxcd.io/externalartifacts/status",
            &["patch"],
        ),
        ("sluice.dev/gatepolicies", READ),
        ("sluice.dev/gatepolicies/status", &["patch"]),
        ("/namespaces", READ),
        ("/configmaps", READ),
        ("events.k8s.io/events", &["create"]),
        (POLICIES, READ),
        (BINDINGS, READ),
        ("authorization.k8s.io/subjectaccessreviews", &["create"]),
        ("/serviceaccounts", &["get"]),
    ]);
    let kinds = "\
        /pods apps/daemonsets apps/deployments apps/replicasets apps/statefulsets batch/cronjobs \
        batch/jobs helm.toolkit.fluxcd.io/helmreleases image.toolkit.fluxcd.io/imagepolicies \
        image.toolkit.fluxcd.io/imagerepositories \
        image.toolkit.fluxcd.io/imageupdateautomations \
        kustomize.toolkit.fluxcd.io/kustomizations source.toolkit.fluxcd.io/buckets \
        source.toolkit.fluxcd.io/externalartifacts source.toolkit.fluxcd.io/gitrepositories \
        source.toolkit.fluxcd.io/helmcharts source.toolkit.fluxcd.io/helmrepositories \
        source.toolkit.fluxcd.io/ocirepositories flagger.app/canaries argoproj.io/applications \
        argoproj.io/rollouts gitops.weave.works/gitopsclusters";
    let kinds = kinds.split_whitespace();
    expected.extend(kinds.clone().flat_map(|kind| lines(&[(kind, READ)])));
    // Children of gated sources are made, pinned and deleted.
    let sources = kinds.filter(|kind| kind.starts_with("source.toolkit.fluxcd.io/"));
    expected.extend(sources.flat_map(|kind| lines(&[(kind, &["create", "patch", "delete"])])));
    let mut there = expected.clone();
    let kubernetes = "discovery.k8s.io/endpointslices kubernetes";
    there.extend(lines(&[(kubernetes, &["get"])]));
    assert_eq!(rights(CONTROLLER, "default").await?, there);
    let lease = format!("coordination.k8s.io/leases {LEASE}");
    expected.extend(lines(&[
        (&*lease, &["get", "update"]),
        ("coordination.k8s.io/leases", &["create"]),
    ]));
    assert_eq!(rights(CONTROLLER, "sluice-system").await?, expected);
    Ok(())
}

/// The demo has no Lease, and else the same rights.
#[test]
fn the_demo_gives_the_controller_what_the_chart_does() -> Result<()> {
    fn rules(documents: &[Document], role: &str) -> Result<Vec<Value>> {
        let is_role = |document: &&Document| {
            let types = document.object.types.as_ref();
            types.is_some_and(|types| types.kind == "ClusterRole")
                && document.object.name_any() == role
        };
        let found = documents.iter().find(is_role);
        let found = found.with_context(|| format!("no ClusterRole {role}"))?;
        let rules = found.object.data["rules"].as_array();
        Ok(rules.context("no rules")?.clone())
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let demo = apply::read(&tests.join("../xtask/src/demo/rights.yaml"))?;
    let chart = Helm::ensure(&Stderr::new())?.template(&Release::default())?;
    assert_eq!(
        rules(&demo, "sluice-demo-controller")?,
        rules(&chart, "gate-controller")?
    );
    Ok(())
}

#[tokio::test]
async fn what_the_controller_must_not_do_is_forbidden() -> Result<()> {
    fn forbidden<T>(what: &str, answer: kube::Result<T>) {
        let error = answer
            .err()
            .unwrap_or_else(|| panic!("{what} was let through"));
        assert!(error.to_string().contains("cannot"), "{what}: {error}");
    }
    let cluster = installed().await?;
    let namespace = Namespace::create(cluster, "denied").await?;
    create_gate_and_gatekeeper(&cluster.client().await?, namespace.name()).await?;
    let client = cluster.client_for(CONTROLLER).await?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace.name());
    forbidden("get a Secret", secrets.get("any").await);
    forbidden("list Secrets", secrets.list(&ListParams::default()).await);
    let gates: Api<Gate> = Api::namespaced(client.clone(), namespace.name());
    forbidden("delete a gate", gates.remove("production").await);
    let gatekeepers: Api<Gatekeeper> = Api::namespaced(client.clone(), namespace.name());
    let open = json!({"spec": {"manual": {"state": "closed"}}});
    forbidden("throw a switch", gatekeepers.merge("switch", open).await);
    // What a Rollout writes, its account writes.
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace.name());
    let none = json!({"spec": {"replicas": 0}});
    forbidden("scale a Deployment", deployments.merge("any", none).await);
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let lax = json!({"spec": {"failurePolicy": "Ignore"}});
    forbidden(
        "weaken a policy",
        policies.merge("sluice-gate-overrides", lax).await,
    );
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace.name());
    forbidden("read a Lease elsewhere", leases.get(LEASE).await);
    let leases: Api<Lease> = Api::namespaced(client, "sluice-system");
    forbidden("read another's Lease", leases.get("any").await);
    Ok(())
}

/// Binds `user` to a ClusterRole in `namespace`, and waits until that is in effect: until they
/// have a right on one of our kinds.
async fn bind(namespace: &Namespace, user: &str, role: &str) -> Result<()> {
    let client = installed().await?.client().await?;
    let bindings: Api<RoleBinding> = Api::namespaced(client, namespace.name());
    bindings.add(&binding(user, role)?).await?;
    poll(DEADLINE, "the binding to be in effect", async || {
        let rights = rights(user, namespace.name()).await?;
        let found = rights.iter().any(|right| right.starts_with("sluice.dev/"));
        ensure!(found, "{rights:?}");
        Ok(())
    })
    .await
}

fn binding(user: &str, role: &str) -> Result<RoleBinding> {
    object(json!({
        "metadata": {"generateName": "test-"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }))
}

/// What a user with `role` may do with our kinds.
async fn rights_of(role: &str) -> Result<BTreeSet<String>> {
    let cluster = installed().await?;
    let namespace = Namespace::create(cluster, role).await?;
    let user = format!("{role}-user");
    bind(&namespace, &user, role).await?;
    let mut rights = rights(&user, namespace.name()).await?;
    rights.retain(|right| right.starts_with("sluice.dev/"));
    Ok(rights)
}

/// The cluster's own roles have taken up ours, and `override` is in none of them.
#[tokio::test]
async fn the_clusters_own_roles_view_and_edit_but_do_not_force() -> Result<()> {
    const WRITE: &[&str] = &["create", "update", "patch", "delete", "deletecollection"];
    let view = lines(&[
        ("sluice.dev/approvals", READ),
        ("sluice.dev/gatedsources", READ),
        ("sluice.dev/gatedsources/status", READ),
        ("sluice.dev/gates", READ),
        ("sluice.dev/gates/status", READ),
        ("sluice.dev/gatekeepers", READ),
        ("sluice.dev/gatekeepers/status", READ),
        ("sluice.dev/gatepolicies", READ),
        ("sluice.dev/gatepolicies/status", READ),
        ("sluice.dev/pipelines", READ),
        ("sluice.dev/pipelines/status", READ),
        ("sluice.dev/pullrequests", READ),
        ("sluice.dev/pullrequests/status", READ),
        ("sluice.dev/gitrepositoryaccesses", READ),
        ("sluice.dev/gitrepositoryaccesses/status", READ),
        ("sluice.dev/promotionstrategies", READ),
        ("sluice.dev/promotionstrategies/status", READ),
        ("sluice.dev/commitstatuses", READ),
        ("sluice.dev/commitstatuses/status", READ),
        ("sluice.dev/revertcommits", READ),
        ("sluice.dev/revertcommits/status", READ),
        ("sluice.dev/rollouts", READ),
        ("sluice.dev/rollouts/status", READ),
    ]);
    let mut edit = lines(&[
        ("sluice.dev/gatedsources", WRITE),
        ("sluice.dev/gates", WRITE),
        ("sluice.dev/gatekeepers", WRITE),
        ("sluice.dev/pipelines", WRITE),
        ("sluice.dev/gitrepositoryaccesses", WRITE),
        ("sluice.dev/promotionstrategies", WRITE),
        ("sluice.dev/rollouts", WRITE),
    ]);
    edit.extend(view.clone());
    assert_eq!(rights_of("view").await?, view);
    assert_eq!(rights_of("edit").await?, edit);
    assert_eq!(rights_of("admin").await?, edit);
    // Besides what everybody may.
    let with =
        |resource, verbs: &[&str]| lines(&[(resource, verbs), ("sluice.dev/gatepolicies", READ)]);
    let force = with("sluice.dev/gates", &["get", "override", "patch"]);
    assert_eq!(rights_of("sluice-gate-override").await?, force);
    let approve = ["create", "delete", "get", "list", "watch"];
    let approve = with("sluice.dev/approvals", &approve);
    assert_eq!(rights_of("sluice-approve").await?, approve);
    let check = with("sluice.dev/gates", &["check"]);
    assert_eq!(rights_of("sluice-check").await?, check);
    let baseline = with("sluice.dev/gatedsources", &["baseline"]);
    assert_eq!(rights_of("sluice-baseline").await?, baseline);
    let operate = ["get", "patch", "pause", "retry"];
    let operate = with("sluice.dev/pipelines", &operate);
    assert_eq!(rights_of("sluice-pipeline-operate").await?, operate);
    let vote = lines(&[
        ("sluice.dev/approvals", &["create", "delete"]),
        ("sluice.dev/approvals", READ),
        ("sluice.dev/environments", &["approve"]),
        ("sluice.dev/gatepolicies", READ),
        ("sluice.dev/pipelines", READ),
    ]);
    assert_eq!(rights_of("sluice-pipeline-approve").await?, vote);
    let written = [&["create", "update", "patch", "delete"], READ].concat();
    let revert = lines(&[
        ("sluice.dev/revertcommits", &written),
        ("sluice.dev/promotionstrategies", READ),
        ("sluice.dev/gatepolicies", READ),
    ]);
    assert_eq!(rights_of("sluice-revert").await?, revert);
    let report = with("sluice.dev/commitstatuses", &written);
    assert_eq!(rights_of("sluice-commit-status").await?, report);
    let policies = written;
    let policies = lines(&[("sluice.dev/gatepolicies", &policies)]);
    assert_eq!(rights_of("sluice-gate-policy-admin").await?, policies);
    Ok(())
}

#[tokio::test]
async fn an_admin_of_a_namespace_cannot_grant_override() -> Result<()> {
    let cluster = installed().await?;
    let namespace = Namespace::create(cluster, "grants").await?;
    bind(&namespace, "alice", "admin").await?;
    let alice = cluster.client_for("alice").await?;
    let bindings: Api<RoleBinding> = Api::namespaced(alice, namespace.name());
    bindings.add(&binding("bob", "sluice-edit")?).await?;
    let refused = bindings
        .add(&binding("alice", "sluice-gate-override")?)
        .await;
    let error = refused
        .err()
        .context("alice granted herself override")?
        .to_string();
    assert!(
        error.contains("attempting to grant RBAC permissions not currently held"),
        "{error}"
    );
    Ok(())
}
