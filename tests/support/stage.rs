//! A namespace, a clock in hand, and the words to say what a controller should make of both.
//!
//! What comes in: a cluster, YAML, the time. What goes out: a controller in this process that keeps
//! the namespace by that clock, and waits for what it says, each with a deadline.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use gate_controller::Settings;
use gate_controller::observe::clock::{Clock, SetClock, SystemClock};
use jiff::{SignedDuration, Timestamp, ToSpan, Unit};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use sluice_crds::{Gate, GateSpec, GateStatus, Gatekeeper, GatekeeperStatus, Setting, State};

use crate::apply::Applier;
use crate::cluster::Cluster;
use crate::conformance::Judged;
use crate::controller::{self, InProcess};
use crate::installation::{CONTROLLER, installed};
use crate::namespace::Namespace;
use crate::rights;
use crate::shared::shared;
use crate::status;

mod settling;

pub use crate::poll::DEADLINE;
pub use settling::LAST;

/// The pauses between retries of a controller that a test runs in real time: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// By how many seconds an instant is ahead that a controller has to be ready for: enough on an idle
/// machine, and if it is not, more.
const AHEAD: [i64; 5] = [3, 6, 12, 24, 48];

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
fn dated(name: &str, start: Timestamp) -> String {
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
    applier: Applier,
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
        self.in_hours().await?;
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
        let namespace = Namespace::create_with(client.clone(), cluster, word).await?;
        let statuses = Judged::start(cluster, namespace.name()).await?;
        let stage = Self {
            cluster: cluster.clone(),
            statuses,
            applier: Applier::new(client.clone()).in_namespace(namespace.name()),
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
        let (min_retry_delay, max_retry_delay) = PAUSES;
        let settings = Settings {
            min_retry_delay,
            max_retry_delay,
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
        self.applier.text(yaml).await?;
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
        status::until(&self.gates(), gate, DEADLINE, &what, check).await
    }

    /// The same for a gatekeeper.
    pub async fn until_gatekeeper(
        &self,
        gatekeeper: &str,
        what: &str,
        check: impl Fn(&GatekeeperStatus) -> bool,
    ) -> Result<Gatekeeper> {
        let what = format!("gatekeeper {gatekeeper}: {what}");
        status::until(&self.gatekeepers(), gatekeeper, DEADLINE, &what, check).await
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

    /// Waits until the gate of [`OFFICE_HOURS`] is open, and returns its status.
    pub async fn in_hours(&self) -> Result<GateStatus> {
        self.says("production", State::Open, "InsideWindow").await
    }

    /// Waits until it is closed, because the office is.
    pub async fn out_of_hours(&self) -> Result<GateStatus> {
        self.says("production", State::Closed, "OutsideWindow")
            .await
    }

    /// Applies a gate that opens once, in a few seconds by the clock of the machine, and waits until a
    /// controller has announced that in its status: at least a second before the instant, which it returns.
    pub async fn due_soon(&self, name: &str) -> Result<Timestamp> {
        for seconds in AHEAD {
            let start = soon(seconds)?;
            self.apply(&dated(name, start)).await?;
            let left = start.duration_since(SystemClock.now()) - SignedDuration::from_secs(1);
            let left = Duration::try_from(left).unwrap_or_default();
            let announced = |status: &GateStatus| {
                let next = status.upcoming.first();
                next.is_some_and(|next| next.at.0 == start)
            };
            let what = "to foretell when it opens";
            if status::until(&self.gates(), name, left, what, announced)
                .await
                .is_ok()
            {
                return Ok(start);
            }
        }
        bail!("gate {name}: it was never announced in time when it opens")
    }

    /// The version of a gate: it is another one after every change, and only then.
    pub async fn version(&self, gate: &str) -> Result<String> {
        let gate = self.gates().get(gate).await?;
        gate.resource_version().context("no resourceVersion")
    }
}
