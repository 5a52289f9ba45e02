//! A namespace, a clock in hand, and the words to say what a controller should make of both.
//!
//! What comes in: a cluster, YAML, the time. What goes out: a controller in this process that keeps
//! the namespace by that clock, and waits for what it says, each with a deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gate_controller::Settings;
use gate_controller::observe::clock::{Clock, SetClock, SystemClock};
use jiff::{Timestamp, ToSpan, Unit};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use sluice_crds::{Gate, GateSpec, GateStatus, Gatekeeper, GatekeeperStatus, Setting, State};

use crate::apply::Applier;
use crate::cluster::Cluster;
use crate::conformance::{self, Judged};
use crate::controller::{self, InProcess};
use crate::installation::{CONTROLLER, installed};
use crate::namespace::Namespace;
use crate::poll::poll;
use crate::rights;
use crate::shared::shared;

/// Until a controller has written what it should: it takes milliseconds on an idle machine.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// The longest pause between two retries of a controller that a test runs in real time.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Within which a watch that was refused is tried again: half a minute, up to doubled by jitter.
pub const RETRIED: Duration = Duration::from_secs(90);

/// By how many seconds an instant must be ahead that something has to be ready for: far more than
/// that takes on two busy cores, and less than [`DEADLINE`].
pub const AHEAD: i64 = 10;

