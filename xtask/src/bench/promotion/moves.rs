//! From a check that passes to the order to merge, and to the merge: one strategy after the other, and all of
//! them at once.

use std::fmt::{Display, Formatter};
use std::time::Instant;

use anyhow::Result;

use super::crowd::{Crowd, name};
use super::repository::Hydration;
use super::{FLAGS, NAMESPACE, milliseconds, say};
use crate::bench::Bench;
use crate::bench::ordered::Ordered;
use crate::bench::process::Controller;
use crate::bench::seen::{Kind, Moment, Seen};

pub(super) struct Moves {
    rounds: usize,
    n: usize,
    alone: Lengths,
    together: Lengths,
    /// Merges by hand, without a controller, in seconds.
    by_hand: Ordered,
    /// Of the promotions that were made alone.
    rest: u64,
    git: u64,
    strategies: u64,
    pulls: u64,
}

/// After the check has passed, in seconds.
struct Lengths {
    ordered: Ordered,
    merged: Ordered,
}

pub(super) async fn measure(bench: &Bench, crowd: &Crowd, rounds: usize) -> Result<Moves> {
    let first = crowd.first().clone();
    let seen = seen(bench, &first.dry).await?;
    let controller = bench.controller(&FLAGS).await?;
    seen.all(Moment::Merged, crowd.n).await?;
    let before = counts(&controller).await?;
    let (mut ordered, mut merged) = (Vec::new(), Vec::new());
    let mut last = first;
    for round in 0..rounds {
        let strategy = name(round % crowd.n);
        let (next, lengths) = step(bench, crowd, &last, round + 2, &[strategy]).await?;
        ordered.push(lengths.ordered.at(1.0));
        merged.push(lengths.merged.at(1.0));
        last = next;
        say(&format!("promotion {} of {rounds}", round + 1));
    }
    let after = counts(&controller).await?;
    let all: Vec<String> = (0..crowd.n).map(name).collect();
    let (next, together) = step(bench, crowd, &last, rounds + 2, &all).await?;
    controller.usage()?;
    drop(controller);
    let some = rounds.clamp(1, crowd.n);
    let by_hand = crowd.merge_by_hand(&next, &all[..some]).await?;
    let [rest, git, strategies, pulls] = std::array::from_fn(|n| after[n] - before[n]);
    Ok(Moves {
        rounds,
        n: crowd.n,
        alone: Lengths {
            ordered: Ordered::new(ordered),
            merged: Ordered::new(merged),
        },
        together,
        by_hand,
        rest,
        git,
        strategies,
        pulls,
    })
}

/// Something is proposed for the first environment of these strategies, and waits for its check, which passes.
async fn step(
    bench: &Bench,
    crowd: &Crowd,
    last: &Hydration,
    version: usize,
    strategies: &[String],
) -> Result<(Hydration, Lengths)> {
    let next = crowd.propose(version, last, strategies)?;
    let seen = seen(bench, &next.dry).await?;
    seen.all(Moment::Opened, strategies.len()).await?;
    say(&format!(
        "{} proposed, open, and waiting for the check",
        strategies.len()
    ));
    let began = Instant::now();
    crowd.pass(&next).await?;
    seen.all(Moment::Admitted, strategies.len()).await?;
    let ordered = seen.since(began, Moment::Admitted);
    say(&format!(
        "all orders are accepted: p50 {}, p99 {}",
        milliseconds(&ordered, 0.5),
        milliseconds(&ordered, 0.99)
    ));
    seen.all(Moment::Merged, strategies.len()).await?;
    let lengths = Lengths {
        ordered,
        merged: seen.since(began, Moment::Merged),
    };
    Ok((next, lengths))
}

async fn seen(bench: &Bench, dry: &str) -> Result<Seen> {
    Seen::start(&bench.client, NAMESPACE, &[Kind::PromotionStrategy], dry).await
}

/// Requests by REST and by git, and writes of strategies and of PullRequests.
async fn counts(controller: &Controller) -> Result<[u64; 4]> {
    let (requests, writes) = ("sluice_forge_requests_total", "sluice_writes_total");
    Ok([
        controller.count(requests, "protocol=\"api\"").await?,
        controller.count(requests, "protocol=\"git\"").await?,
        controller
            .count(writes, "kind=\"PromotionStrategy\"")
            .await?,
        controller.count(writes, "kind=\"PullRequest\"").await?,
    ])
}

impl Display for Moves {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self {
            rounds,
            n,
            alone,
            together,
            by_hand,
            rest,
            git,
            strategies,
            pulls,
        } = self;
        writeln!(
            f,
            "\n| a check passes, at Gitea | {rounds}, one after the other: p50, p99 | {n} at once: p50, p99 |\n\
             |---|---|---|"
        )?;
        let both = |of: fn(&Lengths) -> &Ordered| {
            let texts = [alone, together].map(|it| {
                let of = of(it);
                format!("{}, {}", milliseconds(of, 0.5), milliseconds(of, 0.99))
            });
            texts.join(" | ")
        };
        writeln!(
            f,
            "| until its order is accepted | {} |",
            both(|it| &it.ordered)
        )?;
        writeln!(
            f,
            "| until the merge is recorded | {} |",
            both(|it| &it.merged)
        )?;
        writeln!(
            f,
            "| a merge by hand, without a controller | {}, {} | |",
            milliseconds(by_hand, 0.5),
            milliseconds(by_hand, 0.99),
        )?;
        #[allow(clippy::cast_precision_loss, reason = "counts of hundreds")]
        let each = |count: u64| count as f64 / (*rounds).max(1) as f64;
        writeln!(
            f,
            "\n| a promotion of one environment, from the push to the record | |\n|---|---|\n\
             | requests to the forge: REST, git | {:.1}, {:.1} |\n\
             | writes: strategy, PullRequest | {:.1}, {:.1} |",
            each(*rest),
            each(*git),
            each(*strategies),
            each(*pulls),
        )
    }
}
