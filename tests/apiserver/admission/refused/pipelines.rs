//! Mistakes in pipelines.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::object;
use super::{Judge, Mistake};
use crate::pipelines::published::PUBLISHED;

/// Mistakes in a pipeline of a HelmRelease with one environment, but for what is written here.
#[rustfmt::skip]
const PIPELINES: &[Mistake] = &[
    ("{appRef: null}", "spec.appRef", "Required value", "="),
    ("{appRef: {kind: Secret, name: a}}", "spec.appRef.kind", "name the object that deploys", "="),
    ("{appRef: {kind: helmrelease, name: a}}", "spec.appRef.kind", "should match", "="),
    ("{appRef: {kind: Deployment, name: a}}", "spec.appRef.apiVersion", "write the group and version of the kind, such as apps/v1", "="),
    ("{appRef: {kind: HelmRelease, name: A}}", "spec.appRef.name", "should match", "="),
    ("{appRef: {kind: HelmRelease, name: a, apiVersion: helm}}", "spec.appRef.apiVersion", "should match", "="),
    ("{appRef: {kind: HelmRelease, name: a, revisionExpression: ''}}", "spec.appRef.revisionExpression", "at least 1 chars long", "="),
    ("{environments: null}", "spec.environments", "Required value", "="),
    ("{environments: []}", "spec.environments", "at least 1 items", "="),
    ("{environments: [{name: dev, targets: []}]}", "spec.environments[0].targets", "at least 1 items", "="),
    ("{environments: [{name: dev, targets: [{}]}]}", "spec.environments[0].targets[0].namespace", "Required value", "="),
    ("{environments: [{name: dev, targets: [{namespace: a.b}]}]}", "spec.environments[0].targets[0].namespace", "should match", "="),
    ("{environments: [{name: dev, targets: [{namespace: a, clusterRef: {kind: Kubeconfig, name: a}}]}]}", "spec.environments[0].targets[0].clusterRef.kind", "supported values", "="),
    ("{environments: [{name: dev, targets: [{namespace: a}], gates: {refs: [{name: a}]}}]}", "spec.environments", "gate its source with a GatedSource", "spec.environments[0].gates"),
    ("{environments: [{name: dev, targets: [{namespace: a}]}, {name: dev, targets: [{namespace: b}]}]}", "spec.environments", "give each environment another name", "spec.environments[1].name"),
    ("{environments: [{name: -dev, targets: [{namespace: a}]}]}", "spec.environments[0].name", "should match", "="),
    ("{environments: [{name: de..v, targets: [{namespace: a}]}]}", "spec.environments[0].name", "part of a branch's name", "="),
    ("{environments: [{name: dev.lock, targets: [{namespace: a}]}]}", "spec.environments[0].name", "no `.lock` at its end", "="),
    ("{environments: [{name: dev, targets: [{namespace: a}], gateAt: never}]}", "spec.environments[0].gateAt", "supported values", "="),
    ("{environments: [{name: dev, targets: [{namespace: a}]}, {name: prod, targets: [{namespace: a}], gates: {refs: [{name: a}, {name: a}]}}]}", "spec.environments[1].gates.refs", "is listed twice", "spec.environments[1].gates.refs[1]"),
    ("{versions: [{name: a, expression: object.a}, {name: a, expression: object.b}]}", "spec.versions", "give each version another name", "spec.versions[1].name"),
    ("{versions: [{name: a, expression: ''}]}", "spec.versions[0].expression", "at least 1 chars long", "="),
    ("{promotion: {}}", "spec.promotion.strategy", "Required value", "="),
    ("{promotion: {strategy: {}}}", "spec.promotion.strategy", "write exactly one of pull-request, notification and admission", "="),
    ("{promotion: {strategy: {admission: {}, notification: {}}}}", "spec.promotion.strategy", "write exactly one of", "="),
    ("{promotion: {strategy: {notification: {involvedObject: Alert}}}}", "spec.promotion.strategy.notification.involvedObject", "supported values", "="),
    ("{algorithm: newest}", "spec.algorithm", "supported values", "="),
    ("{suspend: 'yes'}", "spec.suspend", "must be of type boolean", "="),
];

