//! Rollouts that are held: what they cost the API server and memory.

use std::fmt::{Display, Formatter};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::crowd::{Crowd, PODS, REVISION};
use super::{NAMESPACE, say};
use crate::bench::Bench;
use crate::bench::process::Usage;
use crate::bench::seen::{Kind, Moment, Seen};

/// How long numbers of pods may be held back that have changed while nothing else has.
const SELDOM: Duration = Duration::from_secs(15);

pub(super) struct Many {
    n: usize,
    length: Duration,
    /// Without any Rollout.
    empty: Usage,
    /// From the start until every Rollout is held at its second batch.
    first: Duration,
    /// The same where all of it is said already, until everything was looked at.
    restart: Duration,
    writes: u64,
    full: Usage,
}

pub(super) async fn measure(
    bench: &Bench,
    crowd: &Crowd,
    n: usize,
    length: Duration,
) -> Result<Many> {
    let empty = {
        let controller = bench.controller(&[]).await?;
        controller.settled(0).await?;
        controller.usage()?
    };
    crowd.create(n).await?;
    say(&format!("{n} Rollouts of {PODS} pods"));
    let seen = Seen::start(&bench.client, NAMESPACE, &[Kind::Rollout], REVISION).await?;
    let began = Instant::now();
    let controller = bench.controller(&[]).await?;
    seen.all(Moment::Pending, n).await?;
    let first = began.elapsed();
    say(&format!(
        "all of them were held {first:.1?} after the start"
    ));
    drop(controller);
    let began = Instant::now();
    let controller = bench.controller(&[]).await?;
    controller.settled(n).await?;
    let restart = began.elapsed();
    // Numbers of pods that have changed a moment ago are written then, at the latest.
    controller.idle(SELDOM).await?;
    let writes = controller.idle(length).await?;
    Ok(Many {
        n,
        length,
        empty,
        first,
        restart,
        writes,
        full: controller.usage()?,
    })
}

impl Display for Many {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self {
            n,
            length,
            empty,
            first,
            restart,
            writes,
            full,
        } = self;
        writeln!(
            f,
            "\n| {n} rollouts of two Deployments with {PODS} pods, held at their second batch | |\n|---|---|\n\
             | writes in {} s | {writes} |\n\
             | from the start until all are held there, with their first pods | {:.1} s |\n\
             | a restart, until everything was looked at | {:.1} s |\n\
             | resident: without rollouts, with them, highest | {}, {}, {} MiB |",
            length.as_secs(),
            first.as_secs_f64(),
            restart.as_secs_f64(),
            empty.resident,
            full.resident,
            full.highest,
        )
    }
}