/// Weekdays from nine to five, in UTC.
pub const OFFICE_HOURS: &str = r#"
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: office-hours}
spec: {schedule: {open: [{name: office-hours, cron: "0 9 * * MON-FRI", duration: 8h}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: production}
spec: {gatekeepers: [{name: office-hours}]}
"#;

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

/// An instant, from its text.
///
/// # Panics
///
/// If it is none.
#[must_use]
#[allow(clippy::unwrap_used, reason = "written out in tests")]
pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The full second in so many seconds, by the clock of the machine.
pub fn soon(seconds: i64) -> Result<Timestamp> {
    let second = SystemClock.now().round(Unit::Second)?;
    Ok(second.checked_add(seconds.seconds())?)
}

/// The message of a status.
pub fn message(status: &GateStatus) -> &str {
    status.message.as_deref().unwrap_or_default()
}

/// A gate without gatekeepers.
pub fn gate(name: &str, default: Setting) -> Gate {
    let spec = GateSpec {
        default,
        ..GateSpec::default()
    };
    Gate::new(name, spec)
}

/// A gate that opens once, for an hour.
pub fn dated(name: &str, start: Timestamp) -> String {
    let wall = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let (from, until) = (wall(start), wall(start + 1.hour()));
    format!(
        "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {{name: {name}}}
spec: {{schedule: {{open: [{{from: '{from}', until: '{until}'}}]}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {{name: {name}}}
spec: {{gatekeepers: [{{name: {name}}}]}}
"
    )
}

/// A namespace of one's own and a clock to set.
///
/// At its end every status that the controller has written here has to keep the rules of
/// [`conformance`]: else it panics, and the test fails.
///
/// What waits fails after [`DEADLINE`], with what was seen last; everything else fails if the API
/// server refuses it.
pub struct Stage {
    cluster: Cluster,
    /// Over all that is written here, until the end. It ends before the namespace is deleted.
    statuses: Judged,
    namespace: Namespace,
    /// Ours, with all rights.
    client: Client,
    /// The controllers'.
    acting: Client,
    clock: Arc<SetClock>,
    /// How often everything was asked to be looked at.
    asked: AtomicU32,
}

impl Stage {
    /// On the shared server, with the clock at `now`.
    pub async fn new(word: &str, now: &str) -> Result<Self> {
        Self::on(shared().await?, word, now).await
    }

    /// On the shared server: [`OFFICE_HOURS`] at an instant at which they are open, and a
    /// controller that has said so and has nothing left to do.
    pub async fn open(word: &str, now: &str) -> Result<(Self, InProcess)> {
        let stage = Self::new(word, now).await?;
        let controller = stage.opens().await?;
        Ok((stage, controller))
    }

    /// The same on a stage that is there.
    pub async fn opens(&self) -> Result<InProcess> {
        self.apply(OFFICE_HOURS).await?;
        let controller = self.start().await?;
        self.says("production", State::Open, "InsideWindow").await?;
        self.settle().await?;
        Ok(controller)
    }

    /// On a server with the chart, its controller under the name that its policies know.
    pub async fn installed(word: &str, now: &str) -> Result<Self> {
        Self::with_chart(installed().await?, word, now).await
    }

    /// The same on a server of one's choice that the chart is installed on.
    pub async fn with_chart(cluster: &Cluster, word: &str, now: &str) -> Result<Self> {
        let mut stage = Self::on(cluster, word, now).await?;
        stage.acting = cluster.client_for(CONTROLLER).await?;
        Ok(stage)
    }

    /// On a server of one's choice.
    pub async fn on(cluster: &Cluster, word: &str, now: &str) -> Result<Self> {
        let client = cluster.client().await?;
        let namespace = Namespace::create(cluster, word).await?;
        let statuses = Judged::start(cluster, namespace.name()).await?;
        let stage = Self {
            cluster: cluster.clone(),
            statuses,
            namespace,
            acting: client.clone(),
            client,
            clock: Arc::new(SetClock::new(at(now))),
            asked: AtomicU32::new(0),
        };
        Ok(stage)
    }

    /// Statuses are not judged any more. For tests that take out of statuses what the controller
    /// wrote: the fields that are there say who wrote them, those that are missing do not.
    pub fn judge_no_statuses(&self) {
        self.statuses.end_unheard();
    }

    /// The cluster that it is on.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// A client with all rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The namespace's name.
    pub fn namespace(&self) -> &str {
        self.namespace.name()
    }

    /// The flags of a controller that keeps this namespace.
    pub fn settings(&self) -> Settings {
        controller::settings(self.namespace())
    }

    /// Starts a controller that keeps this namespace, by the clock in hand.
    pub async fn start(&self) -> Result<InProcess> {
        self.start_with(self.settings()).await
    }

    /// The same, with loopback open to it, where the servers of tests are.
    pub async fn start_with_egress(&self) -> Result<InProcess> {
        let mut settings = self.settings();
        settings.egress_allow = vec!["127.0.0.0/8".parse()?];
        self.start_with(settings).await
    }

    /// Starts a controller by the clock of the machine, for tests that wait until it retries
    /// something. The pauses between retries stay far below [`DEADLINE`].
    pub async fn start_in_real_time(&self, client: Client) -> Result<InProcess> {
        let settings = Settings {
            max_retry_delay: LONGEST_PAUSE,
            ..self.settings()
        };
        InProcess::start(settings, client, Arc::new(SystemClock)).await
    }

    /// Starts a controller with other flags.
    pub async fn start_with(&self, settings: Settings) -> Result<InProcess> {
        InProcess::start(settings, self.acting.clone(), self.clock()).await
    }

    /// The clock in hand.
    pub fn clock(&self) -> Arc<SetClock> {
        Arc::clone(&self.clock)
    }

    /// What the clock says.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Sets the clock.
    pub fn set(&self, now: &str) {
        self.clock.set(at(now));
    }

    /// Applies YAML in this namespace.
    pub async fn apply(&self, yaml: &str) -> Result<()> {
        let applier = Applier::new(self.client()).in_namespace(self.namespace());
        applier.text(yaml).await?;
        Ok(())
    }

    /// Lets users do in this namespace what a ClusterRole of the chart says.
    pub async fn grant(&self, role: &str, users: &[&str]) -> Result<()> {
        rights::grant(self.client(), self.namespace(), role, users).await
    }

    /// Lets a user do in this namespace what the rules of a Role of their own say.
    pub async fn grant_rules(&self, role: &str, user: &str, rules: &[Value]) -> Result<()> {
        rights::grant_rules(self.client(), self.namespace(), role, user, rules).await
    }

    /// The gates here.
    pub fn gates(&self) -> Api<Gate> {
        Api::namespaced(self.client(), self.namespace())
    }

    /// The gatekeepers here.
    pub fn gatekeepers(&self) -> Api<Gatekeeper> {
        Api::namespaced(self.client(), self.namespace())
    }

    /// Sets annotations of a gate, and with `null` removes them, as `kubectl annotate` does.
    pub async fn annotate(&self, gate: &str, annotations: Value) -> Result<Gate> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        let manager = PatchParams {
            field_manager: Some("kubectl-annotate".to_owned()),
            ..PatchParams::default()
        };
        Ok(self.gates().patch(gate, &manager, &patch).await?)
    }

    /// Waits until `check` is content with the gate's status, and returns the gate.
    pub async fn until(
        &self,
        gate: &str,
        what: &str,
        check: impl Fn(&GateStatus) -> bool,
    ) -> Result<Gate> {
        let what = format!("gate {gate}: {what}");
        poll(DEADLINE, &what, async || {
            let gate = self.gates().get(gate).await?;
            let status = gate.status.as_ref().context("no status")?;
            ensure!(check(status), "{}", json!(status));
            Ok::<_, anyhow::Error>(gate)
        })
        .await
    }

    /// The same for a gatekeeper.
    pub async fn until_gatekeeper(
        &self,
        gatekeeper: &str,
        what: &str,
        check: impl Fn(&GatekeeperStatus) -> bool,
    ) -> Result<Gatekeeper> {
        let what = format!("gatekeeper {gatekeeper}: {what}");
        poll(DEADLINE, &what, async || {
            let gatekeeper = self.gatekeepers().get(gatekeeper).await?;
            let status = gatekeeper.status.as_ref().context("no status")?;
            ensure!(check(status), "{}", json!(status));
            Ok::<_, anyhow::Error>(gatekeeper)
        })
        .await
    }

    /// Waits until the gate reports this state for this reason, and returns its status.
    pub async fn says(&self, gate: &str, state: State, reason: &str) -> Result<GateStatus> {
        let what = format!("{state} because of {reason}");
        let said = |status: &GateStatus| {
            status.state == Some(state) && status.reason.as_deref() == Some(reason)
        };
        let gate = self.until(gate, &what, said).await?;
        gate.status.context("no status")
    }

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
        let gate = last("Gate", &json!({"default": "closed"}), ask);
        self.gates().patch(LAST, &own, &Patch::Apply(gate)).await?;
        let gatekeeper = last("Gatekeeper", &json!({"manual": {"state": "closed"}}), ask);
        let gatekeepers = self.gatekeepers();
        gatekeepers
            .patch(LAST, &own, &Patch::Apply(gatekeeper))
            .await?;
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

    /// The version of a gate: it is another one after every change, and only then.
    pub async fn version(&self, gate: &str) -> Result<String> {
        let gate = self.gates().get(gate).await?;
        gate.resource_version().context("no resourceVersion")
    }
}
