//! Gated sources, as `pending`, `get`, `why`, `calendar` and `approve` show them: with statuses as the
//! controller writes them, and without one.

use anyhow::{Result, ensure};
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::{Approval, GatedSource};
use sluice_tests::rights::rule;
use sluice_tests::{Writes, poll};

use super::{run, says};
use crate::stage::{DEADLINE, OFFICE_HOURS, Stage};

/// Friday at seven in the evening.
const NOW: &str = "2026-11-20T19:00:00Z";
const OUT: &str = "main@sha1:1111111111111111111111111111111111111111";
const OLD: &str = "main@sha1:2222222222222222222222222222222222222222";
const NEW: &str = "main@sha1:3333333333333333333333333333333333333333";

const UNSEEN: &str = "main@sha1:4444444444444444444444444444444444444444";

/// One revision is on the list, and somebody has to approve; the office is closed.
const GATES: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: listed}
spec: {revisions: {allow: ['2222222222222222222222222222222222222222']}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: listed}
spec: {gatekeepers: [{name: listed}]}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: always}
spec: {default: open}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: people}
spec: {approval: {required: 1, validFor: 24h}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: people}
spec: {gatekeepers: [{name: people}]}
";

const SOURCES: &str = "
apiVersion: sluice.dev/v1alpha1
kind: GatedSource
metadata: {name: app}
spec:
  sourceRef: {kind: GitRepository, name: app}
  target: {name: app-gated}
  gates: {refs: [{name: listed}, {name: always}]}
---
apiVersion: sluice.dev/v1alpha1
kind: GatedSource
metadata: {name: quiet}
spec:
  sourceRef: {kind: GitRepository, name: quiet}
  target: {name: quiet-gated}
  gates: {require: oneOf, refs: [{name: production}, {name: nowhere}]}
";

fn part(revision: &str) -> Value {
    json!({"kind": "GitRepository", "name": "app", "revision": revision, "content": "a"})
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-11-20T18:00:00Z",
    })
}

/// Two candidates, of which the newest is held back; somebody goes around.
fn status(namespace: &str) -> Value {
    let gate = format!("{namespace}/listed");
    let said = "it is not on a list of what may go out";
    json!({
        "observedGeneration": 1,
        "pending": {"revision": NEW, "since": "2026-11-20T18:30:00Z"},
        "candidates": [
            {"revision": OLD, "since": "2026-11-20T18:00:00Z", "parts": [part(OLD)]},
            {"revision": NEW, "since": "2026-11-20T18:30:00Z", "parts": [part(NEW)]},
        ],
        "admitted": {"revision": OUT, "at": "2026-11-19T12:00:00Z", "origin": "Baseline", "parts": [
            {"kind": "GitRepository", "name": "app", "revision": OUT},
        ]},
        "lastDecision": {
            "allowed": false, "at": "2026-11-20T18:30:00Z", "require": "all",
            "subject": {"kind": "GatedSource", "namespace": namespace, "name": "app", "action": "admit", "revision": NEW},
            "checked": [{"gate": gate, "state": "Closed", "reason": "RevisionNotListed", "message": said}],
            "decidedBy": [gate], "message": format!("held back by {gate}: {said}"),
            "next": "2026-11-23T09:00:00Z",
        },
        "conditions": [
            condition("Ready", "True", "Succeeded", "GitRepository app-gated serves what was admitted"),
            condition("Blocked", "True", "RevisionNotListed", &format!("held back by {gate}: {said}")),
            condition("Bypassed", "True", "UpstreamInUse", "Kustomization team/other uses GitRepository app itself"),
        ],
    })
}

async fn staged() -> Result<Stage> {
    let stage = Stage::new("cli-sources", NOW).await?;
    stage.apply(OFFICE_HOURS).await?;
    stage.apply(GATES).await?;
    stage.apply(SOURCES).await?;
    let sources: Api<GatedSource> = Api::namespaced(stage.client(), stage.namespace());
    let patch = json!({"status": status(stage.namespace())});
    sources.merge_status("app", &patch).await?;
    Ok(stage)
}