/// Mistakes in the pull requests of a pipeline, which are right but for what is written here.
#[rustfmt::skip]
const PULL_REQUESTS: &[Mistake] = &[
    ("{type: svn}", ".type", "supported values", "="),
    ("{url: null}", ".url", "Required value", "="),
    ("{url: 'http://git.example.com/a/b'}", ".url", "over https alone; write https://", "="),
    ("{url: 'ssh://git@git.example.com/a/b'}", ".url", "over https alone; write https://", "="),
    ("{secretRef: null}", ".secretRef", "Required value", "="),
    ("{secretRef: {name: A}}", ".secretRef.name", "should match", "="),
    ("{baseBranch: ''}", ".baseBranch", "at least 1 chars long", "="),
    ("{baseBranch: -x}", ".baseBranch", "should match", "="),
    ("{paths: null}", ".paths", "Required value", "="),
    ("{paths: []}", ".paths", "at least 1 items", "="),
    ("{paths: [/a.yaml]}", ".paths", "each is a file in the repository", "spec.promotion.strategy.pull-request.paths[0]"),
    ("{paths: [a.yaml, clusters/]}", ".paths", "write such as apps/prod/podinfo.yaml", "spec.promotion.strategy.pull-request.paths[1]"),
    ("{paths: [../a.yaml]}", ".paths", "without `..`", "spec.promotion.strategy.pull-request.paths[0]"),
    ("{paths: [a//b.yaml]}", ".paths", "each is a file", "spec.promotion.strategy.pull-request.paths[0]"),
    ("{merge: always}", ".merge", "supported values", "="),
    ("{method: octopus}", ".method", "supported values", "="),
];

fn environment(name: &str, targets: usize) -> Value {
    let targets = (0..targets).map(|n| json!({"namespace": format!("n{n}")}));
    json!({"name": name, "targets": targets.collect::<Vec<_>>()})
}

/// The fields of `whole`, in which `other` takes the place of those that it has.
fn with(mut whole: Value, other: &str) -> Result<Value> {
    let other: Value = serde_saphyr::from_str(other)?;
    let fields = whole.as_object_mut().context("no object")?;
    fields.extend(other.as_object().context("no object")?.clone());
    fields.retain(|_, value| !value.is_null());
    Ok(whole)
}

fn spec(other: &str) -> Result<String> {
    let app = json!({"kind": "HelmRelease", "name": "app"});
    let whole = json!({"appRef": app, "environments": [environment("dev", 1)]});
    Ok(with(whole, other)?.to_string())
}

fn by_pull_request(other: &str) -> Result<String> {
    let whole = json!({
        "type": "gitea", "url": "https://git.example.com/platform/apps.git",
        "secretRef": {"name": "git-token"}, "paths": ["apps/prod/app.yaml"],
    });
    let strategy = json!({"pull-request": with(whole, other)?});
    spec(&json!({"promotion": {"strategy": strategy}}).to_string())
}

#[tokio::test]
async fn mistakes_in_pipelines_are_refused() -> Result<()> {
    let judge = Judge::new().await?;
    let table: Vec<_> = (PIPELINES.iter())
        .map(|mistake| Ok((spec(mistake.0)?, mistake)))
        .collect::<Result<_>>()?;
    judge.refuses_all("Pipeline", "", table.into_iter()).await?;
    let table: Vec<_> = (PULL_REQUESTS.iter())
        .map(|mistake| Ok((by_pull_request(mistake.0)?, mistake)))
        .collect::<Result<_>>()?;
    let root = "spec.promotion.strategy.pull-request";
    judge.refuses_all("Pipeline", root, table.into_iter()).await
}

#[tokio::test]
async fn pipelines_that_are_too_long_are_refused() -> Result<()> {
    let judge = Judge::new().await?;
    let of = |environments: usize, targets: usize| {
        let environment = |n: usize| environment(&format!("e{n}"), targets);
        let all: Vec<Value> = (0..environments).map(environment).collect();
        object(
            "Pipeline",
            &spec(&json!({"environments": all}).to_string())?,
        )
    };
    let mistakes: [(Value, Mistake); 3] = [
        (
            of(17, 1)?,
            ("", "spec.environments", "must have at most 16 items", "="),
        ),
        (
            of(2, 33)?,
            (
                "",
                "spec.environments[0].targets",
                "must have at most 32 items",
                "=",
            ),
        ),
        (
            of(5, 26)?,
            (
                "",
                "spec.environments",
                "at most 128 targets in all; split the pipeline",
                "=",
            ),
        ),
    ];
    for (object, mistake) in mistakes {
        judge.refuses("", object, &mistake).await?;
    }
    judge.accepts(&of(16, 8)?).await?;
    let version = |n: usize| json!({"name": format!("v{n}"), "expression": "object.a"});
    let versions: Vec<Value> = (0..9).map(version).collect();
    let paths: Vec<String> = (0..17).map(|n| format!("{n}.yaml")).collect();
    let expression = format!("object.{}", "a".repeat(1018));
    let app = json!({"kind": "HelmRelease", "name": "a", "revisionExpression": expression});
    let root = "spec.promotion.strategy.pull-request.paths";
    let many = [
        (
            spec(&json!({"versions": versions}).to_string())?,
            ("", "spec.versions", "must have at most 8 items", "="),
        ),
        (
            by_pull_request(&json!({"paths": paths}).to_string())?,
            ("", root, "must have at most 16 items", "="),
        ),
        (
            spec(&json!({"appRef": app}).to_string())?,
            ("", "spec.appRef.revisionExpression", "1024", "="),
        ),
    ];
    for (spec, mistake) in many {
        judge
            .refuses("", object("Pipeline", &spec)?, &mistake)
            .await?;
    }
    let mut long = of(1, 1)?;
    long["metadata"]["name"] = "a".repeat(64).into();
    let words = "at most 63 characters, so that it fits a label";
    let mistake = ("", "", words, "metadata.name");
    judge.refuses("", long, &mistake).await
}

