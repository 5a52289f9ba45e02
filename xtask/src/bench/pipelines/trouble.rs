//! One of the other clusters is dead, and so is the forge, where many pipelines have something to do: how
//! long everybody else takes, before and after.

use std::fmt::{Display, Formatter};
use std::time::Instant;

use anyhow::Result;
use kube::{Api, Client};
use serde_json::json;
use sluice_crds::Gatekeeper;
use sluice_tests::{Applier, Writes};

use super::crowd::Crowd;
use super::forge::{self, Forge};
use super::{FLAGS, NAMESPACE, milliseconds, say};
use crate::bench::Bench;
use crate::bench::ordered::Ordered;
use crate::bench::seen::{Kind, Moment, Seen};

/// How many promotions are timed in each phase, one after the other, and how many switches.
const TIMED: usize = 50;

/// While all is well, or after that.
struct Phase {
    /// From the app to the admission.
    promoted: Ordered,
    /// From the switch to the status of its gate.
    thrown: Ordered,
}

pub(super) struct Trouble {
    clusters: usize,
    well: Phase,
    ill: Phase,
}

pub(super) async fn measure(bench: &Bench, crowd: &Crowd, forge: &Forge) -> Result<Trouble> {
    let client = &bench.client;
    let controller = bench.controller(&FLAGS).await?;
    crowd.open_gate().await?;
    switches(client, 2 * TIMED).await?;
    controller.settled(crowd.pipelines()).await?;
    forge.complete().await?;
    let well = phase(client, crowd, "well", 0).await?;
    crowd.lose_a_cluster();
    forge.lose();
    forge.release("9.0.0").await?;
    say("a cluster and the forge are dead");
    let ill = phase(client, crowd, "ill", TIMED).await?;
    controller.usage()?;
    Ok(Trouble {
        clusters: crowd.clusters(),
        well,
        ill,
    })
}

async fn phase(client: &Client, crowd: &Crowd, word: &str, first: usize) -> Result<Phase> {
    Ok(Phase {
        promoted: promote(client, crowd, word).await?,
        thrown: throw(client, first).await?,
    })
}

/// New revisions in some first environments, whose pipelines do not know the cluster that is lost.
async fn promote(client: &Client, crowd: &Crowd, word: &str) -> Result<Ordered> {
    let seen = Seen::start(client, NAMESPACE, &[Kind::Pipeline], word).await?;
    let mut took = Vec::with_capacity(TIMED);
    for (place, name) in crowd.unconcerned().take(TIMED).enumerate() {
        crowd.runs(&name, &format!("2.{place}.0-{word}")).await?;
        let began = Instant::now();
        took.push(seen.one(&name, Moment::Admitted, began).await?);
    }
    Ok(Ordered::new(took))
}

/// Gates that are closed, each with a switch.
async fn switches(client: &Client, n: usize) -> Result<()> {
    let applier = Applier::new(client.clone()).in_namespace(NAMESPACE);
    for place in 0..n {
        let name = switch(place);
        let gatekeeper = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper", "metadata": {"name": name},
            "spec": {"manual": {"state": "closed"}},
        });
        let gate = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate", "metadata": {"name": name},
            "spec": {"gatekeepers": [{"name": name}]},
        });
        for object in [gatekeeper, gate] {
            applier.text(&object.to_string()).await?;
        }
    }
    Ok(())
}

/// Throws switches, from this one on.
async fn throw(client: &Client, first: usize) -> Result<Ordered> {
    let gatekeepers: Api<Gatekeeper> = Api::namespaced(client.clone(), NAMESPACE);
    let seen = Seen::start(client, NAMESPACE, &[Kind::Gate], "").await?;
    let mut took = Vec::with_capacity(TIMED);
    for name in (first..first + TIMED).map(switch) {
        let open = json!({"spec": {"manual": {"state": "open"}}});
        gatekeepers.merge(&name, &open).await?;
        let began = Instant::now();
        took.push(seen.one(&name, Moment::Open, began).await?);
    }
    Ok(Ordered::new(took))
}

fn switch(place: usize) -> String {
    format!("switch-{place:03}")
}

impl Display for Trouble {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self {
            clusters,
            well,
            ill,
        } = self;
        writeln!(
            f,
            "\n| {TIMED} times, one after the other | all is well | one of {clusters} clusters and the forge \
             of {} others are dead | ratio |\n|---|---|---|---|",
            forge::PIPELINES
        )?;
        for (what, of) in [
            (
                "from the app to the admission",
                (&well.promoted, &ill.promoted),
            ),
            (
                "from a switch to the status of its gate",
                (&well.thrown, &ill.thrown),
            ),
        ] {
            for (which, part) in [("p50", 0.5), ("p90", 0.9), ("last", 1.0)] {
                let (before, after) = of;
                let ratio = after.at(part) / before.at(part);
                let [before, after] = [before, after].map(|it| milliseconds(it, part));
                writeln!(f, "| {what}: {which} | {before} | {after} | {ratio:.2} |")?;
            }
        }
        Ok(())
    }
}
