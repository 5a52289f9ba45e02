//! Mistakes in gated sources.

use anyhow::{Context, Result, ensure};
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::GatedSource;
use sluice_tests::Writes;

use super::super::object;
use super::{Judge, Mistake};

/// Mistakes in a gated source, which has a gate and the source `b`, a GitRepository, but for what is
/// written here.
#[rustfmt::skip]
const SOURCES: &[Mistake] = &[
    ("{sourceRef: null}", "spec", "write exactly one of sourceRef, sourceRefs and selector", "spec.sourceRef"),
    ("{sourceRefs: [{kind: GitRepository, name: c}]}", "spec", "write exactly one of", "spec.sourceRef"),
    ("{sourceRef: {kind: GitRepository}}", "spec.sourceRef.name", "Required value", "="),
    ("{sourceRef: {kind: Repository, name: b}}", "spec.sourceRef.kind", "supported values", "="),
    ("{gates: null}", "spec.gates", "Required value", "="),
    ("{gates: {refs: []}}", "spec.gates.refs", "at least 1 items", "="),
    ("{gates: {refs: [{name: a}, {name: a}]}}", "spec.gates.refs", "is listed twice", "spec.gates.refs[1]"),
    ("{sourceRef: null, sourceRefs: []}", "spec.sourceRefs", "at least 1 items", "="),
    ("{sourceRef: null, selector: {kind: GitRepository, matchLabels: {a: b}}}", "spec.selector", "only the strategy suspend selects sources", "="),
    ("{sourceRef: null, strategy: suspend, selector: {kind: GitRepository, matchLabels: {}}}", "spec.selector.matchLabels", "at least 1 properties", "="),
    ("{sourceRef: null, sourceRefs: [{kind: GitRepository, name: b}], target: {name: c}}", "spec.target", "belongs to sourceRef", "="),
    ("{strategy: suspend, target: {name: c}}", "spec.target", "makes no child", "="),
    ("{target: {name: Upper}}", "spec.target.name", "should match", "="),
    ("{target: {name: b}}", "", "needs another name than it; write target", "spec.target.name"),
    ("{sourceRef: {kind: GitRepository, name: example}}", "", "needs another name than it", "spec.target.name"),
    ("{strategy: suspend, revision: 1.2.3}", "spec.revision", "by the strategies pin and artifact", "="),
    ("{sourceRef: null, sourceRefs: [{kind: HelmChart, name: b}], revision: 1.2.3}", "spec.revision", "of one source that is named with sourceRef", "="),
    ("{revision: ''}", "spec.revision", "at least 1 chars long", "="),
    ("{sourceRef: null, sourceRefs: [{kind: HelmChart, name: b}], baseline: {revision: 1.2.3}}", "spec.baseline", "each has a baseline of its own", "="),
    ("{baseline: {}}", "spec.baseline", "write from, or revision, and not both", "="),
    ("{baseline: {revision: 1.2.3, from: {kind: Kustomization, name: a}}}", "spec.baseline", "and not both", "="),
    ("{baseline: {from: {kind: Deployment, name: a}}}", "spec.baseline.from.kind", "supported values", "="),
    ("{sourceRef: {kind: Bucket, name: b}}", "spec.sourceRef.kind", "gate a Bucket with strategy: artifact", "="),
    ("{sourceRef: {kind: HelmRepository, name: b}}", "spec.sourceRef.kind", "the HelmCharts of a HelmRepository instead", "="),
    ("{sourceRef: null, sourceRefs: [{kind: GitRepository, name: b}, {kind: Bucket, name: b}]}", "spec.sourceRefs", "gate a Bucket with strategy: artifact", "spec.sourceRefs[1].kind"),
    ("{sourceRef: {kind: HelmRepository, name: b}, strategy: artifact}", "spec.sourceRef.kind", "is an index, not something to deploy", "="),
    ("{sourceRef: null, sourceRefs: [{kind: HelmRepository, name: b}], strategy: artifact}", "spec.sourceRefs", "is an index", "spec.sourceRefs[0].kind"),
    ("{sourceRef: null, sourceRefs: [{kind: HelmChart, name: b, target: {name: c}}], strategy: suspend}", "spec.sourceRefs", "makes no children; remove target and baseline", "="),
    ("{sourceRef: null, sourceRefs: [{kind: HelmChart, name: b}, {kind: HelmChart, name: b}]}", "spec.sourceRefs", "list each one once", "spec.sourceRefs[1]"),
    ("{strategy: artifact, interval: 1h}", "spec.interval", "is that of pinned children", "="),
    ("{interval: 59s}", "spec.interval", "at least 1m; write a duration such as 12h", "="),
    ("{interval: 0d59s}", "spec.interval", "at least 1m; write a duration such as 12h", "="),
    ("{interval: often}", "spec.interval", "should match", "="),
    ("{spread: 25h}", "spec.spread", "at most 24h; write a duration such as 10m", "="),
    ("{spread: 1d1s}", "spec.spread", "at most 24h; write a duration such as 10m", "="),
    ("{strategy: copy}", "spec.strategy", "supported values", "="),
    ("{deletionPolicy: Keep}", "spec.deletionPolicy", "supported values", "="),
    ("{suspend: 'yes'}", "spec.suspend", "must be of type boolean", "="),
];

