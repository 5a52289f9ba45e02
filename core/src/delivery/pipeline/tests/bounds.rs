//! Everything is bounded.

use super::*;

#[test]
fn the_status_of_128_targets_stays_below_256_kib() {
    let mut play = Play::new(&json!({"strategy": {"admission": {}}}));
    let environments: Vec<Value> = (0..4)
        .map(|place| {
            let targets: Vec<Value> = (0..32)
                .map(|target| {
                    let name = format!("{target:02}{}", "n".repeat(61));
                    let cluster = format!("{target:02}{}", "c".repeat(251));
                    json!({"namespace": name, "clusterRef": {
                        "kind": "GitopsCluster", "name": cluster, "namespace": name,
                        "apiVersion": "a".repeat(253),
                    }})
                })
                .collect();
            json!({"name": format!("e{place}{}", "e".repeat(60)), "targets": targets})
        })
        .collect();
    let versions: Vec<Value> = (0..8)
        .map(|place| json!({"name": format!("v{place}{}", "v".repeat(60)), "expression": "object.spec.text"}))
        .collect();
    play.spec(|spec| {
        spec["environments"] = json!(environments);
        spec["versions"] = json!(versions);
    });
    let mut app = release("6.1.0");
    app["spec"]["text"] = json!("x".repeat(1000));
    app["status"]["history"][0]["chartVersion"] = json!("r".repeat(256));
    app["status"]["lastAttemptedRevision"] = json!("a".repeat(256));
    app["status"]["conditions"][0] =
        json!({"type": "Ready", "status": "False", "message": "m".repeat(4000)});
    for environment in play.object.spec.environments.clone() {
        play.apps
            .insert(environment.name, vec![Some(app.clone()); 32]);
    }
    let report = play.decide();
    let size = serde_json::to_vec(&report.status).unwrap().len();
    assert!(size < 256 << 10, "{size}");
    let shown = report
        .status
        .environments
        .values()
        .flat_map(|it| &it.targets);
    assert_eq!(
        shown.filter(|target| target.revision.is_some()).count(),
        128
    );
}

#[test]
fn what_others_wrote_is_cut_and_cleaned() {
    let mut play = Play::new(&json!({"strategy": {"notification": {}}}));
    play.settle();
    play.runs("dev", "6.1.6");
    play.look();
    play.errands(&Outcome::Failed {
        why: format!("\u{202e}no\nway {}", "x".repeat(9000)),
        not_before: None,
    });
    play.settle();
    let message = play.record("staging").message.clone().unwrap();
    assert!(
        message.starts_with("no way xxx") && message.len() < 2000,
        "{message}"
    );
}
