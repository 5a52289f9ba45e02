//! Deployments that are scaled against each other.

use rstest::rstest;

use super::*;

fn three() -> Value {
    json!({"rolloutBatches": [{"replicas": 1}, {"replicas": "50%"}, {}]})
}

#[test]
fn the_new_version_grows_and_the_old_one_shrinks() {
    let mut play = pair(&three());
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), (10, 0));
    assert_eq!(
        play.log,
        [
            "Finalize true",
            "Claim web-v2",
            "Claim web-v1",
            "Scale web-v2 1",
            "Scale web-v1 9",
            "Scale web-v2 6",
            "Scale web-v1 4",
            "Scale web-v2 10",
            "Scale web-v1 0",
            "Release web-v2",
            "Release web-v1",
            "Finalize false",
        ]
    );
    let status = play.status();
    assert_eq!(status.progress.as_deref(), Some("3/3"));
    assert_eq!(status.upgraded_replicas, Some(10));
    assert_eq!(status.upgraded_ready_replicas, Some(10));
    assert_eq!(status.rollout_target_size, Some(10));
    assert_eq!(status.history.len(), 1);
    assert_eq!(play.ready(), ("True".into(), "RolloutSucceeded".into()));
    rests(&mut play);
}

#[test]
fn the_old_version_shrinks_first_if_it_is_to() {
    let mut plan = three();
    plan["rolloutStrategy"] = "DecreaseFirst".into();
    let mut play = pair(&plan);
    play.run();
    assert_eq!(
        play.sizes(),
        [
            "Scale web-v1 9",
            "Scale web-v2 1",
            "Scale web-v1 4",
            "Scale web-v2 6",
            "Scale web-v1 0",
            "Scale web-v2 10",
        ]
    );
    assert_eq!(play.state(), "rolloutSucceed");
}

#[test]
fn several_sources_are_emptied_in_their_order() {
    let mut play = pair(&json!({"numBatches": 2}));
    play.deployment("web-v0", 2, "web:0");
    play.spec(&json!({"sourceRef": [
        {"kind": "Deployment", "name": "web-v0"}, {"kind": "Deployment", "name": "web-v1"},
    ]}));
    play.run();
    assert_eq!(
        play.sizes(),
        [
            "Scale web-v2 6",
            "Scale web-v0 0",
            "Scale web-v1 6",
            "Scale web-v2 12",
            "Scale web-v1 0",
        ]
    );
}

/// No pod is made before the first hook has let it, also where there are to be more than before.
#[test]
fn a_total_above_the_sources_makes_nothing_before_the_first_hook() {
    let mut play = pair(&json!({
        "targetSize": 16, "numBatches": 2,
        "rolloutWebhooks": [{"type": "initialize-rollout", "name": "first", "url": "https://a/b"}],
    }));
    play.run();
    let first = play.log.iter().position(|it| it.starts_with("Scale"));
    let hook = play
        .log
        .iter()
        .position(|it| it == "Call first in initializing");
    assert!(hook.unwrap() < first.unwrap(), "{:?}", play.log);
    assert_eq!(
        play.sizes(),
        [
            "Scale web-v2 8",
            "Scale web-v1 8",
            "Scale web-v2 16",
            "Scale web-v1 0"
        ]
    );
}

#[test]
fn a_target_with_pods_completes_the_total_at_the_start() {
    let mut play = pair(&json!({"targetSize": 16, "numBatches": 4}));
    play.cluster
        .foreign(&v2(), "/spec/replicas", json!(2), "kubectl");
    play.cluster.settle();
    play.run();
    // 16 less 10, then 4, 8, 12 and 16, of which the first is passed.
    assert_eq!(play.sizes()[0], "Scale web-v2 6");
    assert_eq!(play.sizes()[1], "Scale web-v2 8");
    assert_eq!(play.present(), (16, 0));
    assert!(
        play.news.iter().any(|it| it.contains("was there already")),
        "{:?}",
        play.news
    );
}

