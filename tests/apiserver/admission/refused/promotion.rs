//! Mistakes in the kinds of promotion by branches.

use anyhow::{Context, Result, ensure};
use kube::Api;
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use sluice_tests::Writes;

use super::super::object;
use super::{Judge, Mistake};

/// Mistakes in an access to a repository of Gitea, but for what is written here.
#[rustfmt::skip]
const ACCESSES: &[Mistake] = &[
    ("{provider: svn}", "spec.provider", "supported values", "="),
    ("{provider: null}", "spec.provider", "Required value", "="),
    ("{url: null}", "spec.url", "Required value", "="),
    ("{url: 'http://git.example.com/a/b'}", "spec.url", "over https alone; write https://", "="),
    ("{url: 'ssh://git@git.example.com/a/b'}", "spec.url", "over https alone; write https://", "="),
    ("{url: 'https://me@git.example.com/a/b'}", "spec.url", "no user and no query in it", "="),
    ("{url: 'https://git.example.com/a/b?x=1'}", "spec.url", "no user and no query in it", "="),
    ("{secretRef: null}", "spec.secretRef", "Required value", "="),
    ("{secretRef: {name: A}}", "spec.secretRef.name", "should match", "="),
    ("{interval: 9s}", "spec.interval", "must be between 10s and 1h", "="),
    ("{interval: 61m}", "spec.interval", "must be between 10s and 1h", "="),
    ("{interval: soon}", "spec.interval", "should match", "="),
    ("{webhook: {}}", "spec.webhook.secretRef", "Required value", "="),
    ("{webhook: {secretRef: {name: A}}}", "spec.webhook.secretRef.name", "should match", "="),
    ("{webhook: {secretRef: {name: shop-push}}}", "spec.webhook", "must not be what opens the repository", "spec.webhook.secretRef"),
    ("{provider: github, githubApp: {appID: 1}}", "spec.githubApp.installationID", "Required value", "="),
    ("{allow: [{namespaces: [a]}]}", "spec.allow[0].branches", "Required value", "="),
    ("{allow: [{namespaces: [], branches: [a]}]}", "spec.allow[0].namespaces", "at least 1 items", "="),
    ("{allow: [{namespaces: ['team-*'], branches: [a]}]}", "spec.allow[0].namespaces[0]", "should match", "="),
    ("{allow: [{namespaces: [a], branches: ['']}]}", "spec.allow[0].branches[0]", "at least 1 chars long", "="),
    ("{author: {name: '<a>', email: a@b.c}}", "spec.author.name", "should match", "="),
    ("{author: {name: a, email: abc}}", "spec.author.email", "should match", "="),
];

