//! All first environments run something new, and one gate lets all of them go at once: how fast promotions
//! begin, beside a bare client that writes as many statuses.

use std::time::Instant;

use anyhow::{Context, Result};
use kube::Client;
use sluice_crds::Pipeline;

use super::crowd::Crowd;
use super::{FLAGS, NAMESPACE, say};
use crate::bench::Bench;
use crate::bench::ordered::Ordered;
use crate::bench::seen::{Kind, Moment, Seen};
use crate::bench::wave::{Wave, Words, raw};

pub(super) async fn measure(bench: &Bench, crowd: &Crowd) -> Result<Wave> {
    let (client, n) = (&bench.client, crowd.pipelines());
    let controller = bench.controller(&FLAGS).await?;
    controller.settled(n).await?;
    let begun = release(client, crowd).await?;
    let usage = controller.usage()?;
    drop(controller);
    say(&format!("{n} promotions began at once"));
    let changed = |pipeline: Pipeline| {
        let mut status = pipeline.status.context("it has no status")?;
        let run = status.run.as_mut().context("it has no run")?;
        run.message = "another one".to_owned();
        Ok(status)
    };
    Ok(Wave {
        words: Words {
            held: "promotions",
            counted: "promotions",
            happens: "begun",
        },
        n,
        begun,
        usage,
        raw: raw(&crowd.api(), "gate-controller-pipelines", changed).await?,
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