/// Which votes name nothing, or two things.
#[tokio::test]
async fn a_vote_is_about_a_gatekeeper_or_about_a_promotion() -> Result<()> {
    let judge = Judge::new().await?;
    let gatekeeper = json!({"name": "release"});
    let promotion = json!({"name": "shop", "environment": "prod", "run": 7});
    let vote = |gatekeeper: Option<&Value>, promotion: Option<&Value>| {
        let spec = json!({
            "gatekeeperRef": gatekeeper, "pipelineRef": promotion,
            "revision": "6.1.6", "decision": "approve", "by": "alice",
        });
        object("Approval", &with(spec, "{}")?.to_string())
    };
    let words = "write exactly one of gatekeeperRef and pipelineRef";
    let mistake = ("", "spec", words, "spec.gatekeeperRef");
    let neither = vote(None, None)?;
    judge.refuses("", neither, &mistake).await?;
    let both = vote(Some(&gatekeeper), Some(&promotion))?;
    judge.refuses("", both, &mistake).await?;
    judge.accepts(&vote(Some(&gatekeeper), None)?).await?;
    judge.accepts(&vote(None, Some(&promotion))?).await
}

/// Its published form names no files, which are not searched for here.
const BY_PULL_REQUEST: &str = "{strategy: {pull-request: {type: github, \
     url: 'https://github.com/my-org/my-app-repo', baseBranch: main, \
     secretRef: {name: promotion-credentials}}}}";

#[tokio::test]
async fn published_examples_are_accepted() -> Result<()> {
    let judge = Judge::new().await?;
    for published in PUBLISHED {
        let mut object: Value = serde_saphyr::from_str(published)?;
        object["apiVersion"] = "sluice.dev/v1alpha1".into();
        object["kind"] = "Pipeline".into();
        object["metadata"]["namespace"] = judge.namespace.name().into();
        judge.accepts(&object).await?;
    }
    let promotion: Value = serde_saphyr::from_str(BY_PULL_REQUEST)?;
    let mut strategy = promotion["strategy"]["pull-request"].clone();
    let without = object(
        "Pipeline",
        &spec(&json!({"promotion": promotion}).to_string())?,
    )?;
    let field = "spec.promotion.strategy.pull-request.paths";
    let missing = ("", field, "Required value", "=");
    judge.refuses("", without, &missing).await?;
    strategy["paths"] = json!(["clusters/prod/podinfo.yaml"]);
    let promotion = json!({"strategy": {"pull-request": strategy}});
    let whole = spec(&json!({"promotion": promotion}).to_string())?;
    judge.accepts(&object("Pipeline", &whole)?).await
}

/// One environment is enough, no promotion is needed, and an environment may have its own.
#[tokio::test]
async fn pipelines_may_say_little() -> Result<()> {
    let judge = Judge::new().await?;
    let own = json!([
        environment("dev", 1),
        {"name": "prod", "targets": [{"namespace": "prod"}],
            "promotion": {"manual": true, "strategy": {"notification": {}}}},
    ]);
    let own = json!({"promotion": {"strategy": {"admission": {}}}, "environments": own});
    for right in [
        "{}",
        "{suspend: true, algorithm: pairwise}",
        &own.to_string(),
    ] {
        judge.accepts(&object("Pipeline", &spec(right)?)?).await?;
    }
    Ok(())
}
