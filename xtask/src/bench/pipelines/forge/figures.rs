//! From a healthy app to its pull request, beside a bare client and beside what peers do; and from a merge to
//! its record.

use std::fmt::{Display, Formatter};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::bare::{Bare, Cost, Way};
use super::{Forge, name, repository};
use crate::bench::Bench;
use crate::bench::ordered::Ordered;
use crate::bench::pipelines::{FLAGS, NAMESPACE, milliseconds, say};
use crate::bench::seen::{Kind, Moment, Seen};

/// How many pipelines are sent to the forge in a round, one after the other.
const IN_A_ROUND: usize = 10;
/// How often an archive is read, and the repository is cloned.
const PEERS: usize = 5;
/// A pull request that was seen just now is not asked about for this long.
const JUST_SEEN: Duration = Duration::from_secs(6);

/// All lengths of time in seconds.
pub(in super::super) struct Figures {
    /// From the healthy app to the PullRequest that is open.
    took: Ordered,
    /// Of that, what the forge was not waited for.
    ours: Ordered,
    requests: usize,
    /// Of each change, in KiB.
    bytes: Ordered,
    bare: Costs,
    archive: Costs,
    clone: Costs,
    /// From the merge to the record, where the app arrives first, and where it does not.
    arrived: Ordered,
    listed: Ordered,
}

struct Costs {
    took: Ordered,
    /// KiB.
    bytes: Ordered,
}

/// The way of one change to the forge.
struct Sent {
    took: f64,
    ours: f64,
    bytes: u64,
    requests: usize,
}

pub(in super::super) async fn measure(
    bench: &Bench,
    forge: &Forge,
    rounds: usize,
) -> Result<Figures> {
    let controller = bench.controller(&FLAGS).await?;
    forge.complete().await?;
    let mut bare = Bare::new(forge)?;
    let (mut sent, mut costs) = (Vec::new(), Vec::new());
    let (mut arrived, mut listed) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        for place in 0..IN_A_ROUND {
            sent.push(send(forge, place, &revision(round, place)).await?);
            costs.push(bare.change(Way::Paths).await?);
        }
        match round {
            0 => listed = merge_all(forge, round).await?,
            _ => arrived.extend(merge_each(forge, round).await?),
        }
        say(&format!("round {} of {rounds} at the forge", round + 1));
    }
    let archive = peers(forge, &mut bare, Way::Archive).await?;
    let clone = peers(forge, &mut bare, Way::Clone).await?;
    controller.usage()?;
    let of = |read: fn(&Sent) -> f64| Ordered::new(sent.iter().map(read).collect());
    Ok(Figures {
        took: of(|it| it.took),
        ours: of(|it| it.ours),
        bytes: of(|it| kib(it.bytes)),
        requests: sent.iter().map(|it| it.requests).min().unwrap_or_default(),
        bare: Costs::new(&costs),
        archive,
        clone,
        arrived: Ordered::new(arrived),
        listed: Ordered::new(listed),
    })
}

fn revision(round: usize, place: usize) -> String {
    format!("2.{round}.{place}")
}

/// An app of a first environment runs a revision. How long it took until its pull request was open, and what
/// it cost until nothing was to be done any more.
async fn send(forge: &Forge, place: usize, revision: &str) -> Result<Sent> {
    forge.rests().await?;
    let seen = Seen::start(&forge.client, NAMESPACE, &[Kind::PullRequest], revision).await?;
    let line = &forge.line;
    let (bytes, requests) = (line.bytes(), line.connections());
    forge.first_runs(place, revision).await?;
    let began = Instant::now();
    seen.all(Moment::Opened, 1).await?;
    let took = seen.since(began, Moment::Opened).at(1.0);
    let waited = line.waited(began, began + Duration::from_secs_f64(took));
    forge.rests().await?;
    Ok(Sent {
        took,
        ours: took - waited.as_secs_f64(),
        bytes: line.bytes() - bytes,
        requests: line.connections() - requests,
    })
}

