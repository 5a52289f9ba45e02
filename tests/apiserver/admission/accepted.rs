//! What the API server takes: every example, and mistakes that only the controller can see.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use sluice_core::gatekeeper;
use sluice_core::offline::lint;
use sluice_crds::{Gatekeeper, GatekeeperStatus, State};
use sluice_tests::apply::Document;
use sluice_tests::{Applier, Namespace, apply, poll, shared};

use super::object;
use crate::stage::{DEADLINE, Stage};

#[tokio::test]
async fn every_example_is_accepted() -> Result<()> {
    let cluster = shared().await?;
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut files = 0;
    for file in std::fs::read_dir(examples)? {
        let file = file?.path();
        if file.extension().is_none_or(|end| end != "yaml") {
            continue;
        }
        files += 1;
        // Examples share names.
        let namespace = Namespace::create(cluster, "example").await?;
        let applier = Applier::new(cluster.client().await?).in_namespace(namespace.name());
        let documents = apply::read(&file)?;
        // Flux is not installed here: what is Flux's is tried with the real Flux.
        let is_here = |document: &Document| {
            let types = document.object.types.as_ref();
            types.is_none_or(|types| !types.api_version.contains(".fluxcd.io/"))
        };
        let here = documents.iter().filter(|document| is_here(document));
        applier.documents(here.cloned().collect()).await?;
        for document in documents {
            let mistakes = lint::read(&json!(document.object)).mistakes;
            ensure!(mistakes.is_empty(), "{}: {mistakes:?}", file.display());
        }
    }
    ensure!(files >= 5, "only {files} examples");
    Ok(())
}

/// Specs with mistakes that the API server cannot see: the field below `spec`, and words that say
/// what is wrong and what to write instead.
#[rustfmt::skip]
const UNSEEN: [(&str, &str, &str, &str); 23] = [
    ("{schedule: {timeZone: Europe/Londn, open: [{cron: '* * * * *'}]}}", "schedule.timeZone", "Europe/Londn", "write"),
    ("{schedule: {open: [{cron: '0 0 30 2 *'}]}}", "schedule.open[0].cron", "never occurs", "write five fields"),
    ("{schedule: {open: [{cron: '0 0 * * tue-mon'}]}}", "schedule.open[0].cron", "not a cron expression", "write five fields"),
    ("{schedule: {open: [{cron: '* * *'}]}}", "schedule.open[0].cron", "has 3 fields", "write five fields"),
    ("{schedule: {open: [{cron: '0 0 9 * * 1'}]}}", "schedule.open[0].cron", "has 6 fields", "write five fields"),
    ("{schedule: {open: [{cron: 'TZ=Europe/London 0 9 * * 1'}]}}", "schedule.open[0].cron", "belongs in timeZone", "write five fields"),
    ("{schedule: {open: [{cron: 'CRON_TZ=Europe/London 0 9 * * 1'}]}}", "schedule.open[0].cron", "belongs in timeZone", "write five fields"),
    ("{schedule: {open: [{cron: '@every 1h'}]}}", "schedule.open[0].cron", "is not one of", "write five fields"),
    ("{schedule: {closed: [{cron: '61 * * * *'}]}}", "schedule.closed[0].cron", "not a cron expression", "write minutes from 0 to 59"),
    ("{schedule: {closed: [{cron: '0 24 * * *'}]}}", "schedule.closed[0].cron", "not a cron expression", "write hours from 0 to 23, with 0 for midnight"),
    ("{schedule: {open: [{cron: '0 9 * * MONDAY'}]}}", "schedule.open[0].cron", "not a cron expression", "write MON"),
    ("{schedule: {open: [{cron: '0 2 * * *', until: '03:00', lastStart: 1h}]}}", "schedule.open[0].lastStart", "leaves nothing of the window", "write less than the window lasts"),
    ("{schedule: {open: [{from: 2026-02-28T00:00:00, until: 2026-02-28T24:00:00}]}}", "schedule.open[0].until", "not a local date and time", "2026-03-01T00:00:00"),
    ("{schedule: {open: [{from: 2026-02-30T00:00:00, until: 2026-03-01T00:00:00}]}}", "schedule.open[0].from", "not a local date and time", "timeZone applies"),
    ("{schedule: {open: [{from: 2026-03-01T00:00:00, until: 2026-03-01T24:00:01}]}}", "schedule.open[0].until", "not a local date and time", "timeZone applies"),
    ("{metric: {address: 'https://p', query: ' ', range: {max: 1}}}", "metric.query", "the query is empty", "write a query in PromQL"),
    ("{http: {url: 'https://s', expression: 'body.ready ='}}", "http.expression", "", "write a condition in CEL"),
    ("{http: {url: 'https://s', expression: 'answer.ready'}}", "http.expression", "answer", "write a condition in CEL"),
    ("{objects: {serviceAccountName: a, of: [{apiVersion: v1, kind: secret, name: b}]}}", "objects.of[0].kind", "Secrets are never read", "name another kind"),
    ("{objects: {serviceAccountName: a, of: [{apiVersion: v1, kind: Pod, name: b/c}]}}", "objects.of[0].name", "is not the name of an object", "write the name alone"),
    ("{objects: {serviceAccountName: a, of: [{apiVersion: v1, kind: Pod, selector: {matchExpressions: [{key: a, operator: Like}]}}]}}", "objects.of[0].selector", "`Like` is not an operator", "write matchLabels"),
    ("{objects: {serviceAccountName: a, of: [{apiVersion: v1, kind: Pod, name: b, expression: 'pod.spec'}]}}", "objects.of[0].expression", "pod", "write"),
    ("{http: {url: 'https:///path'}}", "http.url", "it is not an http or https address", "write one that starts with https://"),
];