/// Mistakes in a strategy of two environments with a check, but for what is written here.
#[rustfmt::skip]
const STRATEGIES: &[Mistake] = &[
    ("{repoRef: null}", "spec.repoRef", "Required value", "="),
    ("{repoRef: {name: A}}", "spec.repoRef.name", "should match", "="),
    ("{environments: null}", "spec.environments", "Required value", "="),
    ("{environments: []}", "spec.environments", "at least 1 items", "="),
    ("{environments: [{branch: a..b}]}", "spec.environments[0].branch", "without refs/heads/, such as env/prod", "="),
    ("{environments: [{branch: -a}]}", "spec.environments[0].branch", "write the name of a branch", "="),
    ("{environments: [{branch: a/.b}]}", "spec.environments[0].branch", "write the name of a branch", "="),
    ("{environments: [{branch: a.lock}]}", "spec.environments[0].branch", "write the name of a branch", "="),
    ("{environments: [{branch: a}, {branch: a}]}", "spec.environments", "a branch is listed twice", "spec.environments[1].branch"),
    ("{environments: [{branch: a}, {branch: a-next}]}", "spec.environments", "is the proposed branch of another one", "spec.environments[1].branch"),
    ("{environments: [{branch: main}]}", "spec.dryBranch", "is the branch of an environment", "="),
    ("{dryBranch: b-next}", "spec.dryBranch", "or its proposed branch", "="),
    ("{dryBranch: ''}", "spec.dryBranch", "at least 1 chars long", "="),
    ("{proposedBranchSuffix: /next}", "spec.proposedBranchSuffix", "should match", "="),
    ("{activeCommitStatuses: null}", "spec.environments", "add a check, or write unchecked: true", "spec.environments[0]"),
    ("{activeCommitStatuses: []}", "spec.environments", "add a check, or write unchecked: true", "spec.environments[0]"),
    ("{activeCommitStatuses: null, environments: [{branch: a}, {branch: b, after: []}, {branch: c, after: [a]}]}", "spec.environments", "one that others wait for", "spec.environments[0]"),
    ("{activeCommitStatuses: [{key: a}, {key: a}]}", "spec.activeCommitStatuses", "a key is listed twice", "spec.activeCommitStatuses[1].key"),
    ("{activeCommitStatuses: [{key: -a}]}", "spec.activeCommitStatuses[0].key", "should match", "="),
    ("{activeCommitStatuses: [{key: a, forge: b, flux: {kustomizations: [{name: a}]}}]}", "spec.activeCommitStatuses[0]", "write one of flux and forge", "spec.activeCommitStatuses[0].forge"),
    ("{activeCommitStatuses: [{key: a, flux: {kustomizations: []}}]}", "spec.activeCommitStatuses[0].flux.kustomizations", "at least 1 items", "="),
    ("{proposedCommitStatuses: [{key: a}, {key: a}]}", "spec.proposedCommitStatuses", "a key is listed twice", "spec.proposedCommitStatuses[1].key"),
    ("{proposedCommitStatuses: [{key: a, flux: {kustomizations: [{name: a}]}}]}", "spec.proposedCommitStatuses", "write `flux` among activeCommitStatuses", "spec.proposedCommitStatuses[0].flux"),
    ("{environments: [{branch: a, activeCommitStatuses: [{key: a}, {key: a}]}]}", "spec.environments[0].activeCommitStatuses", "a key is listed twice", "spec.environments[0].activeCommitStatuses[1].key"),
    ("{environments: [{branch: a, proposedCommitStatuses: [{key: a}, {key: a}]}]}", "spec.environments[0].proposedCommitStatuses", "a key is listed twice", "spec.environments[0].proposedCommitStatuses[1].key"),
    ("{environments: [{branch: a, proposedCommitStatuses: [{key: a, flux: {kustomizations: [{name: a}]}}]}]}", "spec.environments[0].proposedCommitStatuses", "write `flux` among activeCommitStatuses", "spec.environments[0].proposedCommitStatuses[0].flux"),
    ("{environments: [{branch: a, gates: {refs: [{name: a}, {name: a}]}}]}", "spec.environments[0].gates.refs", "is listed twice", "spec.environments[0].gates.refs[1]"),
    ("{environments: [{branch: a, mergeMethod: octopus}]}", "spec.environments[0].mergeMethod", "supported values", "="),
    ("{environments: [{branch: a, foreignCommits: Ignore}]}", "spec.environments[0].foreignCommits", "supported values", "="),
    ("{commitStatusNamespaces: ['team-*']}", "spec.commitStatusNamespaces[0]", "should match", "="),
    ("{holdLabel: ''}", "spec.holdLabel", "at least 1 chars long", "="),
    ("{statusName: ''}", "spec.statusName", "at least 1 chars long", "="),
    ("{statusName: ci/build}", "spec.statusName", "begin it with `sluice/`", "="),
    ("{statusName: sluice/promotion/env}", "spec.statusName", "write one word after `sluice/`", "="),
    ("{statusName: sluice/Dry}", "spec.statusName", "which is neither dry nor gate", "="),
    ("{statusName: sluice/}", "spec.statusName", "write one word after `sluice/`", "="),
    ("{suspend: 'yes'}", "spec.suspend", "must be of type boolean", "="),
];

/// Mistakes in a commit status, but for what is written here.
#[rustfmt::skip]
const COMMIT_STATUSES: &[Mistake] = &[
    ("{repoRef: null}", "spec.repoRef", "Required value", "="),
    ("{sha: 7f3a}", "spec.sha", "at least 40 chars long", "="),
    ("{sha: 7F3A7F3A7F3A7F3A7F3A7F3A7F3A7F3A7F3A7F3A}", "spec.sha", "should match", "="),
    ("{sha: null}", "spec.sha", "Required value", "="),
    ("{name: sluice/promotion}", "spec.name", "are the controller's; write another one", "="),
    ("{name: ''}", "spec.name", "at least 1 chars long", "="),
    ("{phase: done}", "spec.phase", "supported values", "="),
    ("{phase: null}", "spec.phase", "Required value", "="),
    ("{url: ci.example.com}", "spec.url", "begins with https:// or http://", "="),
    ("{expiresAt: tomorrow}", "spec.expiresAt", "must be of type date-time", "="),
];

