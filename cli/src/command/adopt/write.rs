//! Writes a plan in an order in which nothing is ever missing.
//!
//! The GatedSource comes first, and its controller makes the child of it. The app goes over once the
//! child serves what the app runs: it finds the same files at another place, and changes nothing.

use std::time::Duration;

use anyhow::{Result, bail};
use kube::ResourceExt;
use kube::api::{Api, Patch};
use serde_json::json;
use sluice_core::revision::{Revision, short};
use sluice_core::verdict::condition::{READY, STALLED, find, find_true};
use sluice_crds::GatedSource;
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::gated_source::SourceKind;

use super::plan::{Plan, Switch};
use super::used::{runs, tells};
use crate::cluster::{self, Cannot, CannotFlux, Connection, Consumer};
use crate::outcome::Outcome;
use crate::output::{self, say};

/// How soon everything is looked at again. It is not watched: who may write it need not have the
/// right to.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// How often a change is tried that others come in between of.
const TRIES: u32 = 5;

/// Writes it, waiting at most so long for the child.
pub(super) async fn write(
    connection: &Connection,
    plan: &Plan,
    patience: Duration,
) -> Result<Outcome> {
    chart(connection, plan).await?;
    source(connection, plan).await?;
    let waited = tokio::time::timeout(patience, served(connection, plan)).await;
    let serves = match waited {
        Ok(Ok(serves)) => serves,
        Ok(Err(why)) => {
            say!("GatedSource {} is stalled: {why}", plan.source.name_any())?;
            return Ok(unmoved(plan));
        }
        Err(_) => {
            say!("the child is not ready after {patience:?}")?;
            return Ok(unmoved(plan));
        }
    };
    for switch in &plan.switches {
        let consumer = now(connection, &switch.consumer).await?;
        if let Some(runs) = differs(plan, &consumer, &serves) {
            taken_back(plan, &consumer, &runs, &serves)?;
            return Ok(unmoved(plan));
        }
    }
    for switch in &plan.switches {
        if !moved(connection, plan, switch, &serves).await? {
            return Ok(Outcome::No);
        }
    }
    Ok(Outcome::Yes)
}

/// Says why somebody stays: it would go back to an older revision.
fn taken_back(plan: &Plan, consumer: &Consumer, runs: &str, serves: &str) -> Result<()> {
    let name = plan.source.name_any();
    let (who, runs) = (consumer.called(), short(runs));
    let serves = short(serves);
    say!("{who} runs {runs}, and the child serves {serves}: it would be taken back")?;
    let otherwise = match plan.exists {
        true => String::new(),
        false => format!(", or delete GatedSource {name} with its child and adopt again"),
    };
    output::note(format_args!("let {runs} pass the gates first{otherwise}"));
    Ok(())
}

fn unmoved(plan: &Plan) -> Outcome {
    for switch in &plan.switches {
        let who = switch.consumer.called();
        output::note(format_args!(
            "{who} is as it was; run this again once that is fixed"
        ));
    }
    Outcome::No
}

async fn chart(connection: &Connection, plan: &Plan) -> Result<()> {
    let Some(chart) = &plan.chart else {
        return Ok(());
    };
    let kind = FluxKind::Source(SourceKind::HelmChart);
    let api = cluster::flux(connection, kind, &connection.namespace);
    let name = plan.source.name_any();
    let applied = api
        .patch(&name, &cluster::patch(), &Patch::Apply(chart))
        .await;
    applied.cannot_flux(format_args!("write the HelmChart {name}"))?;
    say!("HelmChart {name} is written")
}

async fn source(connection: &Connection, plan: &Plan) -> Result<()> {
    let name = plan.source.name_any();
    if plan.exists {
        return say!("GatedSource {name} is there already");
    }
    let api: Api<GatedSource> = connection.here();
    let created = api.create(&cluster::post(), &plan.source).await;
    created.cannot(format_args!("write the GatedSource {name}"))?;
    say!("GatedSource {name} is written")
}

/// The revision that the child serves; or why it never will unless somebody fixes something.
type Served = Result<String, String>;

