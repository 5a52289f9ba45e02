//! What a decision costs: of a set of 10 gates with 30 gatekeepers of mixed kinds, all of which have
//! to admit, and do.
//!
//! `cargo bench -p sluice-core --bench decide`

#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a benchmark may fail loudly, and criterion's macros write no docs"
)]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use sluice_core::gate::{self, Identity};
use sluice_core::offline::simulate::{self, Key, World};
use sluice_core::revision::Revision;
use sluice_core::{Now, Question};
use sluice_crds::{
    Approval, Gate, GateReference, GateSet, Gatekeeper, GatekeeperStatus, Require, Subject,
};

const GATES: usize = 10;
const NOW: &str = "2026-12-01T10:00:01Z";
const REVISION: &str = "main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";

/// The kinds in turn. `metric`, `http` and `objects` stand for what their status reports, as after
/// a restart.
const KINDS: [&str; 9] = [
    "{schedule: {timeZone: Europe/London, open: [{cron: 0 9 * * MON-FRI, duration: 8h}]}}",
    "{manual: {state: open}}",
    "{revisions: {allow: ['main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3', 'v1.2.3']}}",
    "{schedule: {timeZone: Europe/London, closed: [{cron: 0 0 * * FRI, duration: 24h}]}}",
    "{approval: {}}",
    "{metric: {address: 'https://prometheus', query: up, range: {min: 1}}}",
    "{schedule: {closed: [{from: 2026-12-19T00:00:00, until: 2027-01-04T00:00:00}]}}",
    "{external: {writers: [ci]}}",
    "{manual: {state: open, until: '2027-01-01T00:00:00Z'}}",
];

fn status() -> GatekeeperStatus {
    let status = "{state: Open, reason: InRange, message: m, observedGeneration: 1, \
                  report: {state: open, by: ci, expiresAt: '2027-01-01T00:00:00Z', forGeneration: 1}}";
    serde_saphyr::from_str(status).unwrap()
}

fn approval(gatekeeper: &str) -> Approval {
    let spec = format!(
        "{{gatekeeperRef: {{name: {gatekeeper}}}, revision: '{REVISION}', decision: approve, by: a}}"
    );
    let mut approval = Approval::new(gatekeeper, serde_saphyr::from_str(&spec).unwrap());
    approval.metadata.creation_timestamp =
        Some(serde_saphyr::from_str("'2026-12-01T09:00:00Z'").unwrap());
    approval
}

fn key(name: &str) -> Key {
    Key {
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

fn world() -> World {
    let mut world = World::default();
    for gate in 0..GATES {
        let names: Vec<String> = (0..3).map(|n| format!("k{}", gate * 3 + n)).collect();
        for (n, name) in names.iter().enumerate() {
            let spec = KINDS[(gate * 3 + n) % KINDS.len()];
            let mut gatekeeper = Gatekeeper::new(name, serde_saphyr::from_str(spec).unwrap());
            gatekeeper.metadata.generation = Some(1);
            gatekeeper.status = Some(status());
            world.gatekeepers.insert(key(name), Arc::new(gatekeeper));
            world.approvals.insert(key(name), Arc::new(approval(name)));
        }
        let listed: Vec<String> = names
            .iter()
            .map(|name| format!("{{name: {name}}}"))
            .collect();
        let spec = format!("{{gatekeepers: [{}]}}", listed.join(", "));
        let name = format!("g{gate}");
        let gate = Gate::new(&name, serde_saphyr::from_str(&spec).unwrap());
        world.gates.insert(key(&name), gate);
    }
    world
}

fn decide(criterion: &mut Criterion) {
    let world = world();
    let reference = |gate| GateReference {
        name: format!("g{gate}"),
        namespace: None,
    };
    let own = GateSet {
        require: Require::All,
        refs: (0..GATES).map(reference).collect(),
    };
    let subject = Subject {
        kind: "Pipeline".to_owned(),
        namespace: "default".to_owned(),
        name: Some("app".to_owned()),
        environment: None,
        action: "promote".to_owned(),
        step: None,
        revision: Some(REVISION.to_owned()),
    };
    let revision = Revision::parse(REVISION).unwrap();
    let question = Question::new(Now::given(NOW.parse().unwrap()), Some(&revision));
    let decision = simulate::decide(
        &world,
        Some(&own),
        subject.clone(),
        Identity::Trusted,
        question,
    );
    assert!(decision.allowed, "{}", decision.message);

    let gathered = simulate::gather(&world, Some(&own), &subject, Identity::Trusted, question);
    let sets = gathered.sets();
    let mut group = criterion.benchmark_group("a set of 10 gates with 30 gatekeepers");
    group.bench_function("rule", |bencher| {
        bencher.iter(|| gate::set::rule(black_box(&sets), black_box(question)));
    });
    group.bench_function("decide, with words", |bencher| {
        bencher.iter(|| gate::set::decide(subject.clone(), black_box(&sets), black_box(question)));
    });
    group.finish();
}

criterion_group!(benches, decide);
criterion_main!(benches);
