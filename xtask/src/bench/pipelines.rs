//! Many pipelines, of which one environment is on this cluster and four are on others, which are one
//! second API server by many kubeconfigs.
//!
//! In one run: how long a start and a restart take; what it costs in memory; what is written while nothing
//! changes, and while controllers look whether anything has drifted; how fast promotions begin that wait
//! for one gate, beside a bare client that writes as many statuses; and how long a promotion takes, before
//! and after one of the other clusters is dead. What a look costs by itself is measured by criterion first.

use std::fmt::{Display, Formatter};
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use futures::{StreamExt, TryStreamExt};
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::watcher::watch_object;
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use sluice_crds::{Gate, Pipeline};
use sluice_tests::Writes;
use sluice_tests::progress::{Progress, Stderr};

use super::ordered::Ordered;
use super::process::{Controller, Usage};
use super::scale::connections;
use super::seen::{Kind, Moment, Seen};
use super::{Bench, criterion};
use crate::server::Server;

mod crowd;
mod elsewhere;

use crowd::Crowd;
pub(super) use crowd::NEXT;

/// Where the pipelines live, and their first environments.
const NAMESPACE: &str = "sluice-pipelines";
/// The second API server is on loopback.
const FLAGS: [&str; 1] = ["--egress-allow=127.0.0.0/8"];
/// How many promotions are timed, one after the other.
const PROMOTED: usize = 50;
/// How often controllers look whether anything has drifted.
const INTERVAL: Duration = Duration::from_secs(60);

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: Server,
    /// How many pipelines.
    #[arg(long, default_value_t = 1_000)]
    pipelines: usize,
    /// By how many kubeconfigs the second API server is reached.
    #[arg(long, default_value_t = 20)]
    clusters: usize,
    /// How long the controller is watched while nothing changes, in seconds. It is watched for as long
    /// again while apps are looked at.
    #[arg(long, default_value_t = 300)]
    idle: u64,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    criterion("pipelines")?;
    let measuring = async |bench: &Bench| measure(&arguments, bench).await;
    Bench::run(&arguments.server, NAMESPACE, measuring).await
}

async fn measure(arguments: &Arguments, bench: &Bench) -> Result<Table> {
    let (client, n) = (&bench.client, arguments.pipelines);
    let progress = Stderr::new();
    let crowd = Crowd::define(client, n, arguments.clusters).await?;
    let empty = {
        let controller = bench.controller(&FLAGS).await?;
        controller.settled(0).await?;
        controller.usage()?
    };
    progress.say(&format!("{n} pipelines of {} targets", crowd::TARGETS));
    crowd.create().await?;
    let (start, controller) = start(bench, n).await?;
    let idle = Duration::from_secs(arguments.idle);
    let quiet = controller.idle(idle).await?;
    let flickering = flickering(&controller, &crowd, idle).await?;
    let full = controller.usage()?;
    progress.say(&format!("{quiet} and {flickering} writes in vain"));
    drop(controller);

    let controller = bench.controller(&FLAGS).await?;
    let restart = controller.settled(n).await?;
    let wave = wave(client, &crowd).await?;
    let well = promote(client, &crowd, "1.2").await?;
    crowd.lose_a_cluster();
    let without = promote(client, &crowd, "1.3").await?;
    let after = controller.usage()?;
    drop(controller);
    Ok(Table {
        n,
        clusters: arguments.clusters,
        idle,
        start,
        restart,
        empty,
        full,
        after,
        quiet,
        flickering,
        wave,
        raw: raw(client).await?,
        well,
        without,
    })
}

/// Starts a controller. How long it took until every pipeline said that its run is completed.
async fn start(bench: &Bench, n: usize) -> Result<(Duration, Controller)> {
    let seen = Seen::start(&bench.client, NAMESPACE, &[Kind::Pipeline], crowd::FIRST).await?;
    let controller = bench.controller(&FLAGS).await?;
    seen.all(Moment::Completed, n).await?;
    Ok((controller.age(), controller))
}

/// How many writes are made while every app of the first environments is looked at once a minute.
#[allow(clippy::disallowed_methods, reason = "a benchmark on the real clock")]
async fn flickering(controller: &Controller, crowd: &Crowd, length: Duration) -> Result<u64> {
    let (before, began) = (controller.writes().await?, Instant::now());
    while began.elapsed() < length {
        let next = Instant::now() + INTERVAL.min(length);
        crowd.look_for_drift().await?;
        tokio::time::sleep_until(next.into()).await;
    }
    Ok(controller.writes().await? - before)
}

/// All first environments run another revision, and one gate holds that back, and opens. How long after
/// that each was admitted.
async fn wave(client: &Client, crowd: &Crowd) -> Result<Ordered> {
    let revision = "1.1.0";
    let seen = Seen::start(client, NAMESPACE, &[Kind::Pipeline], revision).await?;
    crowd.release(revision).await?;
    seen.all(Moment::Pending, crowd.pipelines()).await?;
    let gates: Api<Gate> = Api::namespaced(client.clone(), NAMESPACE);
    let began = Instant::now();
    let open = json!({"spec": {"default": "open"}});
    gates.merge(crowd::GATE, &open).await?;
    seen.all(Moment::Admitted, crowd.pipelines()).await?;
    Ok(seen.since(began, Moment::Admitted))
}