/// The spec of a gated source, in which `other` takes the place of the fields that it has.
fn with(other: &str) -> Result<String> {
    let mut spec = json!({
        "sourceRef": {"kind": "GitRepository", "name": "b"}, "gates": {"refs": [{"name": "a"}]},
    });
    let other: Value = serde_saphyr::from_str(other)?;
    let fields = spec.as_object_mut().context("no object")?;
    fields.extend(other.as_object().context("no object")?.clone());
    fields.retain(|_, value| !value.is_null());
    Ok(spec.to_string())
}

#[tokio::test]
async fn mistakes_in_gated_sources_are_refused() -> Result<()> {
    let judge = Judge::new().await?;
    let table: Vec<_> = (SOURCES.iter())
        .map(|mistake| Ok((with(mistake.0)?, mistake)))
        .collect::<Result<_>>()?;
    judge
        .refuses_all("GatedSource", "", table.into_iter())
        .await?;
    let sources: Vec<_> = (0..9)
        .map(|n| json!({"kind": "GitRepository", "name": format!("s{n}")}))
        .collect();
    let many = with(&json!({"sourceRef": null, "sourceRefs": sources}).to_string())?;
    let mistake = ("", "spec.sourceRefs", "must have at most 8 items", "=");
    judge
        .refuses("", object("GatedSource", &many)?, &mistake)
        .await?;
    for right in [
        "{}",
        "{strategy: artifact, target: {name: b}}",
        "{spread: 24h, interval: 1m}",
    ] {
        judge
            .accepts(&object("GatedSource", &with(right)?)?)
            .await?;
    }
    Ok(())
}

/// The children of one strategy are of no use to another.
#[tokio::test]
async fn a_strategy_never_changes() -> Result<()> {
    let judge = Judge::new().await?;
    let sources: Api<GatedSource> = Api::namespaced(judge.client.clone(), judge.namespace.name());
    let source = object("GatedSource", &with("{}")?)?;
    sources.add(&serde_json::from_value(source)?).await?;
    for strategy in ["artifact", "suspend"] {
        let change = json!({"spec": {"strategy": strategy}});
        let answer = sources.merge("example", &change).await;
        let Err(kube::Error::Api(status)) = answer else {
            anyhow::bail!("the API server says {answer:?}");
        };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let named: Vec<_> = causes.map(|cause| cause.field.as_str()).collect();
        ensure!(
            status.code == 422
                && named == ["spec.strategy"]
                && status.message.contains("never changes")
                && status.message.contains("create another GatedSource"),
            "{status:?}"
        );
    }
    let change = json!({"spec": {"spread": "1h"}});
    sources.merge("example", &change).await?;
    Ok(())
}
