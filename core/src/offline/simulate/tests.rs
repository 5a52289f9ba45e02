use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;
use sluice_crds::{Setting, State};

use super::*;
use crate::gate::Identity;
use crate::revision::Revision;
use crate::time::clock::Now;
use crate::time::span::Span;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn key(name: &str) -> Key {
    Key {
        namespace: DEFAULT_NAMESPACE.to_owned(),
        name: name.to_owned(),
    }
}

fn gatekeeper(name: &str, spec: &str) -> (Key, Arc<Gatekeeper>) {
    let spec = serde_saphyr::from_str(spec).unwrap();
    (key(name), Arc::new(Gatekeeper::new(name, spec)))
}

fn gate(spec: &str, annotations: &[(&str, &str)]) -> (Key, Gate) {
    let mut gate = Gate::new("production", serde_saphyr::from_str(spec).unwrap());
    let annotations = annotations
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()));
    gate.metadata.annotations = Some(annotations.collect());
    (key("production"), gate)
}

const OFFICE: &str = "{schedule: {timeZone: Europe/London, open: [{name: office-hours, cron: 0 9 * * MON-FRI, duration: 8h}]}}";
const FRIDAYS: &str = "{schedule: {timeZone: Europe/London, closed: [{name: fridays, cron: 0 0 * * FRI, duration: 24h, reason: No deploys}]}}";
const BOTH: &str = "{gatekeepers: [{name: office}, {name: fridays}]}";

fn office_and_fridays(annotations: &[(&str, &str)]) -> World {
    World {
        gates: [gate(BOTH, annotations)].into(),
        gatekeepers: [gatekeeper("office", OFFICE), gatekeeper("fridays", FRIDAYS)].into(),
        ..World::default()
    }
}

fn scene(world: &World, from: &str) -> Scene {
    Scene::new(world, &key("production"), Identity::Trusted, at(from)).unwrap()
}

#[rstest]
#[case("2026-11-19T10:00:00Z", State::Open, "AllAdmit", Some("office"))]
#[case("2026-11-20T10:00:00Z", State::Closed, "ClosedWindow", Some("fridays"))]
#[case("2026-11-19T08:59:59Z", State::Closed, "OutsideWindow", Some("office"))]
fn a_decision_names_who_made_it(
    #[case] instant: &str,
    #[case] state: State,
    #[case] reason: &str,
    #[case] decided_by: Option<&str>,
) {
    let decision = scene(&office_and_fridays(&[]), instant).decide(Now::given(at(instant)));
    assert_eq!((decision.state, decision.reason.as_str()), (state, reason));
    assert_eq!(decision.decided_by.as_deref(), decided_by);
}

fn changes(world: &World, from: &str, to: &str) -> Vec<(String, State)> {
    let span = Span {
        start: at(from),
        end: at(to),
    };
    let stretches = scene(world, from).stretches(span);
    assert_eq!(stretches.cut_off, None);
    stretches
        .changes()
        .map(|s| (s.span.start.to_string(), s.answer.state))
        .collect()
}

#[test]
fn changes_are_told_however_far_ahead() {
    let quiet = World {
        gates: [gate("{gatekeepers: [{name: once}]}", &[])].into(),
        gatekeepers: [gatekeeper(
            "once",
            "{schedule: {open: [{from: '2031-03-01T00:00:00', until: '2031-03-02T00:00:00'}]}}",
        )]
        .into(),
        ..World::default()
    };
    let expected = [
        ("2026-11-20T00:00:00Z".to_owned(), State::Closed),
        ("2031-03-01T00:00:00Z".to_owned(), State::Open),
        ("2031-03-02T00:00:00Z".to_owned(), State::Closed),
    ];
    assert_eq!(
        changes(&quiet, "2026-11-20T00:00:00Z", "2032-01-01T00:00:00Z"),
        expected
    );
}

#[test]
fn stretches_leave_no_gap_and_name_their_causes() {
    let span = Span {
        start: at("2026-11-16T00:00:00Z"),
        end: at("2026-11-23T00:00:00Z"),
    };
    let stretches = scene(&office_and_fridays(&[]), "2026-11-16T00:00:00Z").stretches(span);
    assert_eq!(stretches.list.first().unwrap().span.start, span.start);
    assert_eq!(stretches.list.last().unwrap().span.end, span.end);
    for pair in stretches.list.windows(2) {
        assert_eq!(pair[0].span.end, pair[1].span.start);
    }
    let on_friday = stretches
        .list
        .iter()
        .find(|s| s.span.contains(at("2026-11-20T10:00:00Z")));
    assert_eq!(
        on_friday.unwrap().causes,
        ["fridays: closed by window 'fridays' (No deploys)"]
    );
    let at_dawn = stretches
        .list
        .iter()
        .find(|s| s.span.contains(at("2026-11-20T01:00:00Z")));
    let causes = &at_dawn.unwrap().causes;
    assert_eq!(causes[0], "office: outside every open window");
    assert_eq!(causes.len(), 2);
    assert_eq!(stretches.changes().count(), 1 + 4 * 2);
}

