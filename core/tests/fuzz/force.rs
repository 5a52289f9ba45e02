//! The annotations that force a gate.

use std::collections::BTreeMap;

use bolero::TypeGenerator;
use jiff::{SignedDuration, Timestamp};
use sluice_core::gate::Named;
use sluice_core::gate::{self, Identity, Report, View};
use sluice_core::{Now, Reason};
use sluice_crds::gate::annotations::FORCE_SEEN;
use sluice_crds::{Gate, GateSpec, Setting, State};

use super::target::Target;

pub const TARGET: Target = Target {
    name: "force",
    words: &[
        "sluice.dev/force: open\n",
        "sluice.dev/force: closed\n",
        "sluice.dev/force-by: dave\n",
        "sluice.dev/force-reason: because\n",
        "sluice.dev/force-until: 2026-11-20T14:00:00Z\n",
        "sluice.dev/force-seen: {\"force\":{\"at\":\"2026-11-20T11:00:00Z\",\"is\":\"5d41402abc4b\",\"with\":\"5d41402abc4b\"}}\n",
        "{\"open\":{\"at\":\"2026-11-20T11:00:00Z\",\"window\":\"1h\"}}",
        "open.gate.fluxcd.io/requestedAt: 2026-11-20T12:00:59Z\n",
        "close.gate.fluxcd.io/requestedAt: 2026-11-20T12:00:59Z\n",
        "sluice.dev/force",
        "sluice.dev/force-until",
        "open",
        "closed",
        "2026-11-20T12:00:00Z",
        "2026-11-20T12:00:00.000000001Z",
        "2026-11-20T13:00:00+01:00[Europe/Berlin]",
        "2026-11-21T12:01:00Z",
        "2026-11-20",
        "-009999-01-02T01:59:59Z",
        "9999-12-30T22:00:00.999999999Z",
        "+00:00",
        "\n",
        ": ",
        " ",
        "\u{202e}",
        "\u{200b}",
        "\u{7}",
    ],
    texts: 4_000,
};

/// Noon, in the texts of the corpus.
const NOON: i64 = 1_795_176_000;

/// `spec.window` and `spec.maxOverride`.
const TERMS: [(&str, &str); 6] = [
    ("1h", "24h"),
    ("24h", "24h"),
    ("1m", "8784h"),
    ("90m", "2h"),
    // Refused.
    ("2h", "1h"),
    ("", "0s"),
];

/// The longest that a clock may be off by which a force is written.
const CLOCKS_APART: SignedDuration = SignedDuration::from_secs(60);

/// The gate, and when it is looked at.
#[derive(Debug, Default, TypeGenerator)]
pub struct Scene {
    terms: u8,
    suspended: bool,
    /// Who makes sure who wrote the annotations: of 256, the last few are nobody.
    identity: u8,
    /// Seconds after noon at which the controller looks for the first time.
    #[generator(-7200..=7200_i64)]
    first: i64,
    /// Seconds until it looks again, and yet again.
    #[generator(0..=200_000_i64)]
    later: i64,
    #[generator(60..=200_000_i64)]
    last: i64,
}

impl Scene {
    fn gate(&self, annotations: BTreeMap<String, String>) -> Gate {
        let (window, max_override) = TERMS[usize::from(self.terms) % TERMS.len()];
        let spec = GateSpec {
            window: window.into(),
            max_override: max_override.into(),
            suspend: self.suspended,
            default: Setting::Closed,
            ..GateSpec::default()
        };
        let mut gate = Gate::new("production", spec);
        gate.metadata.annotations = Some(annotations);
        gate
    }

    fn identity(&self) -> Identity {
        match self.identity {
            0..=127 => Identity::Verified,
            128..=223 => Identity::Trusted,
            224..=255 => Identity::Unverified,
        }
    }

    fn look<'a>(&self, gate: &'a Gate) -> View<'a> {
        View::new(gate, self.identity(), |_| Named::Missing)
    }
}