/// New revisions in some first environments, one after the other, whose pipelines do not know the cluster
/// that is lost. How long it took until the next environment was admitted each.
async fn promote(client: &Client, crowd: &Crowd, version: &str) -> Result<Ordered> {
    let pipelines: Api<Pipeline> = Api::namespaced(client.clone(), NAMESPACE);
    let mut took = Vec::with_capacity(PROMOTED);
    for (place, name) in crowd.unconcerned().take(PROMOTED).enumerate() {
        let revision = format!("{version}.{place}");
        let mut seen = pin!(watch_object(pipelines.clone(), &name));
        seen.try_next().await?;
        let began = Instant::now();
        crowd.runs(&name, &revision).await?;
        while seen.try_next().await?.flatten().and_then(admitted) != Some(revision.clone()) {}
        took.push(began.elapsed().as_secs_f64());
    }
    Ok(Ordered::new(took))
}

fn admitted(pipeline: Pipeline) -> Option<String> {
    let status = pipeline.status?;
    let next = status.environments.get(NEXT)?;
    Some(next.admitted.first()?.revision.clone())
}

/// How many statuses like these a bare client writes in a second, with as many requests in flight.
async fn raw(client: &Client) -> Result<f64> {
    let api: Api<Pipeline> = Api::namespaced(client.clone(), NAMESPACE);
    let all = api.list(&ListParams::default()).await?.items;
    let n = all.len();
    let bodies = all.into_iter().map(|pipeline| {
        let name = pipeline.name_any();
        let mut status = pipeline.status.context("it has no status")?;
        let run = status.run.as_mut().context("it has no run")?;
        run.message = "another one".to_owned();
        let body = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
            "metadata": {"name": name}, "status": status,
        });
        Ok((name, body))
    });
    let bodies = bodies.collect::<Result<Vec<_>>>()?;
    let params = PatchParams::apply("gate-controller-pipelines").force();
    let began = Instant::now();
    futures::stream::iter(bodies)
        .map(async |(name, body)| api.patch_status(&name, &params, &Patch::Apply(body)).await)
        .buffer_unordered(connections()?)
        .try_for_each(async |_| Ok(()))
        .await?;
    #[allow(clippy::cast_precision_loss, reason = "a count of thousands")]
    Ok(n as f64 / began.elapsed().as_secs_f64())
}

struct Table {
    n: usize,
    clusters: usize,
    idle: Duration,
    start: Duration,
    restart: Duration,
    /// Without any pipeline.
    empty: Usage,
    full: Usage,
    after: Usage,
    quiet: u64,
    flickering: u64,
    wave: Ordered,
    /// Statuses a second.
    raw: f64,
    well: Ordered,
    without: Ordered,
}

impl Display for Table {
    #[allow(clippy::cast_precision_loss, reason = "counts of thousands, and MiB")]
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { n, clusters, .. } = self;
        let (start, restart) = (self.start.as_secs_f64(), self.restart.as_secs_f64());
        let (empty, full) = (self.empty.resident, self.full.resident);
        let each = full.saturating_sub(empty) as f64 * 1024.0 / (n * crowd::TARGETS) as f64;
        let rate = self.wave.count() as f64 / self.wave.at(1.0);
        let idle = self.idle.as_secs();
        writeln!(
            f,
            "\n| {n} pipelines of {} targets, {clusters} other clusters | |\n|---|---|\n\
             | from the start until every run is recorded as completed | {start:.1} s |\n\
             | a restart, until everything was looked at | {restart:.1} s |\n\
             | resident: without pipelines, with them, after all that follows, highest | {empty}, {full}, {}, {} MiB |\n\
             | memory of a target, with its part of a pipeline | {each:.1} KiB |\n\
             | writes in {idle} s: nothing changes; apps are looked at each minute | {}, {} |",
            crowd::TARGETS,
            self.after.resident,
            self.after.highest,
            self.quiet,
            self.flickering
        )?;
        writeln!(
            f,
            "| raw patch rate of the server | {:.0}/s |\n\
             | one gate opens: promotions begun a second | {rate:.0}/s, {:.0} % of raw |",
            self.raw,
            100.0 * rate / self.raw
        )?;
        for (what, part) in [("p50", 0.5), ("last", 1.0)] {
            let (well, without) = (self.well.at(part), self.without.at(part));
            writeln!(
                f,
                "| from the app to the admission, {what} of {PROMOTED}: all clusters are well; one is dead | {:.0} ms, {:.0} ms, ratio {:.2} |",
                well * 1e3,
                without * 1e3,
                without / well
            )?;
        }
        Ok(())
    }
}
