//! `simulate --pipeline`, and gates that read what a pipeline has admitted.

use super::expect;
use crate::program::run;

/// A pipeline whose dev runs 6.1.6, with the objects of its apps.
const PIPELINE: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Pipeline
metadata: {name: podinfo, namespace: apps}
spec:
  appRef: {kind: HelmRelease, name: podinfo}
  promotion: {strategy: {admission: {}}}
  environments:
    - {name: dev, targets: [{namespace: dev}]}
    - {name: prod, targets: [{namespace: prod}], gates: {refs: [{name: production}]}}
status:
  environments: {prod: {state: Passed, admitted: [{revision: 6.1.0, run: 1, at: 2026-11-20T12:00:00Z}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: office-hours, namespace: apps}
spec: {schedule: {open: [{cron: 0 9 * * MON-FRI, duration: 8h}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: production, namespace: apps}
spec: {gatekeepers: [{name: office-hours}]}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: promoted, namespace: apps}
spec: {pipeline: {name: podinfo, environment: prod}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: promoted, namespace: apps}
spec: {gatekeepers: [{name: promoted}]}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: podinfo, namespace: dev, generation: 1}
status:
  observedGeneration: 1
  history: [{chartVersion: 6.1.6, status: deployed}]
  conditions: [{type: Ready, status: 'True'}]
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: podinfo, namespace: prod, generation: 1}
status:
  observedGeneration: 1
  history: [{chartVersion: 6.1.0, status: deployed}]
  conditions: [{type: Ready, status: 'True'}]
";

#[test]
fn a_pipeline_in_files_shows_what_it_would_promote_and_when() {
    let common = ["simulate", "-f", "-", "--pipeline", "podinfo"];
    let night = [&common[..], &["--at", "2026-11-23T06:00:00Z"]].concat();
    let held = run(&night, PIPELINE);
    assert_eq!(held.code, Some(0), "{held:?}");
    assert!(held.out.contains("nothing is promoted"), "{held:?}");
    assert!(
        held.out.contains("prod: held back by apps/production"),
        "{held:?}"
    );
    assert!(!held.err.contains("HelmRelease"), "{held:?}");
    let span = [
        "--from",
        "2026-11-23T06:00:00Z",
        "--to",
        "2026-11-23T12:00:00Z",
    ];
    let goes = run(&[&common[..], &span].concat(), PIPELINE);
    assert!(goes.out.contains("2026-11-23T09:00:00Z"), "{goes:?}");
    assert!(goes.out.contains("promote 6.1.6 to prod"), "{goes:?}");
    let json = run(&[&common[..], &span, &["-o", "json"]].concat(), PIPELINE);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        json["promotions"][0]["decision"]["decidedBy"][0],
        "apps/production"
    );
    let missing = run(
        &["simulate", "-f", "-", "--pipeline", "shop", "--at", "now"],
        PIPELINE,
    );
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(
        missing.err.contains("there is no pipeline `shop`"),
        "{missing:?}"
    );
}

/// The status of the pipeline is in the file, as it is in a cluster.
#[test]
fn a_gate_reads_what_a_pipeline_in_files_has_admitted() {
    let at = |revision: &str| {
        let of = ["--gate", "promoted", "-r", revision];
        expect("open", "2026-11-23T06:00:00Z", &of, PIPELINE).code
    };
    assert_eq!(at("6.1.0"), Some(0));
    assert_eq!(at("6.1.6"), Some(1));
}