/// Mistakes in a revert, but for what is written here.
#[rustfmt::skip]
const REVERTS: &[Mistake] = &[
    ("{repoRef: null}", "spec.repoRef", "Required value", "="),
    ("{activeBranch: ''}", "spec.activeBranch", "at least 1 chars long", "="),
    ("{from: null}", "spec.from", "Required value", "="),
    ("{from: 7f3a}", "spec.from", "at least 40 chars long", "="),
    ("{drySHA: null}", "spec.drySHA", "Required value", "="),
    ("{from: 7F3A7F3A7F3A7F3A7F3A7F3A7F3A7F3A7F3A7F3A}", "spec.from", "should match", "="),
    ("{drySHA: HEAD}", "spec.drySHA", "at least 40 chars long", "="),
    ("{hydratedSHA: main}", "spec.hydratedSHA", "at least 40 chars long", "="),
    ("{fixedBy: v1.2.3}", "spec.fixedBy", "at least 40 chars long", "="),
    ("{merge: Later}", "spec.merge", "supported values", "="),
    ("{reason: ''}", "spec.reason", "at least 1 chars long", "="),
    ("{by: null}", "spec.by", "Required value", "="),
];

fn access() -> Value {
    json!({
        "provider": "gitea", "url": "https://git.example.com/acme/shop.git",
        "secretRef": {"name": "shop-push"},
    })
}

fn strategy() -> Value {
    json!({
        "repoRef": {"name": "shop"}, "activeCommitStatuses": [{"key": "health"}],
        "environments": [{"branch": "a"}, {"branch": "b"}],
    })
}

fn commit_status() -> Value {
    json!({
        "repoRef": {"name": "shop"}, "sha": "7f3a".repeat(10), "name": "load-test",
        "phase": "success",
    })
}

fn revert() -> Value {
    json!({
        "repoRef": {"name": "shop"}, "activeBranch": "env/prod", "from": "7f3a".repeat(10),
        "drySHA": "b5d8".repeat(10), "reason": "INC-4711", "by": "alice",
    })
}

/// The fields of `whole`, in which `other` takes the place of those that it has.
pub(super) fn with(mut whole: Value, other: &str) -> Result<String> {
    let other: Value = serde_saphyr::from_str(other)?;
    let fields = whole.as_object_mut().context("no object")?;
    fields.extend(other.as_object().context("no object")?.clone());
    fields.retain(|_, value| !value.is_null());
    Ok(whole.to_string())
}

pub(super) async fn refuses(kind: &str, whole: Value, table: &'static [Mistake]) -> Result<()> {
    let judge = Judge::new().await?;
    let table: Vec<_> = table
        .iter()
        .map(|mistake| Ok((with(whole.clone(), mistake.0)?, mistake)))
        .collect::<Result<_>>()?;
    judge.refuses_all(kind, "", table.into_iter()).await
}

