//! What pipelines need: the Secrets that they name, and, on request, a second Deployment for forges.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{ClusterRole, Role, RoleBinding};
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sluice_core::operation::shard;
use sluice_tests::apply::Document;

use super::values::render;

const MAIN: &str = "gate-controller";
const FORGE: &str = "gate-controller-forge";

/// The object of this kind and name, in a namespace if it is in one.
fn named<K: DeserializeOwned>(documents: &[Document], kind: &str, name: &str) -> Result<K> {
    let is_it = |document: &&Document| {
        let types = document.object.types.as_ref();
        types.is_some_and(|it| it.kind == kind) && document.object.name_any() == name
    };
    let found = documents.iter().find(is_it);
    let found = found.with_context(|| format!("no {kind} {name}"))?;
    Ok(serde_json::from_value(json!(found.object))?)
}

fn secrets() -> Value {
    json!([
        {"namespace": "apps", "names": ["git-token"], "for": "forge"},
        {"namespace": "apps", "names": ["staging-kubeconfig"], "for": "kubeconfig"},
    ])
}

/// The verbs on Secrets, their names, and the account that has them.
fn granted(documents: &[Document], purpose: &str) -> Result<(Vec<String>, Vec<String>, String)> {
    let name = format!("{MAIN}-{purpose}-secrets");
    let role: Role = named(documents, "Role", &name)?;
    ensure!(role.metadata.namespace.as_deref() == Some("apps"));
    let rule = role.rules.into_iter().flatten().next().context("no rule")?;
    let binding: RoleBinding = named(documents, "RoleBinding", &name)?;
    let mut subjects = binding.subjects.into_iter().flatten();
    let account = subjects.next().context("no subject")?.name;
    ensure!(subjects.next().is_none(), "more than one subject");
    Ok((rule.verbs, rule.resource_names.unwrap_or_default(), account))
}

#[test]
fn secrets_of_pipelines_are_read_by_name_alone() -> Result<()> {
    let documents = render(json!({"pipelines": {"secrets": secrets()}}))?;
    let (verbs, names, account) = granted(&documents, "forge")?;
    assert_eq!(
        (verbs, names),
        (vec!["get".to_owned()], vec!["git-token".to_owned()])
    );
    assert_eq!(account, MAIN);
    let (verbs, names, account) = granted(&documents, "kubeconfig")?;
    assert_eq!(verbs, ["get", "list", "watch"]);
    assert_eq!(
        (names, account.as_str()),
        (vec!["staging-kubeconfig".to_owned()], MAIN)
    );
    let policy: NetworkPolicy = named(&documents, "NetworkPolicy", MAIN)?;
    let egress = policy.spec.and_then(|spec| spec.egress).unwrap_or_default();
    let port = |port: u16| json!({"port": port, "protocol": "TCP"});
    let last = json!(egress.last().context("no egress")?);
    assert_eq!(last, json!({"ports": [port(443), port(6443)]}));
    Ok(())
}

/// Without a word about pipelines, and what works at forges.
#[test]
fn what_opens_forges_is_read_by_who_works_there() -> Result<()> {
    let secrets = json!([{"namespace": "apps", "names": ["git-token", "hook"]}]);
    for (separate, account) in [(false, MAIN), (true, FORGE)] {
        let documents = render(json!({
            "forges": {"secrets": secrets},
            "pipelines": {"forge": {"separate": separate}},
        }))?;
        let name = format!("{MAIN}-forges");
        let role: Role = named(&documents, "Role", &name)?;
        let rules = json!(role.rules);
        let expected = json!([{
            "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["git-token", "hook"],
            "verbs": ["get"],
        }]);
        assert_eq!(rules, expected);
        let binding: RoleBinding = named(&documents, "RoleBinding", &name)?;
        let subjects = binding.subjects.into_iter().flatten();
        let subjects: Vec<_> = subjects.map(|subject| subject.name).collect();
        assert_eq!(subjects, [account]);
        let policy: NetworkPolicy = named(&documents, "NetworkPolicy", account)?;
        let egress = policy.spec.and_then(|spec| spec.egress).unwrap_or_default();
        let last = json!(egress.last().context("no egress")?);
        assert_eq!(last["ports"].as_array().map(Vec::len), Some(2));
    }
    Ok(())
}

