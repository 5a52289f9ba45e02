//! Gates decided and reported: what each test needs of gates, gatekeepers and instants.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::{Gate, GateSpec, Gatekeeper, State};

use super::*;
use crate::gatekeeper::Evidence;
use crate::time::clock::Now;

mod behind;
mod chain;
mod force;
mod order;
mod outlook;
mod report;
mod trouble;

const FRIDAY_10: &str = "2026-11-20T10:00:00Z";

const OFFICE: &str = "{schedule: {timeZone: Europe/London, open: [{name: office-hours, cron: 0 9 * * MON-FRI, duration: 8h}]}}";
const FRIDAYS: &str = "{schedule: {timeZone: Europe/London, closed: [{name: fridays, cron: 0 0 * * FRI, duration: 24h, reason: No deploys on Fridays}]}}";
const OPEN: &str = "{manual: {state: open, reason: quiet time}}";
const CLOSED: &str = "{manual: {state: closed, reason: incident 12}}";
/// Its calendar is the evidence that is unavailable.
const HOLIDAYS: &str =
    "{schedule: {closed: [{name: holidays, calendar: {configMapRef: {name: days, key: uk.ics}}}]}}";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now(text: &str) -> Now {
    Now::given(at(text))
}

/// A gate of that spec, in YAML, with those annotations.
fn gate(spec: &str, annotations: &[(&str, &str)]) -> Gate {
    let spec: GateSpec = serde_saphyr::from_str(spec).unwrap();
    let mut gate = Gate::new("production", spec);
    gate.metadata.namespace = Some("flux-system".into());
    gate.metadata.generation = Some(1);
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    gate.metadata.annotations = Some(annotations.iter().map(owned).collect());
    gate
}

fn gatekeeper(name: &str, spec: &str) -> Gatekeeper {
    Gatekeeper::new(name, serde_saphyr::from_str(spec).unwrap())
}

fn keeper_with(name: &str, spec: &str, evidence: Evidence, from: Timestamp) -> Keeper {
    Keeper::new(Arc::new(gatekeeper(name, spec)), evidence, from)
}

fn keeper(name: &str, spec: &str) -> Keeper {
    keeper_with(name, spec, Evidence::default(), at(FRIDAY_10))
}

/// A gate together with the gatekeepers that exist. Those it names in another namespace are
/// forbidden.
struct Scene {
    gate: Gate,
    keepers: Vec<Keeper>,
    identity: Identity,
}

impl fmt::Debug for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            gate,
            keepers: _,
            identity,
        } = self;
        f.debug_struct("Scene")
            .field("gate", gate)
            .field("identity", identity)
            .finish()
    }
}

impl Scene {
    fn new(gate: Gate, keepers: Vec<Keeper>) -> Self {
        Self {
            gate,
            keepers,
            identity: Identity::Trusted,
        }
    }

    fn view(&self) -> View<'_> {
        View::new(&self.gate, self.identity, |reference| {
            if reference.namespace.is_some() {
                return Named::Forbidden;
            }
            let named =
                |keeper: &&Keeper| keeper.object().metadata.name.as_ref() == Some(&reference.name);
            self.keepers
                .iter()
                .find(named)
                .map_or(Named::Missing, Named::Here)
        })
    }

    fn report(&self, now: Now) -> Report {
        super::report(&self.view(), now)
    }

    /// State, reason and message at an instant.
    fn says(&self, instant: &str) -> (State, String, String) {
        let status = self.report(now(instant)).status;
        (
            status.state.unwrap(),
            status.reason.unwrap(),
            status.message.unwrap(),
        )
    }

    /// Writes a report as the controller does: the status, and the annotations that it completes.
    fn write(&mut self, report: Report) {
        self.gate.status = Some(report.status);
        complete(&mut self.gate, report.completion);
    }
}

fn complete(gate: &mut Gate, completion: Option<std::collections::BTreeMap<String, String>>) {
    let annotations = gate.metadata.annotations.get_or_insert_default();
    annotations.extend(completion.into_iter().flatten());
}
