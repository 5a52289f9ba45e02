use jiff::Timestamp;
use rstest::rstest;
use sluice_crds::{Gate, Gatekeeper, State};

use super::*;
use crate::gate::Identity;
use crate::offline::simulate::Scene;
use crate::revision::Revision;
use crate::time::clock::Now;
use crate::verdict::question::Question;

const START: &str = "2026-11-20T10:00:00Z";

fn start() -> Timestamp {
    START.parse().unwrap()
}

/// A gate that is kept by one gatekeeper.
fn world(spec: &str) -> (World, Key) {
    let key = Key::from_reference("default", None, "it");
    let mut gate = Gate::new(
        "it",
        serde_saphyr::from_str("{gatekeepers: [{name: it}]}").unwrap(),
    );
    gate.metadata.namespace = Some("default".to_owned());
    let mut keeper = Gatekeeper::new("it", serde_saphyr::from_str(spec).unwrap());
    keeper.metadata.namespace = Some("default".to_owned());
    let world = World {
        gates: [(key.clone(), gate)].into(),
        gatekeepers: [(key.clone(), Arc::new(keeper))].into(),
        ..World::default()
    };
    (world, key)
}

fn decided(spec: &str, given: &str, after: &str) -> (State, String) {
    let (mut world, key) = world(spec);
    let given = serde_saphyr::from_str(given).unwrap();
    world.give(&key, given, start()).unwrap();
    let mut scene = Scene::new(&world, &key, Identity::Trusted, start()).unwrap();
    let length: jiff::SignedDuration = after.parse().unwrap();
    let revision = Revision::parse("v1.2.3").unwrap();
    let decision = scene.decide(Question::new(Now::given(start() + length), Some(&revision)));
    (decision.state, decision.message)
}

const METRIC: &str =
    "{metric: {address: 'https://prometheus', query: errors, range: {max: 0.05}, for: 10m}}";
const HTTP: &str = "{onError: open, http: {url: 'https://checks/ready', expression: body.ready}}";
const OBJECTS: &str = "{objects: {serviceAccountName: reader, soak: 5m, \
                       of: [{apiVersion: apps/v1, kind: Deployment, name: api, condition: {type: Available}}]}}";
const EXTERNAL: &str = "{external: {writers: [scanner]}}";
const AVAILABLE: &str = "{objects: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: api, generation: 2}, \
                         status: {observedGeneration: 2, conditions: [{type: Available, status: 'True'}]}}]}";
const STALE: &str = "{objects: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: api, generation: 2}, \
                     status: {observedGeneration: 1, conditions: [{type: Available, status: 'True'}]}}]}";

#[rstest]
#[case::not_long_enough(METRIC, "{value: 0.02}", "PT9M59S", State::Closed, "0.02")]
#[case::long_enough(METRIC, "{value: 0.02}", "PT10M", State::Open, "0.02")]
#[case::long_before(
    METRIC,
    "{value: 0.02, since: 2026-11-20T09:00:00Z}",
    "PT0S",
    State::Open,
    "0.02"
)]
#[case::too_much(METRIC, "{value: 0.2}", "PT1H", State::Closed, "0.2")]
#[case::no_data(METRIC, "{value: NaN}", "PT1H", State::Closed, "no")]
#[case::days_later(METRIC, "{value: '1e-3'}", "PT240H", State::Open, "1e-3")]
#[case::refused(
    METRIC,
    "{unavailable: connection refused}",
    "PT1H",
    State::Closed,
    "connection refused"
)]
#[case::ready(HTTP, "{status: 200, body: {ready: true}}", "PT1H", State::Open, "200")]
#[case::not_ready(
    HTTP,
    "{status: 200, body: {ready: false}}",
    "PT1H",
    State::Closed,
    "does not satisfy"
)]
#[case::on_error(
    HTTP,
    "{unavailable: timed out}",
    "PT1H",
    State::Open,
    "onError is open"
)]
#[case::nonsense(HTTP, "{broken: no JSON}", "PT1H", State::Closed, "no JSON")]
#[case::soaks(OBJECTS, AVAILABLE, "PT1M", State::Closed, "")]
#[case::soaked(OBJECTS, AVAILABLE, "PT5M", State::Open, "")]
#[case::of_an_older_spec(OBJECTS, STALE, "PT5M", State::Closed, "Deployment default/api")]
#[case::gone(
    OBJECTS,
    "{objects: []}",
    "PT5M",
    State::Closed,
    "there is no Deployment default/api"
)]
#[case::reported(EXTERNAL, "{report: {state: open}}", "PT1H", State::Open, "by scanner")]
#[case::another(
    EXTERNAL,
    "{report: {state: open, revisions: [v2.0.0]}}",
    "PT1H",
    State::Closed,
    "scanner"
)]
#[case::ran_out(
    EXTERNAL,
    "{report: {state: open, expiresAt: 2026-11-20T10:30:00Z}}",
    "PT30M",
    State::Closed,
    "expired"
)]
fn what_is_given_is_judged(
    #[case] spec: &str,
    #[case] given: &str,
    #[case] after: &str,
    #[case] state: State,
    #[case] why: &str,
) {
    let (decided, message) = decided(spec, given, after);
    assert_eq!(decided, state, "{message}");
    assert!(message.contains(why), "{message}");
}

#[rstest]
#[case(METRIC, "{status: 200}", "it is of the kind metric: write value")]
#[case(
    METRIC,
    "{value: 1, broken: no}",
    "it is of the kind metric: write value"
)]
#[case(METRIC, "{value: many}", "value: `many` is not a number")]
#[case(HTTP, "{value: 1}", "it is of the kind http: write status")]
#[case(OBJECTS, "{broken: no}", "it is of the kind objects: write objects")]
#[case(OBJECTS, "{}", "it is of the kind objects: write objects")]
#[case(EXTERNAL, "{value: 1}", "it is of the kind external: write report")]
#[case(
    METRIC,
    "{report: {state: open}}",
    "report: only a gatekeeper of the kind external"
)]
#[case(
    EXTERNAL,
    "{report: {state: open}, unavailable: gone}",
    "report: no other field"
)]
#[case("{manual: {state: open}}", "{value: 1}", "it measures nothing")]
fn what_makes_no_sense_is_refused(#[case] spec: &str, #[case] given: &str, #[case] expected: &str) {
    let (mut world, key) = world(spec);
    let given = serde_saphyr::from_str(given).unwrap();
    let error = world.give(&key, given, start()).unwrap_err();
    assert!(error.contains(expected), "{error}");
    let other = Key::from_reference("default", None, "other");
    let error = world.give(&other, Given::default(), start()).unwrap_err();
    assert!(error.contains("there are default/it"), "{error}");
}
