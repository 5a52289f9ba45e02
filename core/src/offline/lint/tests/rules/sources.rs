//! What breaks each rule of gated sources.

use super::Broken;

pub(super) const GATED_SOURCE: &[Broken] = &[
    (
        "spec.target.name: the pinned child",
        "{sourceRef: {kind: GitRepository, name: b}, target: {name: b}, gates: {refs: [{name: a}]}}",
    ),
    (
        "sourceRef: write exactly one",
        "{gates: {refs: [{name: a}]}}",
    ),
    (
        "selector: only the strategy suspend",
        "{selector: {kind: GitRepository, matchLabels: {a: b}}, gates: {refs: [{name: a}]}}",
    ),
    (
        "target: belongs to sourceRef",
        "{sourceRefs: [{kind: GitRepository, name: b}], target: {name: c}, gates: {refs: [{name: a}]}}",
    ),
    (
        "revision: can be asked for",
        "{sourceRef: {kind: HelmChart, name: b}, strategy: suspend, revision: 1.2.3, gates: {refs: [{name: a}]}}",
    ),
    (
        "baseline: belongs to sourceRef",
        "{sourceRefs: [{kind: HelmChart, name: b}], baseline: {revision: 1.2.3}, gates: {refs: [{name: a}]}}",
    ),
    (
        "sourceRef.kind: only GitRepository",
        "{sourceRef: {kind: Bucket, name: b}, gates: {refs: [{name: a}]}}",
    ),
    (
        "sourceRefs: only GitRepository",
        "{sourceRefs: [{kind: Bucket, name: b}], gates: {refs: [{name: a}]}}",
    ),
    (
        "sourceRef.kind: a HelmRepository",
        "{sourceRef: {kind: HelmRepository, name: b}, strategy: artifact, gates: {refs: [{name: a}]}}",
    ),
    (
        "sourceRefs: a HelmRepository",
        "{sourceRefs: [{kind: HelmRepository, name: b}], strategy: artifact, gates: {refs: [{name: a}]}}",
    ),
    (
        "sourceRefs: the strategy suspend",
        "{sourceRefs: [{kind: HelmChart, name: b, target: {name: c}}], strategy: suspend, gates: {refs: [{name: a}]}}",
    ),
    (
        "sourceRefs: a source is listed twice",
        "{sourceRefs: [{kind: HelmChart, name: b}, {kind: HelmChart, name: b}], gates: {refs: [{name: a}]}}",
    ),
    (
        "baseline: write from, or revision",
        "{sourceRef: {kind: HelmChart, name: b}, baseline: {}, gates: {refs: [{name: a}]}}",
    ),
    (
        "interval: is that of pinned",
        "{sourceRef: {kind: Bucket, name: b}, strategy: artifact, interval: 1h, gates: {refs: [{name: a}]}}",
    ),
    (
        "interval: at least 1m",
        "{sourceRef: {kind: HelmChart, name: b}, interval: 59s, gates: {refs: [{name: a}]}}",
    ),
    (
        "spread: at most 24h",
        "{sourceRef: {kind: HelmChart, name: b}, spread: 25h, gates: {refs: [{name: a}]}}",
    ),
];
