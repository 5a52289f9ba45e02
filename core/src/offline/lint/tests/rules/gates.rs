//! What breaks each rule of gates, gatekeepers, gate policies and votes.

use super::Broken;

pub(super) const GATE: &[Broken] = &[
    (
        "gatekeepers: a gatekeeper is listed twice",
        "{gatekeepers: [{name: a}, {name: a}]}",
    ),
    ("window: must be at least", "{window: 59s}"),
    (
        "maxOverride: must be at least",
        "{maxOverride: 59m, window: 1m}",
    ),
    ("window: must not be longer", "{window: 25h}"),
    (
        "default: only a gate",
        "{default: open, gatekeepers: [{name: a}]}",
    ),
];

pub(super) const GATEKEEPER: &[Broken] = &[
    ("a Gatekeeper has exactly one kind", "{}"),
    ("a schedule without windows", "{schedule: {timeZone: UTC}}"),
    (
        "closed: lastStart belongs",
        "{schedule: {closed: [{cron: '* * * * *', duration: 1h, lastStart: 1m}]}}",
    ),
    (
        "open: a window has the name of",
        "{schedule: {open: [{name: a, cron: '* * * * *'}], closed: [{name: a, cron: '* * * * *'}]}}",
    ),
    (
        "open: two windows have",
        "{schedule: {open: [{name: a, cron: '* * * * *'}, {name: a, cron: '0 * * * *'}]}}",
    ),
    (
        "closed: two windows have",
        "{schedule: {closed: [{name: a, cron: '* * * * *'}, {name: a, cron: '0 * * * *'}]}}",
    ),
    (
        "a window is given in exactly one way",
        "{schedule: {open: [{name: a}]}}",
    ),
    (
        "from and until belong",
        "{schedule: {open: [{from: '2026-12-19T00:00:00'}]}}",
    ),
    (
        "until: must be later",
        "{schedule: {open: [{from: '2026-12-19T00:00:00', until: '2026-12-19T00:00:00'}]}}",
    ),
    (
        "until: must be before",
        "{manual: {state: open, until: '9999-12-30T00:00:00Z'}}",
    ),
    (
        "until: beside from",
        "{schedule: {open: [{from: '2026-12-19T00:00:00', until: '04:00'}]}}",
    ),
    (
        "until: beside cron",
        "{schedule: {open: [{cron: '0 2 * * *', until: '2026-12-19T00:00:00'}]}}",
    ),
    (
        "until: no clock",
        "{schedule: {open: [{cron: '0 2 * * *', until: '24:00'}]}}",
    ),
    (
        "until: a window has one end",
        "{schedule: {open: [{cron: '0 2 * * *', duration: 2h, until: '04:00'}]}}",
    ),
    (
        "duration: belongs to cron",
        "{schedule: {open: [{from: '2026-12-19T00:00:00', until: '2026-12-20T00:00:00', duration: 1h}]}}",
    ),
    (
        "duration: must be longer",
        "{schedule: {open: [{cron: '* * * * *', duration: 0s}]}}",
    ),
    (
        "lastStart: a cron without",
        "{schedule: {open: [{cron: '* * * * *', lastStart: 1m}]}}",
    ),
    (
        "lastStart: must be longer",
        "{schedule: {open: [{cron: '* * * * *', duration: 1h, lastStart: 1h}]}}",
    ),
    (
        "a calendar is read from",
        "{schedule: {open: [{calendar: {interval: 1h}}]}}",
    ),
    (
        "certSecretRef: belongs",
        "{schedule: {open: [{calendar: {configMapRef: {name: a, key: b}, certSecretRef: {name: a}}}]}}",
    ),
    (
        "interval: must be",
        "{schedule: {open: [{calendar: {url: 'https://a', interval: 1s}}]}}",
    ),
    ("revisions without a list", "{revisions: {}}"),
    (
        "secretRef: secrets",
        "{metric: {address: 'http://a', query: up, range: {min: 1}, secretRef: {name: a}}}",
    ),
    (
        "timeout: must be",
        "{metric: {address: 'https://a', query: up, range: {min: 1}, timeout: 11s}}",
    ),
    (
        "for: must be",
        "{metric: {address: 'https://a', query: up, range: {min: 1}, for: 0s}}",
    ),
    (
        "a range without limits",
        "{metric: {address: 'https://a', query: up, range: {}}}",
    ),
    (
        "min: must not be above",
        "{metric: {address: 'https://a', query: up, range: {min: 2, max: 1}}}",
    ),
    (
        "soak: must be",
        "{objects: {serviceAccountName: a, of: [{apiVersion: v1, kind: Pod, name: a}], soak: 0s}}",
    ),
    (
        "objects are named or selected",
        "{objects: {serviceAccountName: a, of: [{apiVersion: v1, kind: Pod}]}}",
    ),
    (
        "expression: takes the place",
        "{objects: {serviceAccountName: a, of: [{apiVersion: v1, kind: Pod, name: a, condition: {type: Ready}, expression: 'true'}]}}",
    ),
    (
        "kind: Secrets are never",
        "{objects: {serviceAccountName: a, of: [{apiVersion: v1, kind: Secret, name: a}]}}",
    ),
    ("validFor: must be longer", "{approval: {validFor: 0s}}"),
    (
        "refs: a gate is listed twice",
        "{gates: {refs: [{name: a}, {name: a}]}}",
    ),
];

pub(super) const GATE_POLICY: &[Broken] = &[
    (
        "gates.refs: a GatePolicy has no namespace",
        "{gates: {refs: [{name: a}]}}",
    ),
    (
        "values: belong to In",
        "{namespaceSelector: {matchExpressions: [{key: a, operator: In}]}, gates: {refs: [{name: a, namespace: b}]}}",
    ),
];

pub(super) const APPROVAL: &[Broken] = &[(
    "gatekeeperRef: write exactly one",
    "{revision: 6.1.6, decision: approve, by: alice}",
)];
