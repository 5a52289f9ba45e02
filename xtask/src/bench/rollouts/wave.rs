//! One gate lets all Rollouts go on at once: how fast the intents of their batches are accepted, beside a bare
//! client that writes as many statuses.

use std::fmt::{Display, Formatter};
use std::time::Instant;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use super::crowd::{Crowd, REVISION};
use super::{NAMESPACE, say};
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

pub(super) async fn measure(bench: &Bench, crowd: &Crowd, n: usize) -> Result<Wave> {
    let controller = bench.controller(&[]).await?;
    controller.settled(n).await?;
    let seen = Seen::start(&bench.client, NAMESPACE, &[Kind::Rollout], REVISION).await?;
    let began = Instant::now();
    crowd.gate("open").await?;
    seen.all(Moment::Admitted, n).await?;
    let begun = seen.since(began, Moment::Admitted);
    let usage = controller.usage()?;
    drop(controller);
    say(&format!("{n} batches began at once"));
    Ok(Wave {
        n,
        begun,
        usage,
        raw: raw(crowd).await?,
    })
}

/// How many statuses like these a bare client writes in a second, with as many requests in flight.
async fn raw(crowd: &Crowd) -> Result<f64> {
    let api = crowd.rollouts();
    let all = api.list(&ListParams::default()).await?.items;
    let n = all.len();
    let bodies = all.into_iter().map(|rollout| {
        let name = rollout.name_any();
        let mut status = rollout.status.context("it has no status")?;
        status.progress = Some("0/0".to_owned());
        let body = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout",
            "metadata": {"name": name}, "status": status,
        });
        Ok((name, body))
    });
    let bodies = bodies.collect::<Result<Vec<_>>>()?;
    let params = PatchParams::apply("gate-controller-rollouts").force();
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
            "\n| one gate holds {n} batches, and opens | |\n|---|---|\n\
             | raw patch rate of the server, with statuses like these | {raw:.0}/s |\n\
             | intents accepted a second | {rate:.0}/s, {:.0} % of raw |\n\
             | accepted after the switch: p50, p99, last | {:.2} s, {:.2} s, {:.2} s |\n\
             | highest resident | {} MiB |",
            100.0 * rate / raw,
            begun.at(0.5),
            begun.at(0.99),
            begun.at(1.0),
            usage.highest,
        )
    }
}
