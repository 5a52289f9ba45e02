//! One gate lets all Rollouts go on at once: how fast the intents of their batches are accepted, beside a bare
//! client that writes as many statuses.

use std::time::Instant;

use anyhow::{Context, Result};
use sluice_crds::Rollout;

use super::crowd::{Crowd, REVISION};
use super::{NAMESPACE, say};
use crate::bench::Bench;
use crate::bench::seen::{Kind, Moment, Seen};
use crate::bench::wave::{Wave, Words, raw};

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
    let changed = |rollout: Rollout| {
        let mut status = rollout.status.context("it has no status")?;
        status.progress = Some("0/0".to_owned());
        Ok(status)
    };
    Ok(Wave {
        words: Words {
            held: "batches",
            counted: "intents",
            happens: "accepted",
        },
        n,
        begun,
        usage,
        raw: raw(&crowd.rollouts(), "gate-controller-rollouts", changed).await?,
    })
}