#[tokio::test]
async fn what_admission_cannot_see_stalls_the_gatekeeper_and_closes_the_gate() -> Result<()> {
    let stage = Stage::new("stalled", "2026-11-20T12:00:00Z").await?;
    for (n, (spec, ..)) in UNSEEN.iter().enumerate() {
        let mut gatekeeper = object("Gatekeeper", spec)?;
        let mut gate = object("Gate", &format!("{{gatekeepers: [{{name: bad-{n}}}]}}"))?;
        gatekeeper["metadata"]["name"] = format!("bad-{n}").into();
        gate["metadata"]["name"] = format!("bad-{n}").into();
        stage.apply(&format!("{gatekeeper}\n---\n{gate}")).await?;
    }
    let _controller = stage.start().await?;
    for (n, (spec, field, problem, remedy)) in UNSEEN.iter().enumerate() {
        let name = format!("bad-{n}");
        let field = format!("spec.{field}: ");
        let words = [field.as_str(), problem, remedy];
        let stalled = stalled(&stage, &name)
            .await
            .with_context(|| (*spec).to_owned())?;
        let closed = stage.says(&name, State::Closed, "InvalidSpec").await?;
        let message = closed.message.unwrap_or_default();
        for word in words {
            ensure!(
                stalled.contains(word),
                "{spec}: {word:?} is not in {stalled:?}"
            );
            ensure!(
                message.contains(word),
                "{spec}: {word:?} is not in {message:?}"
            );
        }
        ensure!(message.starts_with(&format!("{name}: ")), "{message}");

        let object: Gatekeeper = stage.gatekeepers().get(&name).await?;
        let refused = gatekeeper::check(&object.spec)
            .err()
            .context("not refused")?;
        ensure!(
            refused
                .iter()
                .any(|mistake| field == format!("{}: ", mistake.field))
        );
    }
    Ok(())
}

/// The message of the condition `Stalled`, when it is there.
async fn stalled(stage: &Stage, name: &str) -> Result<String> {
    let gatekeepers = stage.gatekeepers();
    poll(DEADLINE, "the gatekeeper to stall", async || {
        let object = gatekeepers.get(name).await?;
        let status: GatekeeperStatus = object.status.clone().unwrap_or_default();
        ensure!(
            status.observed_generation == object.metadata.generation,
            "not seen yet"
        );
        let conditions = &status.conditions;
        let find = |type_| conditions.iter().find(|found| found.type_ == type_);
        let stalled = find("Stalled").context("not stalled")?;
        let ready = find("Ready").context("no Ready")?;
        ensure!(
            stalled.status == "True" && ready.status == "False",
            "{conditions:?}"
        );
        Ok(stalled.message.clone())
    })
    .await
}