#[tokio::test]
async fn what_waits_at_a_source_is_listed() -> Result<()> {
    let stage = staged().await?;
    let waits = says(&stage, "admin", &["pending"], 0, "GatedSource/app").await?;
    let line = waits
        .out
        .lines()
        .find(|line| line.contains("GatedSource/app"));
    let line = line.unwrap_or_default();
    for part in ["main@333333333333 ", " listed ", "Mon 2026-11-23 09:00"] {
        ensure!(line.contains(part), "{part}: {waits:?}");
    }
    // Once, and no gate beside it that stands in its column.
    let because = waits.out.matches("it is not on a list of what may go out");
    ensure!(because.count() == 1, "{waits:?}");
    ensure!(
        !waits.out.contains("held back by") && !waits.out.contains(stage.namespace()),
        "{waits:?}"
    );
    let all = says(&stage, "admin", &["pending", "-A"], 0, "NAMESPACE").await?;
    ensure!(all.out.contains(stage.namespace()), "{all:?}");
    ensure!(
        waits.err.contains("is Bypassed: Kustomization team/other"),
        "{waits:?}"
    );
    let json = run(&stage, "admin", &["pending", "-o", "json"]).await?;
    let rows: Value = serde_json::from_str(&json.out)?;
    ensure!(rows[0]["revision"] == NEW && rows[1].is_null(), "{rows}");
    ensure!(rows[0]["since"] == "2026-11-20T18:30:00Z", "{rows}");
    ensure!(rows[0]["until"] == "2026-11-23T09:00:00Z", "{rows}");
    ensure!(rows[0]["warnings"][0].is_string(), "{rows}");

    let listed = says(&stage, "admin", &["get", "sources"], 0, "Blocked").await?;
    for part in ["main@111111111111 ", "main@333333333333 ", "Unknown"] {
        ensure!(listed.out.contains(part), "{part}: {listed:?}");
    }
    says(
        &stage,
        "admin",
        &["get", "gs/app", "-o", "name"],
        0,
        "gatedsource.sluice.dev/app",
    )
    .await?;
    let one = run(&stage, "admin", &["get", "gs", "app", "-o", "json"]).await?;
    let one: GatedSource = serde_json::from_str(&one.out)?;
    ensure!(one.status.is_some(), "{one:?}");
    Ok(())
}

#[tokio::test]
async fn anyone_who_may_not_see_gated_sources_cannot_be_told() -> Result<()> {
    let stage = staged().await?;
    let others = ["gates", "gatekeepers", "approvals"];
    let rules = [
        rule("sluice.dev", &others, &["get", "list"]),
        rule("events.k8s.io", &["events"], &["list"]),
    ];
    stage.grant_rules("gates-only", "gus", &rules).await?;
    poll(DEADLINE, "the right to see gates", async || {
        says(&stage, "gus", &["get", "listed"], 0, "listed").await
    })
    .await?;
    let cannot = "cannot list which revisions gated sources hold back";
    let said = says(&stage, "gus", &["pending"], 2, cannot).await?;
    ensure!(said.err.contains("list gated sources"), "{said:?}");
    ensure!(!said.err.contains("Nothing waits"), "{said:?}");
    says(&stage, "gus", &["pending", "-o", "json"], 2, "[]").await?;
    Ok(())
}

/// A source that is to be on `revision`, which its status says is pending.
async fn asks_for(stage: &Stage, revision: &str) -> Result<()> {
    let sources: Api<GatedSource> = Api::namespaced(stage.client(), stage.namespace());
    let spec = json!({"spec": {"revision": revision}});
    sources.merge("app", &spec).await?;
    let pending = json!({"revision": revision, "since": "2026-11-20T18:00:00Z"});
    let status = json!({"status": {"pending": pending}});
    sources.merge_status("app", &status).await?;
    Ok(())
}

#[tokio::test]
async fn what_the_spec_asks_for_is_told_and_approved_of() -> Result<()> {
    let stage = staged().await?;
    let approve = ["approve", "people", "--revision-of", "gatedsource/app"];
    for (revision, head) in [
        (OLD, "app: main@222222222222 is allowed"),
        // No candidate: it is fetched as soon as it may go out.
        (UNSEEN, "app: main@444444444444 is not allowed"),
    ] {
        asks_for(&stage, revision).await?;
        let why = says(&stage, "admin", &["why", "gs/app"], 0, head).await?;
        let asks = format!("spec.revision asks for main@{}", &revision[10..22]);
        for part in [&asks, "only what spec.revision asks for goes out"] {
            ensure!(why.out.contains(part), "{part}: {}", why.out);
        }
        let gate = format!("for {revision}");
        ensure!(why.out.contains(&gate), "{gate}: {}", why.out);
        let about = format!("it is about {revision}");
        says(&stage, "admin", &approve, 0, &about).await?;
    }
    asks_for(&stage, OUT).await?;
    let settled = "nothing is pending: spec.revision asks for main@111111111111, which is out";
    says(&stage, "admin", &["why", "gs/app"], 0, settled).await?;
    says(
        &stage,
        "admin",
        &approve,
        2,
        "waits with nothing: spec.revision",
    )
    .await?;
    let approvals: Api<Approval> = Api::namespaced(stage.client(), stage.namespace());
    let cast = approvals.list(&Default::default()).await?.items;
    let mut about: Vec<&str> = cast.iter().map(|it| it.spec.revision.as_str()).collect();
    about.sort_unstable();
    ensure!(about == [OLD, UNSEEN], "{about:?}");
    Ok(())
}

