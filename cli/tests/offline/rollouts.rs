//! `simulate --rollout`: which batches of a rollout go out, and when.

use serde_json::Value;

use crate::program::{Ran, run};

/// The example of the docs. Its error rate is low.
fn simulate(arguments: &[&str]) -> Ran {
    let example = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/rollout-deployments.yaml"
    );
    let evidence = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(evidence.path(), "{error-rate: {value: 0.002}}").unwrap();
    let evidence = evidence.path().to_str().unwrap();
    let common = [
        "simulate",
        "-f",
        example,
        "--rollout",
        "web",
        "--evidence",
        evidence,
    ];
    run(&[&common, arguments].concat(), "")
}

const FRIDAY: [&str; 4] = [
    "--from",
    "2026-11-20T16:00:00Z",
    "--to",
    "2026-11-24T12:00:00Z",
];

#[test]
fn the_batches_of_a_rollout_go_out_when_its_gates_open() {
    let pods = [&FRIDAY[..], &["--replicas", "web-v1=20"]].concat();
    let ran = simulate(&pods);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    insta::assert_snapshot!(ran.out);

    let ran = simulate(&[&pods[..], &["-o", "json"]].concat());
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    let batches = told["batches"].as_array().unwrap();
    let goals: Vec<_> = batches.iter().map(|it| it["goal"].as_u64()).collect();
    assert_eq!(goals, [1, 6, 16, 20].map(Some));
    assert_eq!(batches[0]["at"], "2026-11-20T16:00:00Z");
    assert_eq!(batches[0]["decision"]["subject"]["step"], "1/4");
    assert_eq!(batches[3]["at"], Value::Null, "a person has to let it out");
    assert_eq!(told["end"]["held"]["reason"], "LastBatch");

    // In the last half hour of the day nothing begins.
    let late = [
        "--from",
        "2026-11-20T16:30:00Z",
        "--to",
        "2026-11-23T08:00:00Z",
    ];
    let ran = simulate(&[&late[..], &["--replicas", "web-v1=20"]].concat());
    assert!(
        ran.out.contains("Mon 2026-11-23 09:00 Europe/London"),
        "{ran:?}"
    );
}

#[test]
fn what_cannot_be_simulated_says_why() {
    for (arguments, expected) in [
        (
            vec!["--at", "now"],
            "nothing says how many pods Deployment web-v1 has",
        ),
        (
            vec!["--at", "now", "--replicas", "web-v1"],
            "such as web-v1=20",
        ),
        (
            vec!["--at", "now", "--gate", "office-hours"],
            "cannot be used with",
        ),
        (
            vec![
                "--from",
                "2026-11-21T00:00:00Z",
                "--to",
                "2026-11-20T00:00:00Z",
            ],
            "is earlier than --from",
        ),
    ] {
        let ran = simulate(&arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert!(ran.err.contains(expected), "{arguments:?}: {ran:?}");
    }
    let none = ["simulate", "-f", "-", "--rollout", "web", "--at", "now"];
    let ran = run(
        &none,
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
    );
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("there is no rollout in these files"),
        "{ran:?}"
    );
}

#[test]
fn the_workloads_may_be_in_the_files() {
    let yaml = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 5
  updateStrategy: {rollingUpdate: {partition: 2147483647}}
  template: {}
---
apiVersion: sluice.dev/v1alpha1
kind: Rollout
metadata: {name: db}
spec:
  targetRef: {kind: StatefulSet, name: db}
  revision: '16.4'
  rolloutPlan: {numBatches: 2}
";
    let simulate = [
        "simulate",
        "-f",
        "-",
        "--rollout",
        "db",
        "--at",
        "2026-11-20T16:00:00Z",
    ];
    let ran = run(&simulate, yaml);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    insta::assert_snapshot!(ran.out);
    let ran = run(&simulate, &yaml.replace("2147483647", "3"));
    assert!(ran.out.contains("Held (NotArmed)"), "{ran:?}");
}