/// People merge all that are open, and the apps arrive after that is recorded: it is found by a list.
async fn merge_all(forge: &Forge, round: usize) -> Result<Vec<f64>> {
    let seen = Seen::start(&forge.client, NAMESPACE, &[Kind::Pipeline], "").await?;
    let mut merged = Vec::with_capacity(IN_A_ROUND);
    for place in 0..IN_A_ROUND {
        merged.push(forge.merge(place).await?);
    }
    let mut took = Vec::with_capacity(IN_A_ROUND);
    for (place, merged) in merged.into_iter().enumerate() {
        took.push(seen.one(&name(place), Moment::Merged, merged).await?);
        forge.last_runs(place, &revision(round, place)).await?;
    }
    forge.complete().await?;
    Ok(took)
}

/// People merge one after the other, and each app arrives right after that.
#[allow(clippy::disallowed_methods, reason = "a benchmark on the real clock")]
async fn merge_each(forge: &Forge, round: usize) -> Result<Vec<f64>> {
    tokio::time::sleep(JUST_SEEN).await;
    let seen = Seen::start(&forge.client, NAMESPACE, &[Kind::Pipeline], "").await?;
    let mut took = Vec::with_capacity(IN_A_ROUND);
    for place in 0..IN_A_ROUND {
        forge.merge(place).await?;
        forge.last_runs(place, &revision(round, place)).await?;
        took.push(
            seen.one(&name(place), Moment::Merged, Instant::now())
                .await?,
        );
    }
    forge.complete().await?;
    Ok(took)
}

/// What peers do, each time after somebody else has changed the branch: nothing is prepared at the forge.
async fn peers(forge: &Forge, bare: &mut Bare<'_>, way: Way) -> Result<Costs> {
    let mut costs = Vec::with_capacity(PEERS);
    for _ in 0..PEERS {
        forge.change_by_a_person().await?;
        forge.rests().await?;
        costs.push(bare.change(way).await?);
    }
    Ok(Costs::new(&costs))
}

impl Costs {
    fn new(costs: &[Cost]) -> Self {
        Self {
            took: Ordered::new(costs.iter().map(|cost| cost.took).collect()),
            bytes: Ordered::new(costs.iter().map(|cost| kib(cost.bytes)).collect()),
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "bytes of a few requests")]
fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

impl Display for Figures {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self {
            took,
            ours,
            requests,
            bytes,
            bare,
            archive,
            clone,
            arrived,
            listed,
        } = self;
        writeln!(
            f,
            "\n| a pull request at Gitea, {} times, one after the other | p50 | p99 |\n|---|---|---|",
            took.count()
        )?;
        row(f, "from the healthy app to its open pull request", took)?;
        row(f, "of that all but the forge's time", ours)?;
        let requests_of = "a bare client that sends the same requests over one connection";
        row(f, requests_of, &bare.took)?;
        let ratio = |part| took.at(part) / bare.took.at(part);
        writeln!(f, "| ratio | {:.2} | {:.2} |", ratio(0.5), ratio(0.99))?;
        let first = "from a person's merge to its record, where the app arrives first";
        row(f, first, arrived)?;
        row(f, "the same, by the list of each minute", listed)?;
        writeln!(
            f,
            "\n| a change in a repository of {} files, p50 | bytes | time | bytes beside a clone |\n\
             |---|---|---|---|",
            repository::FILES
        )?;
        let cloned = clone.bytes.at(0.5);
        let mut change = |what: &str, bytes: &Ordered, took: &Ordered| {
            let bytes = bytes.at(0.5);
            let took = milliseconds(took, 0.5);
            writeln!(
                f,
                "| {what} | {bytes:.0} KiB | {took} | 1/{:.0} |",
                cloned / bytes
            )
        };
        change(&format!("by `paths`, in {requests} requests"), bytes, took)?;
        change(
            "the same requests by the bare client",
            &bare.bytes,
            &bare.took,
        )?;
        change("by an archive", &archive.bytes, &archive.took)?;
        change("`git clone --depth 1` and push", &clone.bytes, &clone.took)
    }
}

fn row(f: &mut Formatter<'_>, what: &str, of: &Ordered) -> std::fmt::Result {
    let (half, most) = (milliseconds(of, 0.5), milliseconds(of, 0.99));
    writeln!(f, "| {what} | {half} | {most} |")
}