/// Gates are decided there, too: by the same evidence, and into an audit log of its own.
#[test]
fn who_works_at_forges_decides_for_itself() -> Result<()> {
    let values = |path: &str| {
        json!({
            "audit": {"path": path, "volume": {"emptyDir": {}}},
            "evidence": {"secrets": [{"namespace": "apps", "names": ["prometheus"]}]},
            "pipelines": {"forge": {"separate": true}},
        })
    };
    let path = "/var/log/sluice/$(POD_NAME).log";
    let documents = render(values(path))?;
    let binding: RoleBinding = named(&documents, "RoleBinding", &format!("{MAIN}-evidence"))?;
    let subjects = binding.subjects.into_iter().flatten();
    let subjects: Vec<_> = subjects.map(|subject| subject.name).collect();
    assert_eq!(subjects, [MAIN, FORGE]);
    let deployment: Deployment = named(&documents, "Deployment", FORGE)?;
    let pod = deployment.spec.template.spec.context("no pod")?;
    let arguments = pod.containers[0].args.clone().unwrap_or_default();
    ensure!(arguments.contains(&format!("--audit-log={path}")));
    let same = render(values("/var/log/sluice/audit.log"));
    let refused = same.err().context("it was let through")?.to_string();
    ensure!(refused.contains("write $(POD_NAME) into the name of the file"));
    Ok(())
}

/// Which resources of these groups the controller may read.
fn readable(values: Value, groups: &[&str]) -> Result<Vec<(String, Vec<String>)>> {
    let role: ClusterRole = named(&render(values)?, "ClusterRole", MAIN)?;
    let rules = role.rules.into_iter().flatten();
    let of = rules.filter(|rule| {
        let mut all = rule.api_groups.iter().flatten();
        all.any(|group| groups.contains(&group.as_str()))
    });
    let found = of.flat_map(|rule| {
        let verbs = rule.verbs;
        let resources = rule.resources.unwrap_or_default().into_iter();
        resources.map(move |resource| (resource, verbs.clone()))
    });
    Ok(found.collect())
}

/// Also where nothing is granted to gated sources and to gatekeepers over objects.
#[test]
fn apps_and_what_names_their_clusters_are_read() -> Result<()> {
    const READ: [&str; 3] = ["get", "list", "watch"];
    let groups = [
        "kustomize.toolkit.fluxcd.io",
        "helm.toolkit.fluxcd.io",
        "gitops.weave.works",
        "infra.contrib.fluxcd.io",
    ];
    let alone = json!({"gatedSources": {"enabled": false}, "objects": {"rules": []}});
    let is = |resource: &str| (resource.to_owned(), READ.map(str::to_owned).to_vec());
    let expected = ["kustomizations", "helmreleases", "gitopsclusters"].map(is);
    assert_eq!(readable(alone.clone(), &groups)?, expected);

    let mut more = alone;
    more["pipelines"]["kinds"] =
        json!([{"apiGroups": ["infra.contrib.fluxcd.io"], "resources": ["terraforms"]}]);
    let last = readable(more, &groups)?.pop();
    assert_eq!(last, Some(is("terraforms")));
    Ok(())
}

#[test]
fn the_work_at_forges_may_have_a_deployment_and_an_account_of_its_own() -> Result<()> {
    let values = json!({"pipelines": {"secrets": secrets(), "forge": {"separate": true}}});
    let documents = render(values)?;
    let kinds = [
        (
            MAIN,
            "Gate,GatePolicy,GatedSource,Gatekeeper,Pipeline,Rollout",
        ),
        (
            FORGE,
            "CommitStatus,GitRepositoryAccess,PromotionStrategy,PullRequest,RevertCommit",
        ),
    ];
    for (name, kinds) in kinds {
        let deployment: Deployment = named(&documents, "Deployment", name)?;
        let spec = deployment.spec;
        let template = spec.template;
        let labels = template
            .metadata
            .and_then(|it| it.labels)
            .unwrap_or_default();
        assert_eq!(labels["app.kubernetes.io/name"], name);
        let selector = spec.selector.match_labels.unwrap_or_default();
        assert_eq!(selector["app.kubernetes.io/name"], name);
        let pod = template.spec.context("no pod")?;
        assert_eq!(pod.service_account_name.as_deref(), Some(name));
        let arguments = pod.containers[0].args.clone().unwrap_or_default();
        ensure!(
            arguments.contains(&format!("--kinds={kinds}")),
            "{arguments:?}"
        );
        // Each has a Lease, and no right on that of the other.
        let role: Role = named(&documents, "Role", name)?;
        let rules = role.rules.into_iter().flatten();
        let leases: Vec<_> = rules
            .filter_map(|rule| rule.resource_names)
            .flatten()
            .collect();
        let kinds: Vec<_> = kinds.split(',').collect();
        assert_eq!(leases, [shard::lease(None, &kinds)]);
        let policy: NetworkPolicy = named(&documents, "NetworkPolicy", name)?;
        let pods = policy
            .spec
            .and_then(|spec| spec.pod_selector)
            .unwrap_or_default();
        assert_eq!(
            pods.match_labels.unwrap_or_default()["app.kubernetes.io/name"],
            name
        );
    }
    assert_eq!(granted(&documents, "forge")?.2, FORGE);
    assert_eq!(granted(&documents, "kubeconfig")?.2, MAIN);
    let writes = |name: &str| -> Result<Vec<String>> {
        let role: ClusterRole = named(&documents, "ClusterRole", name)?;
        let rules = role.rules.into_iter().flatten();
        let written = rules.filter(|rule| rule.verbs.iter().any(|verb| verb == "patch"));
        Ok(written
            .flat_map(|rule| rule.resources.unwrap_or_default())
            .collect())
    };
    let at_forges = [
        "pullrequests",
        "commitstatuses/status",
        "gitrepositoryaccesses/status",
        "promotionstrategies/status",
        "pullrequests/status",
        "revertcommits/status",
    ];
    assert_eq!(writes(FORGE)?, at_forges);
    // Both make PullRequests.
    let main = writes(MAIN)?;
    ensure!(!main.iter().any(|it| at_forges[1..].contains(&it.as_str())));
    let alone = json!({
        "pipelines": {"forge": {"separate": true}},
        "serviceAccount": {"create": false, "name": "sluice"},
    });
    let refused = render(alone).err().context("it was let through")?;
    ensure!(
        refused
            .to_string()
            .contains("set serviceAccount.create to true"),
        "{refused}"
    );
    Ok(())
}