#[test]
fn a_force_without_an_end_is_seen_once_and_runs_out() {
    let world = office_and_fridays(&[
        ("sluice.dev/force", "open"),
        ("sluice.dev/force-by", "alice"),
        ("sluice.dev/force-reason", "hotfix"),
    ]);
    let expected = [
        ("2026-11-20T20:00:00Z".to_owned(), State::Open),
        ("2026-11-20T21:00:00Z".to_owned(), State::Closed),
    ];
    assert_eq!(
        changes(&world, "2026-11-20T20:00:00Z", "2026-11-21T20:00:00Z"),
        expected
    );
    let forced =
        scene(&world, "2026-11-20T20:00:00Z").decide(Now::given(at("2026-11-20T20:30:00Z")));
    assert_eq!(forced.r#override.unwrap().state, Setting::Open);
}

#[test]
fn a_request_takes_effect_when_its_instant_comes() {
    let world = office_and_fridays(&[("open.gate.fluxcd.io/requestedAt", "2026-11-20T20:00:30Z")]);
    let expected = [
        ("2026-11-20T20:00:00Z".to_owned(), State::Closed),
        ("2026-11-20T20:00:30Z".to_owned(), State::Open),
        ("2026-11-20T21:00:30Z".to_owned(), State::Closed),
    ];
    assert_eq!(
        changes(&world, "2026-11-20T20:00:00Z", "2026-11-21T00:00:00Z"),
        expected
    );
}

#[test]
fn a_gatekeeper_alone_keeps_a_gate_of_its_name() {
    let world = World {
        gatekeepers: [gatekeeper("office", OFFICE)].into(),
        ..World::default()
    };
    assert_eq!(world.gate_names(), [&key("office")]);
    let now = at("2026-11-20T10:00:00Z");
    let mut scene = Scene::new(&world, &key("office"), Identity::Trusted, now).unwrap();
    assert_eq!(scene.decide(Now::given(now)).state, State::Open);
    assert!(office_and_fridays(&[]).gate(&key("office")).is_none());
}

#[test]
fn a_missing_gatekeeper_keeps_the_gate_closed() {
    let world = World {
        gates: [gate(BOTH, &[])].into(),
        ..World::default()
    };
    let decision =
        scene(&world, "2026-11-19T10:00:00Z").decide(Now::given(at("2026-11-19T10:00:00Z")));
    assert_eq!(
        (decision.state, decision.reason.as_str()),
        (State::Closed, "GatekeeperMissing")
    );
}

const HOLIDAYS: &str = "{onError: open, schedule: {closed: [{name: holidays, calendar: {configMapRef: {name: days, key: uk.ics}}}]}}";
const CHRISTMAS: &str = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nSUMMARY:Christmas\r\nDTSTART;VALUE=DATE:20261225\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

fn with_calendar(map: Option<Option<&str>>, origin: Origin) -> Decision {
    let config_map = |text: &str| ConfigMap {
        data: Some([("uk.ics".to_owned(), text.to_owned())].into()),
        ..ConfigMap::default()
    };
    let world = World {
        gates: [gate("{gatekeepers: [{name: holidays}]}", &[])].into(),
        gatekeepers: [gatekeeper("holidays", HOLIDAYS)].into(),
        config_maps: map
            .map(|text| (key("days"), text.map(config_map)))
            .into_iter()
            .collect(),
        origin,
        ..World::default()
    };
    scene(&world, "2026-12-25T10:00:00Z").decide(Now::given(at("2026-12-25T10:00:00Z")))
}

#[test]
fn calendars_are_read_from_config_maps() {
    let read = with_calendar(Some(Some(CHRISTMAS)), Origin::Files);
    assert_eq!(
        (read.state, read.reason.as_str()),
        (State::Closed, "ClosedWindow")
    );
    assert!(read.message.contains("Christmas"), "{}", read.message);
    let missing = with_calendar(None, Origin::Files);
    assert_eq!(
        (missing.state, missing.reason.as_str()),
        (State::Open, "EvidenceUnavailable")
    );
    let unreadable = with_calendar(Some(None), Origin::Cluster);
    assert_eq!(
        (unreadable.state, unreadable.reason.as_str()),
        (State::Closed, "NotObserved")
    );
    let broken = with_calendar(Some(Some("nonsense")), Origin::Files);
    assert_eq!(
        (broken.state, broken.reason.as_str()),
        (State::Closed, "EvidenceBroken")
    );
}

/// As the controller does.
#[test]
fn calendars_are_read_from_binary_data_too() {
    let map = |bytes: &[u8]| ConfigMap {
        binary_data: Some([("uk.ics".to_owned(), ByteString(bytes.to_vec()))].into()),
        ..ConfigMap::default()
    };
    let decide = |bytes: &[u8]| {
        let world = World {
            gates: [gate("{gatekeepers: [{name: holidays}]}", &[])].into(),
            gatekeepers: [gatekeeper("holidays", HOLIDAYS)].into(),
            config_maps: [(key("days"), Some(map(bytes)))].into(),
            ..World::default()
        };
        scene(&world, "2026-12-25T10:00:00Z").decide(Now::given(at("2026-12-25T10:00:00Z")))
    };
    assert_eq!(decide(CHRISTMAS.as_bytes()).reason, "ClosedWindow");
    let latin = decide(b"BEGIN:VCALENDAR\nSUMMARY:M\xe4rz\n");
    assert_eq!(latin.reason, "EvidenceBroken");
    assert!(
        latin.message.contains("line 2: it is not UTF-8"),
        "{}",
        latin.message
    );
}

#[test]
fn what_flips_for_ever_is_cut_off() {
    let world = World {
        gates: [gate("{gatekeepers: [{name: odd}]}", &[])].into(),
        gatekeepers: [gatekeeper(
            "odd",
            "{schedule: {open: [{cron: '*/2 * * * *'}]}}",
        )]
        .into(),
        ..World::default()
    };
    let span = Span {
        start: at("2026-01-01T00:00:00Z"),
        end: at("2027-01-01T00:00:00Z"),
    };
    let stretches = scene(&world, "2026-01-01T00:00:00Z").stretches_in(span, None, 100);
    assert_eq!(stretches.list.len(), 100);
    assert_eq!(stretches.cut_off, Some(at("2026-01-01T01:40:00Z")));
}

const TWO_EYES: &str = "{approval: {required: 1, validFor: 2h}}";
const COMMIT: &str = "main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";

fn approved(created: Option<&str>) -> World {
    let spec = format!(
        "{{gatekeeperRef: {{name: eyes}}, revision: '{COMMIT}', decision: approve, by: alice, reason: tested}}"
    );
    let mut approval = Approval::new("one", serde_saphyr::from_str(&spec).unwrap());
    let created = created.map(|created| Time(at(created)));
    approval.metadata.creation_timestamp = created;
    World {
        gates: [gate("{gatekeepers: [{name: eyes}]}", &[])].into(),
        gatekeepers: [gatekeeper("eyes", TWO_EYES)].into(),
        approvals: [(key("one"), Arc::new(approval))].into(),
        ..World::default()
    }
}

#[rstest]
#[case::taken_before(Some("2026-11-20T09:00:00Z"), "2026-11-20T11:00:00Z")]
#[case::taken_at_the_start(None, "2026-11-20T12:00:00Z")]
fn approvals_run_out_in_a_simulation_too(#[case] created: Option<&str>, #[case] end: &str) {
    let span = Span {
        start: at("2026-11-20T10:00:00Z"),
        end: at("2026-11-21T00:00:00Z"),
    };
    let world = approved(created);
    let mut scene = scene(&world, "2026-11-20T10:00:00Z");
    let about = |scene: &mut Scene, revision: Option<&str>| -> Vec<(Timestamp, State)> {
        let revision = revision.map(|text| Revision::parse(text).unwrap());
        let stretches = scene.stretches_about(span, revision.as_ref());
        let changes = stretches.changes();
        changes.map(|it| (it.span.start, it.answer.state)).collect()
    };
    assert_eq!(
        about(&mut scene, Some(COMMIT)),
        [(span.start, State::Open), (at(end), State::Closed)]
    );
    assert_eq!(about(&mut scene, None), [(span.start, State::Conditional)]);
}

#[test]
fn the_zones_of_gates_behind_a_gate_are_known() {
    let nested = |name: &str, gate: &str| {
        gatekeeper(name, &format!("{{gates: {{refs: [{{name: {gate}}}]}}}}"))
    };
    let (_, inner) = gate(BOTH, &[]);
    let world = World {
        gates: [
            gate("{gatekeepers: [{name: both}]}", &[]),
            (key("inner"), inner),
        ]
        .into(),
        gatekeepers: [
            gatekeeper("office", OFFICE),
            gatekeeper("fridays", FRIDAYS),
            nested("both", "inner"),
        ]
        .into(),
        ..World::default()
    };
    let mut scene = scene(&world, "2026-11-20T10:00:00Z");
    assert_eq!(Vec::from_iter(scene.time_zones()), ["Europe/London"]);
    // Every day has the same words for the same cause.
    let span = Span {
        start: at("2026-11-16T00:00:00Z"),
        end: at("2026-11-20T00:00:00Z"),
    };
    let stretches = scene.stretches(span).list;
    let mut causes: Vec<_> = stretches.iter().map(|it| it.causes.join("; ")).collect();
    causes.sort();
    causes.dedup();
    let inside = "both: gate inner: office: inside window 'office-hours'; fridays: outside every closed window";
    assert_eq!(
        causes,
        [
            inside,
            "both: gate inner: office: outside every open window"
        ]
    );
}
