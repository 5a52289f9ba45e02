//! When a controller has done all there was to do, and how much it wrote.
//!
//! What comes in: a stage. What goes out: a wait for the objects that are looked at last of all, and counts
//! of writes without those.

use std::sync::atomic::Ordering;

use anyhow::{Result, ensure};
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::{DEADLINE, Stage};
use crate::conformance;
use crate::controller::InProcess;
use crate::poll::poll;

/// What is looked at last of all that is due, by its name: of the gates and of the gatekeepers.
pub const LAST: &str = "zz-last";

/// One of the two. Where there are shards they are the first one's.
fn last(kind: &str, spec: &Value, ask: &str) -> Value {
    json!({
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": kind,
        "metadata": {
            "name": LAST,
            "labels": {"sharding.fluxcd.io/key": "shard1"},
            "annotations": {"reconcile.fluxcd.io/requestedAt": ask},
        },
        "spec": spec,
    })
}

impl Stage {
    /// Waits until a controller with one worker has looked at everything that is due or has
    /// changed. Objects are looked at by urgency and by when they were due: who comes last of all
    /// comes after everything. There is one such object of each kind, because one kind's watch may
    /// bring its changes long after the other's; and gatekeepers, which wake gates, come after
    /// them. What was written comes back as a change, hence the second time.
    pub async fn settle(&self) -> Result<()> {
        for _ in 0..2 {
            let ask = self.asked.fetch_add(1, Ordering::Relaxed).to_string();
            self.ask(&ask).await?;
            poll(DEADLINE, "everything to be looked at", async || {
                let gate = self.gates().get(LAST).await?.status;
                let gatekeeper = self.gatekeepers().get(LAST).await?.status;
                let handled = [
                    gate.and_then(|status| status.last_handled_reconcile_at),
                    gatekeeper.and_then(|status| status.last_handled_reconcile_at),
                ];
                let all = handled.iter().all(|handled| handled.as_ref() == Some(&ask));
                ensure!(all, "asked {ask}, and {handled:?} were handled");
                Ok(())
            })
            .await?;
        }
        self.at_rest().await
    }

    /// Statuses are about what is there now.
    async fn at_rest(&self) -> Result<()> {
        let all = ListParams::default();
        let (gates, gatekeepers) = (self.gates(), self.gatekeepers());
        let (gates, gatekeepers) = tokio::try_join!(gates.list(&all), gatekeepers.list(&all))?;
        let gates = gates.iter().map(|gate| (gate.name_any(), json!(gate)));
        let gatekeepers = gatekeepers.iter().map(|it| (it.name_any(), json!(it)));
        for (name, object) in gates.chain(gatekeepers) {
            let broken = conformance::at_rest(&object);
            ensure!(broken.is_empty(), "{name}: {}", broken.join("; "));
        }
        Ok(())
    }

    /// Asks for the two that are looked at last.
    async fn ask(&self, ask: &str) -> Result<()> {
        let own = PatchParams::apply("settle").force();
        let gate = Patch::Apply(last("Gate", &json!({"default": "closed"}), ask));
        let spec = json!({"manual": {"state": "closed"}});
        let gatekeeper = Patch::Apply(last("Gatekeeper", &spec, ask));
        let (gates, gatekeepers) = (self.gates(), self.gatekeepers());
        tokio::try_join!(
            gates.patch(LAST, &own, &gate),
            gatekeepers.patch(LAST, &own, &gatekeeper),
        )?;
        Ok(())
    }

    /// How many writes of gates the API server has taken from the controller, but for the answers
    /// that [`Self::settle`] asked for: only differences of two such counts mean anything.
    pub async fn writes(&self, controller: &InProcess) -> Result<i64> {
        self.writes_of(controller, "Gate").await
    }

    /// The same for objects of a kind.
    pub async fn writes_of(&self, controller: &InProcess, kind: &'static str) -> Result<i64> {
        let writes = i64::try_from(controller.writes(kind).await?)?;
        Ok(writes - i64::from(self.asked.load(Ordering::Relaxed)))
    }
}