pub(super) async fn accepts(kind: &str, whole: Value, right: &[&str]) -> Result<()> {
    let judge = Judge::new().await?;
    for other in right {
        judge
            .accepts(&object(kind, &with(whole.clone(), other)?)?)
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn mistakes_in_accesses_are_refused() -> Result<()> {
    refuses("GitRepositoryAccess", access(), ACCESSES).await?;
    let all = "{provider: github, githubApp: {appID: 1, installationID: 2}, interval: 10s, \
               author: {name: Sluice, email: sluice@example.com}, \
               allow: [{namespaces: [team-a], branches: ['env/*', '**']}]}";
    accepts(
        "GitRepositoryAccess",
        access(),
        &["{}", "{interval: 1h}", all],
    )
    .await
}

#[tokio::test]
async fn mistakes_in_strategies_are_refused() -> Result<()> {
    refuses("PromotionStrategy", strategy(), STRATEGIES).await?;
    let gates = "{refs: [{name: a}]}";
    let all = format!(
        "{{dryBranch: trunk, proposedBranchSuffix: -proposed, holdLabel: wait, suspend: true, \
         statusName: promoter-previous-environment, commitStatusNamespaces: [ci], \
         activeCommitStatuses: [{{key: flux, flux: {{kustomizations: [{{name: a, namespace: b}}]}}}}, \
         {{key: ci, forge: ci/test}}], proposedCommitStatuses: [{{key: lint}}], \
         environments: [{{branch: env/dev}}, {{branch: env/eu, after: [env/dev], gates: {gates}, \
         activeGates: {gates}, revertGates: {gates}, autoMerge: false, mergeMethod: squash, \
         foreignCommits: Overwrite, proposedCommitStatuses: [{{key: own}}]}}, \
         {{branch: env/us, after: [env/dev]}}, {{branch: env/last, after: [env/eu, env/us]}}]}}"
    );
    let right = [
        "{}",
        &all,
        "{statusName: sluice/gates}",
        // Nobody waits for one that is alone, for the last one, or for those that stand for themselves.
        "{activeCommitStatuses: null, environments: [{branch: a}]}",
        "{activeCommitStatuses: null, environments: [{branch: a}, {branch: b, after: []}]}",
        "{activeCommitStatuses: null, environments: [{branch: a, unchecked: true}, {branch: b}]}",
        "{activeCommitStatuses: null, environments: [{branch: a, activeGates: {refs: [{name: g}]}}, {branch: b}]}",
        "{activeCommitStatuses: null, environments: [{branch: a, activeCommitStatuses: [{key: k}]}, \
         {branch: b, after: [a]}, {branch: c, after: [a]}]}",
    ];
    accepts("PromotionStrategy", strategy(), &right).await
}

/// As many as there may be, which is also what the rules have to be cheap enough for.
#[tokio::test]
async fn strategies_have_a_size() -> Result<()> {
    let judge = Judge::new().await?;
    let of = |count: usize| {
        let branch = |n: usize| format!("env/{}-{n:02}", "x".repeat(180));
        let environment = |n: usize| json!({"branch": branch(n), "after": (0..n).map(branch).collect::<Vec<_>>()});
        let environments: Vec<Value> = (0..count).map(environment).collect();
        let other = json!({"environments": environments});
        object("PromotionStrategy", &with(strategy(), &other.to_string())?)
    };
    judge.accepts(&of(16)?).await?;
    let mistake = ("", "spec.environments", "must have at most 16 items", "=");
    judge.refuses("", of(17)?, &mistake).await?;
    let mut long = of(1)?;
    long["metadata"]["name"] = "a".repeat(51).into();
    let mistake = (
        "",
        "",
        "metadata.name: at most 50 characters",
        "metadata.name",
    );
    judge.refuses("", long.clone(), &mistake).await?;
    long["metadata"]["name"] = "a".repeat(50).into();
    judge.accepts(&long).await
}

#[tokio::test]
async fn mistakes_in_commit_statuses_are_refused() -> Result<()> {
    refuses("CommitStatus", commit_status(), COMMIT_STATUSES).await?;
    let all = "{phase: in_progress, description: p99, url: 'http://ci.example.com/7', \
               expiresAt: '2026-11-23T09:00:00Z', repoRef: {name: shop, namespace: platform}}";
    accepts("CommitStatus", commit_status(), &["{}", all]).await
}

#[tokio::test]
async fn mistakes_in_reverts_are_refused() -> Result<()> {
    refuses("RevertCommit", revert(), REVERTS).await?;
    let all = format!(
        "{{hydratedSHA: {}, fixedBy: {}, merge: AfterChecks}}",
        "a1b2".repeat(10),
        "c3d4".repeat(10)
    );
    // Who writes it is asked by a policy, which is not installed here.
    accepts("RevertCommit", revert(), &["{}", &all]).await
}

/// What names an object in a forge, or what others rely on, never changes.
#[tokio::test]
async fn what_never_changes_is_refused() -> Result<()> {
    let judge = Judge::new().await?;
    for (kind, plural, spec, changes) in [
        (
            "GitRepositoryAccess",
            "gitrepositoryaccesses",
            access(),
            [
                (json!({"provider": "forgejo"}), "provider: it never changes"),
                (
                    json!({"url": "https://git.example.com/acme/other.git"}),
                    "url: it never changes",
                ),
            ],
        ),
        (
            "PromotionStrategy",
            "promotionstrategies",
            strategy(),
            [
                (
                    json!({"repoRef": {"name": "other"}}),
                    "repoRef: it never changes",
                ),
                (
                    json!({"repoRef": {"namespace": "other"}}),
                    "repoRef: it never changes",
                ),
            ],
        ),
    ] {
        let gvk = GroupVersionKind::gvk(sluice_crds::GROUP, "v1alpha1", kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        let api: Api<DynamicObject> =
            Api::namespaced_with(judge.client.clone(), judge.namespace.name(), &resource);
        let made = object(kind, &spec.to_string())?;
        api.add(&serde_json::from_value(made)?).await?;
        for (change, words) in changes {
            let answer = api.merge("example", json!({ "spec": change })).await;
            let error = answer.err().context("it was let through")?.to_string();
            ensure!(error.contains(words), "{kind}: {error}");
        }
    }
    Ok(())
}
