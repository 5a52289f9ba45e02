//! What the status tells people while something waits.

use rstest::rstest;
use sluice_crds::Approval;
use sluice_crds::gated_source::Pending;

use super::*;

impl Play {
    /// The gate asks for two approvals, and for everything else that `besides` says of its gatekeepers.
    fn by_approval(&mut self, besides: &[(&str, &str)]) {
        self.keep("{approval: {required: 2, validFor: 24h}}");
        let mut names = vec!["production".to_owned()];
        for (name, spec) in besides {
            let text = format!(
                "{{apiVersion: sluice.dev/v1alpha1, kind: Gatekeeper, \
                 metadata: {{name: {name}, namespace: apps}}, spec: {spec}}}"
            );
            let value: Value = serde_saphyr::from_str(&text).unwrap();
            let Object::Gatekeeper(object) = lint::read(&value).object.unwrap() else {
                unreachable!("{text}")
            };
            let key = Key::of(&object.metadata);
            self.world.gatekeepers.insert(key, Arc::new(*object));
            names.push((*name).to_owned());
        }
        let gate = self.world.gates.values_mut().next().unwrap();
        let keepers: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        gate.spec = serde_json::from_value(json!({ "gatekeepers": keepers })).unwrap();
    }

    fn approve(&mut self, by: &str, revision: &str) {
        let approval: Approval = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Approval",
            "metadata": {
                "name": format!("of-{by}"), "namespace": "apps",
                "creationTimestamp": self.now.to_string(),
            },
            "spec": {
                "gatekeeperRef": { "name": "production" }, "revision": revision,
                "decision": "approve", "by": by,
            },
        }))
        .unwrap();
        let key = Key::of(&approval.metadata);
        self.world.approvals.insert(key, Arc::new(approval));
    }

    fn ask_for_a_look(&mut self, at: &str) {
        let annotations = self.object.metadata.annotations.get_or_insert_default();
        annotations.insert(
            crate::verdict::status::REQUESTED_AT.to_owned(),
            at.to_owned(),
        );
    }

    fn last_message(&self) -> String {
        self.ours().last_decision.clone().unwrap().message
    }
}

const METRIC: &str =
    "{metric: {address: 'http://prometheus', query: up, interval: 30s, range: {min: 0.9}}}";

/// State and reason are the same after the first of two approvals: the words are not.
#[rstest]
#[case::alone(&[])]
#[case::beside_what_is_measured(&[("up", METRIC)])]
fn each_approval_is_told(#[case] besides: &[(&str, &str)]) {
    let mut play = Play::new(&json!({}));
    play.by_approval(besides);
    for (name, _) in besides {
        play.measure(name, "0.5");
    }
    play.settle();
    assert!(play.last_message().contains("has 0 of 2 approvals"));
    play.approve("alice", &revision('a'));
    play.writes = (0, 0);
    play.settle();
    assert!(
        play.last_message().contains("has 1 of 2 approvals (alice)"),
        "{}",
        play.last_message()
    );
    assert!(play.message("Blocked").contains("has 1 of 2 approvals"));
    assert_eq!(play.writes, (1, 0));
    // What is only measured again is no reason to write.
    for (name, _) in besides {
        play.now += SignedDuration::from_secs(30);
        play.measure(name, "0.6");
        play.settle();
        assert_eq!(play.writes, (1, 0));
    }
}

#[test]
fn anyone_who_asks_for_a_look_reads_what_was_measured_last() {
    let mut play = Play::new(&json!({}));
    play.keep(METRIC);
    play.measure("production", "0.5");
    play.settle();
    play.now += SignedDuration::from_secs(30);
    play.measure("production", "0.6");
    play.settle();
    assert!(
        play.last_message().contains("0.5"),
        "{}",
        play.last_message()
    );
    play.ask_for_a_look("now");
    play.settle();
    assert!(
        play.last_message().contains("0.6"),
        "{}",
        play.last_message()
    );
    assert!(play.message("Blocked").contains("0.6"));
}