#[test]
fn a_total_below_the_sources_fails_at_once() {
    let mut play = pair(&json!({"targetSize": 9}));
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    assert_eq!(play.ready(), ("False".into(), "InvalidSpec".into()));
    assert!(play.log.is_empty(), "{:?}", play.log);
    rests(&mut play);
    // Another spec is looked at again.
    play.spec(&json!({"rolloutPlan": {"targetSize": 10}}));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

#[test]
fn a_run_that_is_resumed_passes_what_is_there() {
    for strategy in ["IncreaseFirst", "DecreaseFirst"] {
        let mut play = pair(&json!({
            "targetSize": 12, "rolloutStrategy": strategy,
            "rolloutBatches": [{"replicas": 3}, {"replicas": 3}, {}],
        }));
        play.cluster
            .foreign(&v2(), "/spec/replicas", json!(9), "kubectl");
        play.cluster
            .foreign(&v1(), "/spec/replicas", json!(3), "kubectl");
        play.cluster.settle();
        play.run();
        let mut sizes = play.sizes();
        sizes.sort_unstable();
        assert_eq!(sizes, ["Scale web-v1 0", "Scale web-v2 12"], "{strategy}");
        let passed = play.news.iter().filter(|it| it.starts_with("AlreadyThere"));
        assert_eq!(passed.count(), 2, "{:?}", play.news);
    }
}

/// Three of four are available.
#[rstest]
#[case::none(&json!(0), false)]
#[case::one(&json!(1), true)]
#[case::one_of_all_ten(&json!("10%"), true)]
fn pods_that_need_not_be_available_are_not_waited_for(
    #[case] unavailable: &Value,
    #[case] goes_on: bool,
) {
    let mut play = pair(&json!({
        "rolloutBatches": [{"replicas": 4, "maxUnavailable": unavailable}, {}],
    }));
    while play.cluster.available(&v2()) < 3 {
        play.look();
        play.cluster.tick();
    }
    // Two were too few.
    assert_eq!(play.sizes(), ["Scale web-v2 4"]);
    for _ in 0..5 {
        play.look();
    }
    assert_eq!(play.present(), (4, if goes_on { 6 } else { 10 }));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

#[test]
fn a_target_that_is_paused_makes_pods_and_a_source_stays_paused() {
    let mut play = pair(&json!({}));
    for of in [v1(), v2()] {
        play.cluster
            .foreign(&of, "/spec/paused", json!(true), "kubectl");
    }
    play.cluster.settle();
    play.run();
    let paused = |of: &Name| play.cluster.workloads[of]["spec"]["paused"].clone();
    assert_eq!((paused(&v2()), paused(&v1())), (json!(false), json!(true)));
    assert_eq!(play.state(), "rolloutSucceed");
}

/// Without a revision, another template of the target is another run.
#[test]
fn without_a_revision_the_template_is_the_revision() {
    let mut play = pair(&json!({"numBatches": 2}));
    play.spec(&json!({"revision": null}));
    play.run();
    let first = play.status().run.unwrap();
    assert_eq!(play.state(), "rolloutSucceed");
    let image = json!([{"name": "c", "image": "web:3"}]);
    play.cluster
        .foreign(&v2(), "/spec/template/spec/containers", image, "kubectl");
    play.cluster.settle();
    play.spec(&json!({"rolloutPlan": {"targetSize": 10}}));
    play.run();
    let second = play.status().run.unwrap();
    assert!(second.id > first.id && second.revision != first.revision);
}

#[test]
fn numbers_are_written_seldom_while_pods_come() {
    let mut play = pair(&json!({}));
    play.run();
    // Ten pods come in ten seconds: begin, batch, a number or two, and the end.
    assert!(play.writes <= 12, "{}", play.writes);
}

/// etcd takes 1.5 MiB of an object. What tenants write and others answer, in as many places as there are.
#[test]
fn the_largest_plan_has_a_status_of_reasonable_size() {
    let hook = |kind: &str, number: usize| {
        let name = format!("{kind}-{number}-{}", "x".repeat(30));
        json!({"type": kind, "name": name, "url": format!("https://smoke/{number}")})
    };
    let hooks = || {
        (0..4).flat_map(|number| {
            ["pre-batch-rollout", "post-batch-rollout"].map(|kind| hook(kind, number))
        })
    };
    let batches: Vec<Value> = (0..30)
        .map(|_| json!({"replicas": 1, "batchRolloutWebhooks": hooks().collect::<Vec<_>>()}))
        .collect();
    let mut play = pair(&json!({
        "rolloutBatches": batches, "rolloutWebhooks": hooks().collect::<Vec<_>>(),
    }));
    play.cluster.autoscalers.clear();
    play.cluster.respecify(|it| {
        let all = it.metadata.annotations.get_or_insert_default();
        all.insert("sluice.dev/retry".to_owned(), "x".repeat(100_000));
    });
    let source = v1();
    play.cluster
        .foreign(&source, "/spec/replicas", json!(30), "kubectl");
    play.cluster.settle();
    let mut largest = 0;
    while play.state() != "rolloutSucceed" {
        play.look();
        play.cluster.tick();
        for arrived in &mut play.arrived {
            arrived.error = Some("x".repeat(10_000));
        }
        play.now += SignedDuration::from_secs(1);
        let status = serde_json::to_string(&play.status()).unwrap();
        largest = largest.max(status.len());
    }
    assert!(largest < 64 << 10, "{largest}");
    // Of a workload no more is kept than what a claim may have.
    play.run();
    let claim = play.cluster.workloads[&v2()]["metadata"]["annotations"][marks::CLAIM].clone();
    let claim = claim.as_str().unwrap();
    assert!(claim.contains("done") && claim.len() < 512, "{claim}");
}