#[tokio::test]
async fn why_tells_what_the_gates_say_now_of_each_candidate() -> Result<()> {
    let stage = staged().await?;
    let held = "main@333333333333 is not allowed: held back by";
    let why = says(&stage, "admin", &["why", "gatedsource/app"], 0, held).await?;
    for part in [
        "pins GitRepository app as GitRepository app-gated",
        "main@111111111111 is out since Thu 2026-11-19 12:00 UTC (it ran already: the baseline)",
        "2 candidates, the newest first",
        // The status says nothing of it: it is decided here and now.
        "main@222222222222 since Fri 2026-11-20 18:00 UTC is allowed",
        "main@333333333333 since Fri 2026-11-20 18:30 UTC is not allowed",
        "Bypassed (UpstreamInUse): Kustomization team/other uses GitRepository app itself",
        "/listed is Closed for main@sha1:3333333333333333333333333333333333333333",
        "before it: main@222222222222 is allowed",
        "/listed is Open for main@sha1:2222222222222222222222222222222222222222",
    ] {
        ensure!(why.out.contains(part), "{part}: {}", why.out);
    }
    // What says the same of both is told once.
    let times = why.out.matches("/always is Open").count();
    ensure!(times == 1, "{}", why.out);
    let quiet = says(
        &stage,
        "admin",
        &["why", "gs/quiet"],
        0,
        "nothing is pending",
    )
    .await?;
    ensure!(
        quiet.out.contains("no controller has seen it yet"),
        "{quiet:?}"
    );
    says(
        &stage,
        "admin",
        &["why", "gs/none"],
        2,
        "there is no gated source `none`",
    )
    .await?;
    Ok(())
}

#[tokio::test]
async fn the_days_of_a_source_are_those_of_all_its_gates() -> Result<()> {
    let stage = staged().await?;
    let days = ["--from", NOW, "--days", "4"];
    let picture = [&["calendar", "gs/quiet"][..], &days].concat();
    let drawn = says(&stage, "admin", &picture, 0, "GatedSource").await?;
    let namespace = stage.namespace();
    for part in [
        &format!("GatedSource {namespace}/quiet is Closed"),
        "Gate production is Closed",
        "Gate nowhere is Closed",
        "there is no such gate",
        "09:00-17:00",
    ] {
        ensure!(drawn.out.contains(part), "{part}: {}", drawn.out);
    }
    let json = run(&stage, "admin", &[&picture[..], &["-o", "json"]].concat()).await?;
    let told: Value = serde_json::from_str(&json.out)?;
    ensure!(told[0]["gatedSource"] == "quiet", "{told}");
    let opens: Vec<&str> = (told[0]["changes"].as_array().into_iter().flatten())
        .filter(|change| change["state"] == "Open")
        .filter_map(|change| change["at"].as_str())
        .collect();
    ensure!(opens == ["2026-11-23T09:00:00Z"], "{told}");
    let page = run(&stage, "admin", &[&picture[..], &["-o", "svg"]].concat()).await?;
    ensure!(
        page.out.starts_with("<svg ") && page.out.contains("nowhere"),
        "{page:?}"
    );
    Ok(())
}

#[tokio::test]
async fn what_waits_is_approved_of_by_the_name_of_its_source() -> Result<()> {
    let stage = staged().await?;
    let approve = ["approve", "people", "--revision-of", "gatedsource/app"];
    let said = says(&stage, "admin", &approve, 0, "created").await?;
    ensure!(said.out.contains(&format!("it is about {NEW}")), "{said:?}");
    let approvals: Api<Approval> = Api::namespaced(stage.client(), stage.namespace());
    let cast = approvals.list(&Default::default()).await?.items;
    ensure!(cast.len() == 1 && cast[0].spec.revision == NEW, "{cast:?}");
    says(&stage, "admin", &approve, 0, "you have said so already").await?;
    for (source, expected) in [
        ("gs/quiet", "waits with nothing"),
        ("quiet", "names no gated source"),
        ("gs/none", "there is no gated source"),
    ] {
        let approve = ["approve", "people", "--revision-of", source];
        says(&stage, "admin", &approve, 2, expected).await?;
    }
    Ok(())
}