fn instant(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn annotations(text: &str) -> BTreeMap<String, String> {
    let lines = text.split('\n').filter_map(|line| line.split_once(": "));
    lines
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// A gate that is closed by default is open because of a force alone, which has an author, a
/// reason and an end, and does not come back. Understood is what forces it at some time.
pub fn holds(text: &str, scene: &Scene) -> bool {
    let first = instant(NOON + scene.first);
    let later = first + SignedDuration::from_secs(scene.later);
    let last = later + SignedDuration::from_secs(scene.last);

    let mut gate = scene.gate(annotations(text));
    let before = gate::answer(&scene.look(&gate), Now::given(first));
    let report = look_and_write(&mut gate, scene, first);
    if before.state == State::Open {
        assert_eq!(report.answer, before, "{text:?}");
        let noted = gate.metadata.annotations.as_ref().unwrap().get(FORCE_SEEN);
        assert!(noted.is_some(), "{text:?} opens and was never accepted");
    }
    let again = look_and_write(&mut gate, scene, later);
    if again.answer.reason != Reason::Forced {
        let end = gate::answer(&scene.look(&gate), Now::given(last));
        assert_eq!(end.state, State::Closed, "{text:?} is back at {last}");
    }
    is_over_in_time(&gate, scene, first);
    report.answer.reason == Reason::Forced || again.answer.reason == Reason::Forced
}

/// What the controller does: completes the annotations, then writes the status.
fn look_and_write(gate: &mut Gate, scene: &Scene, at: Timestamp) -> Report {
    let report = gate::report(&scene.look(gate), Now::given(at));
    let completion = report.completion.clone().unwrap_or_default();
    gate.metadata
        .annotations
        .get_or_insert_default()
        .extend(completion);
    gate.status = Some(report.status.clone());
    is_right(&report, gate, scene, at);

    let quiet = gate::report(&scene.look(gate), Now::given(at));
    assert!(
        !quiet.changed,
        "nothing changed, but {:?} became {:?}",
        gate.status, quiet.status
    );
    assert_eq!(quiet.completion, None, "completed twice");
    assert_eq!(quiet.answer, report.answer);
    report
}

fn is_right(report: &Report, gate: &Gate, scene: &Scene, at: Timestamp) {
    let status = &report.status;
    let said = || format!("{:?}: {report:?}", gate.metadata.annotations);
    let answer = gate::answer(&scene.look(gate), Now::given(at));
    assert_eq!(answer, report.answer, "{}", said());
    assert_eq!(status.state, Some(answer.state), "{}", said());
    assert!(report.wake.is_none_or(|wake| wake > at), "{}", said());
    let message = status.message.as_deref().unwrap_or_default();
    assert!(is_plain(message), "{}", said());

    let force = status.r#override.as_ref();
    assert_eq!(
        answer.reason == Reason::Forced,
        force.is_some(),
        "{}",
        said()
    );
    assert!(
        answer.state == State::Closed || force.is_some(),
        "{}",
        said()
    );
    assert!(
        force.is_none() || scene.identity() != Identity::Unverified,
        "{}",
        said()
    );
    if let Some(force) = force {
        assert_eq!(State::from(force.state), answer.state, "{}", said());
        assert!(is_plain(&force.by) && is_plain(&force.reason), "{}", said());
        // Told in whole seconds.
        let end = force.until.0 + SignedDuration::from_secs(1);
        assert!(force.since.0 <= at && at < end, "{}", said());
    }
}

/// Something to read, without what turns a terminal around.
fn is_plain(text: &str) -> bool {
    let plain = |c: char| !c.is_control() && c != '\u{202e}';
    !text.trim().is_empty() && text.chars().all(plain)
}

/// However long a force was meant to last: longer than the spec allows it does not.
fn is_over_in_time(gate: &Gate, scene: &Scene, accepted: Timestamp) {
    let Ok(terms) = gate::check(gate) else {
        let answer = gate::answer(&scene.look(gate), Now::given(accepted));
        assert_eq!(answer.reason, Reason::InvalidSpec);
        return;
    };
    let longest = terms.max_override + CLOCKS_APART * 2;
    let over = accepted + SignedDuration::from_secs(scene.later) + longest;
    let answer = gate::answer(&scene.look(gate), Now::given(over));
    assert_ne!(answer.state, State::Open, "{:?}", gate.metadata.annotations);
}
