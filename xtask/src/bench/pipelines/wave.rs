//! All first environments run something new, and one gate lets all of them go at once: how fast promotions
//! begin, beside a bare client that writes as many statuses.

use std::fmt::{Display, Formatter};
use std::time::Instant;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use sluice_crds::Pipeline;

use super::crowd::Crowd;
use super::{FLAGS, NAMESPACE, say};
use crate::bench::Bench;
use crate::bench::ordered::Ordered;
use crate::bench::process::Usage;
use crate::bench::scale::connections;
use crate::bench::seen::{Kind, Moment, Seen};

pub(super) struct Wave {
    n: usize,
    begun: Ordered,
    usage: Usage,
    /// Statuses a second.
    raw: f64,
}

pub(super) async fn measure(bench: &Bench, crowd: &Crowd) -> Result<Wave> {
    let (client, n) = (&bench.client, crowd.pipelines());
    let controller = bench.controller(&FLAGS).await?;
    controller.settled(n).await?;
    let begun = release(client, crowd).await?;
    let usage = controller.usage()?;
    drop(controller);
    say(&format!("{n} promotions began at once"));
    let raw = raw(client).await?;
    Ok(Wave {
        n,
        begun,
        usage,
        raw,
    })
}

/// How long after the switch of the gate each promotion began. For an admission that is its intent and its
/// act in one.
async fn release(client: &Client, crowd: &Crowd) -> Result<Ordered> {
    let revision = "1.1.0";
    let seen = Seen::start(client, NAMESPACE, &[Kind::Pipeline], revision).await?;
    crowd.release(revision).await?;
    seen.all(Moment::Pending, crowd.pipelines()).await?;
    let began = Instant::now();
    crowd.open_gate().await?;
    seen.all(Moment::Admitted, crowd.pipelines()).await?;
    Ok(seen.since(began, Moment::Admitted))
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

impl Display for Wave {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self {
            n,
            begun,
            usage,
            raw,
        } = self;
        #[allow(clippy::cast_precision_loss, reason = "a count of thousands")]
        let rate = begun.count() as f64 / begun.at(1.0);
        writeln!(
            f,
            "\n| one gate holds {n} promotions, and opens | |\n|---|---|\n\
             | raw patch rate of the server, with statuses like these | {raw:.0}/s |\n\
             | promotions begun a second | {rate:.0}/s, {:.0} % of raw |\n\
             | begun after the switch: p50, p99, last | {:.2} s, {:.2} s, {:.2} s |\n\
             | highest resident | {} MiB |",
            100.0 * rate / raw,
            begun.at(0.5),
            begun.at(0.99),
            begun.at(1.0),
            usage.highest,
        )
    }
}