/// Those who work on repositories take webhooks, and no others.
#[test]
fn webhooks_lead_to_those_who_work_on_repositories() -> Result<()> {
    for (separate, takes) in [(false, MAIN), (true, FORGE)] {
        let documents = render(json!({
            "webhook": {"enabled": true, "from": [{"podSelector": {}}]},
            "pipelines": {"forge": {"separate": separate}},
        }))?;
        let service: Service = named(&documents, "Service", &format!("{MAIN}-webhook"))?;
        let spec = json!(service.spec);
        assert_eq!(spec["selector"]["app.kubernetes.io/name"], takes);
        assert_eq!(
            spec["ports"],
            json!([{"name": "http", "port": 80, "targetPort": "webhook", "protocol": "TCP"}])
        );
        for name in [MAIN, FORGE].iter().take(if separate { 2 } else { 1 }) {
            let deployment: Deployment = named(&documents, "Deployment", name)?;
            let pod = deployment.spec.template.spec.context("no pod")?;
            let container = json!(pod.containers[0]);
            let has = |field: &str, it: &Value| {
                let all = container[field].as_array();
                all.is_some_and(|all| all.contains(it))
            };
            let port = json!({"name": "webhook", "containerPort": 9292, "protocol": "TCP"});
            let policy: NetworkPolicy = named(&documents, "NetworkPolicy", name)?;
            let policy = json!(policy.spec);
            let mut opened = policy["ingress"].as_array().into_iter().flatten();
            let opened = opened.find(|rule| rule["ports"][0]["port"] == "webhook");
            let found = [
                has("args", &json!("--webhook-addr=:9292")),
                has("ports", &port),
                opened.is_some_and(|rule| rule["from"] == json!([{"podSelector": {}}])),
            ];
            assert_eq!(found, [*name == takes; 3], "{name}");
        }
    }
    Ok(())
}

/// What finds pods by their labels finds those of one Deployment, and there is one of it for each.
#[test]
fn each_deployment_is_scraped_and_has_a_budget_of_its_own() -> Result<()> {
    let selected = |separate: bool, kind: &str| -> Result<Vec<[String; 2]>> {
        let documents = render(json!({
            "pipelines": {"forge": {"separate": separate}},
            "metrics": {"podMonitor": {"enabled": true, "labels": {"release": "prometheus"}}},
            "podDisruptionBudget": {"enabled": true},
        }))?;
        let of_kind = documents.iter().filter(|document| {
            let types = document.object.types.as_ref();
            types.is_some_and(|types| types.kind == kind)
        });
        let selected = of_kind.map(|document| {
            let spec = &document.object.data["spec"];
            let selector = match kind {
                "Service" => &spec["selector"],
                _ => &spec["selector"]["matchLabels"],
            };
            let name = selector["app.kubernetes.io/name"].as_str();
            let name = name.context("it selects by no name")?.to_owned();
            Ok([document.object.name_any(), name])
        });
        selected.collect()
    };
    let one = |suffix: &str, of: &str| [format!("{of}{suffix}"), of.to_owned()];
    for (kind, suffix) in [
        ("PodMonitor", ""),
        ("PodDisruptionBudget", ""),
        ("Service", "-metrics"),
    ] {
        let both = [one(suffix, MAIN), one(suffix, FORGE)];
        assert_eq!(selected(false, kind)?, both[..1], "{kind}");
        assert_eq!(selected(true, kind)?, both, "{kind}");
    }
    Ok(())
}