/// Somebody stops it, and the source goes on.
#[test]
fn what_comes_while_it_is_suspended_is_seen_to_wait() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    play.object.spec.suspend = true;
    play.settle();
    assert_eq!(play.says("Blocked").unwrap(), "False NothingPending");
    let told = play.told.len();
    play.push('b');
    play.settle();
    assert_eq!(play.pending(), Some(revision('b').as_str()));
    assert_eq!(play.says("Blocked").unwrap(), "True Suspended");
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
    assert_eq!(play.told.len(), told, "no gate is asked");
    // The source goes back, and nothing waits any more.
    play.push('a');
    play.settle();
    assert_eq!(play.says("Blocked").unwrap(), "False NothingPending");
    // What somebody asks for goes on waiting.
    play.object.spec.suspend = false;
    play.close();
    play.object.spec.revision = Some(commit('c'));
    play.settle();
    let asked = play.pending().map(str::to_owned);
    play.object.spec.suspend = true;
    play.settle();
    assert_eq!(play.pending().map(str::to_owned), asked);
    assert_eq!(play.says("Blocked").unwrap(), "True Suspended");
}

/// The gates admit everything that is asked for; that there is no such commit shows when it is fetched.
#[test]
fn what_is_asked_for_and_cannot_be_fetched_is_told() {
    let mut play = Play::new(&json!({ "revision": commit('f') }));
    play.open();
    for _ in 0..2 {
        let report = play.look();
        play.write_status(&report);
        play.carry_out(report.acts);
    }
    let child = play.child.as_mut().unwrap();
    let generation = child.metadata.generation;
    let failed = condition("Ready", "False", "GitOperationFailed", generation);
    child.status.conditions = vec![serde_json::from_value(failed).unwrap()];
    child.status.observed_generation = generation;
    play.settle();
    let asked = format!("sha1:{}", commit('f'));
    assert_eq!(play.says("Ready").unwrap(), "False GitOperationFailed");
    assert_eq!(play.says("Blocked").unwrap(), "True RevisionNotHeld");
    assert!(
        play.message("Blocked")
            .contains("it says GitOperationFailed")
    );
    assert_eq!(play.pending(), Some(asked.as_str()));
    // It is there after all.
    let generation = play.child.as_ref().unwrap().metadata.generation;
    fetched(play.child.as_mut().unwrap(), &asked);
    assert_eq!(play.child.as_ref().unwrap().metadata.generation, generation);
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
    assert_eq!(play.says("Blocked").unwrap(), "True NotAskedFor");
    assert_eq!(play.pending(), Some(revision('a').as_str()));
}

/// Flux has not handled it yet: nothing is wrong with a new app.
#[rstest]
#[case::not_looked_at(-1, None)]
#[case::at_work(1, Some("Unknown"))]
fn the_first_fetch_is_no_trouble(#[case] observed: i64, #[case] ready: Option<&str>) {
    let mut play = Play::new(&json!({}));
    let status = &mut play.upstream.as_mut().unwrap().status;
    status.artifact = None;
    status.observed_generation = Some(observed);
    status.conditions = (ready.iter())
        .map(|ready| condition("Ready", ready, "Progressing", Some(1)))
        .map(|ready| serde_json::from_value(ready).unwrap())
        .collect();
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "False Progressing");
    assert_eq!(play.says("Reconciling").unwrap(), "True Progressing");
    play.push('a');
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "True NothingAdmitted");
}

#[test]
fn tables_show_revisions_in_short() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    play.close();
    play.push('b');
    // What an earlier version of the controller has written.
    play.object
        .status
        .as_mut()
        .unwrap()
        .admitted
        .as_mut()
        .unwrap()
        .short = None;
    play.settle();
    let short = |digit: char| Some(format!("main@{}", digit.to_string().repeat(12)));
    let admitted = play.ours().admitted.clone().unwrap();
    assert_eq!(admitted.short, short('a'));
    let Pending { short: pending, .. } = play.ours().pending.clone().unwrap();
    assert_eq!(pending, short('b'));
}