/// Waits until the child serves something, and says what is awaited each time that it changes.
#[allow(
    clippy::disallowed_methods,
    reason = "looks again every now and then: who writes sources need not have the right to watch"
)]
async fn served(connection: &Connection, plan: &Plan) -> Served {
    let mut told = String::new();
    loop {
        let awaited = match look(connection, plan).await {
            Ok(Look::Served(served)) => return served,
            Ok(Look::Awaited(awaited)) => awaited,
            Err(error) => error.to_string(),
        };
        if awaited != told {
            output::note(format_args!("waiting: {awaited}"));
            told = awaited;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

enum Look {
    Served(Served),
    Awaited(String),
}

async fn look(connection: &Connection, plan: &Plan) -> Result<Look> {
    let name = plan.source.name_any();
    let source = cluster::existing::<GatedSource>(connection, &name).await?;
    let status = source.status.clone().unwrap_or_default();
    let stalled = find_true(&status.conditions, STALLED);
    if status.observed_generation != source.metadata.generation {
        let awaited = format!("for the controller to look at GatedSource {name}");
        return Ok(Look::Awaited(awaited));
    }
    if let Some(stalled) = stalled {
        return Ok(Look::Served(Err(stalled.message.clone())));
    }
    let (kind, child) = &plan.child;
    let found = cluster::flux_object(connection, *kind, &connection.key(child)).await?;
    let serves = found.as_ref().filter(|it| is_ready(it));
    let serves = serves.and_then(|it| it.status.artifact.as_ref());
    match (&status.admitted, serves) {
        (Some(_), Some(artifact)) => Ok(Look::Served(Ok(artifact.revision.clone()))),
        _ => {
            let ready = find(&status.conditions, READY).map(|it| it.message.as_str());
            let said = ready.unwrap_or("nothing is said of it yet");
            Ok(Look::Awaited(format!(
                "for {} {child}: {said}",
                kind.as_str()
            )))
        }
    }
}

fn is_ready(object: &FluxObject) -> bool {
    let status = &object.status;
    let of_now = status.observed_generation.is_none()
        || status.observed_generation == object.metadata.generation;
    of_now && find_true(&status.conditions, READY).is_some()
}

/// A consumer as it is now.
async fn now(connection: &Connection, consumer: &Consumer) -> Result<Consumer> {
    let kind = FluxKind::Consumer(consumer.kind);
    let object = cluster::flux_object(connection, kind, &consumer.key()).await?;
    let Some(object) = object else {
        bail!("{} went away", consumer.called());
    };
    Ok(Consumer {
        kind: consumer.kind,
        object,
    })
}

/// What a consumer runs, where that is something else than the child serves.
fn differs(plan: &Plan, consumer: &Consumer, serves: &str) -> Option<String> {
    let source = plan.source.spec.source_ref.as_ref()?;
    let runs = runs(consumer).filter(|_| tells(consumer, source.kind))?;
    let same = match (Revision::parse(runs), Revision::parse(serves)) {
        (Ok(runs), Ok(serves)) => runs.is(&serves),
        _ => runs == serves,
    };
    (!same).then(|| runs.to_owned())
}

/// Makes a consumer use the child, and writes only onto the version that was read: if somebody else
/// writes in between, it is read again. Returns whether it was done.
async fn moved(
    connection: &Connection,
    plan: &Plan,
    switch: &Switch,
    serves: &str,
) -> Result<bool> {
    let kind = FluxKind::Consumer(switch.consumer.kind);
    let (key, who) = (switch.consumer.key(), switch.consumer.called());
    let api = cluster::flux(connection, kind, &key.namespace);
    let mut tries = 1;
    loop {
        let consumer = now(connection, &switch.consumer).await?;
        if let Some(runs) = differs(plan, &consumer, serves) {
            taken_back(plan, &consumer, &runs, serves)?;
            return Ok(false);
        }
        let mut patch = switch.patch.clone();
        patch["metadata"] = json!({"resourceVersion": consumer.object.resource_version()});
        match api
            .patch(&key.name, &cluster::patch(), &Patch::Merge(&patch))
            .await
        {
            Err(error) if tries < TRIES && cluster::code(&error) == Some(409) => tries += 1,
            patched => {
                patched.cannot_flux(format_args!("change {who}"))?;
                break;
            }
        }
    }
    let (kind, child) = &plan.child;
    say!("{who} uses {} {child} now", kind.as_str())?;
    Ok(true)
}
