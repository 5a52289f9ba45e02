//! Gates that are measured again and again: an equal result is no reason to write.

use rstest::rstest;
use sluice_crds::gatekeeper::Kind;

use super::*;
use crate::gatekeeper::Evidence;
use crate::gatekeeper::metric::{self, Answer, Observed};

impl Play {
    /// The metric of the gatekeeper `name` has this value now.
    pub(super) fn measure(&mut self, name: &str, value: &str) {
        let key = Key::from_reference("apps", None, name);
        let Ok(Kind::Metric(spec)) = self.world.gatekeepers[&key].spec.kind() else {
            unreachable!("{name} measures nothing")
        };
        let rule = metric::read(spec, "spec.metric").unwrap();
        let before = self.world.given.remove(&key);
        let before = before.and_then(|before| before.get::<Observed>().cloned());
        let seen = Observed::next(before, Ok(Answer::of(value).unwrap()), &rule, self.now);
        self.world.given.insert(key, Evidence::of(seen));
    }

    /// The gate is kept by a metric that has to be at least 0.9, for so long.
    fn by_metric(&mut self, for_: &str) {
        self.keep(&format!(
            "{{metric: {{address: 'http://prometheus', query: up, interval: 30s, {for_} \
             range: {{min: 0.9}}}}}}"
        ));
    }

    /// Another value of the metric each 30 seconds, with a look after each.
    fn poll(&mut self, gatekeeper: &str, values: &[&str]) {
        for value in values {
            self.now += SignedDuration::from_secs(30);
            self.measure(gatekeeper, value);
            self.settle();
        }
    }
}

const SUSPENDING: &str = "suspend";

#[rstest]
fn values_that_come_to_the_same_cost_no_write(#[values("pin", SUSPENDING)] strategy: &str) {
    let mut play = Play::new(&json!({ "strategy": strategy }));
    play.by_metric("");
    play.measure("production", "0.5");
    play.settle();
    assert_eq!(play.says("Blocked").unwrap(), "True GatesClosed");
    play.writes = (0, 0);
    play.poll("production", &["0.6", "0.7", "0.8"]);
    assert_eq!(play.writes, (0, 0));
    play.poll("production", &["0.95"]);
    assert_ne!(play.says("Blocked").unwrap(), "True GatesClosed");
    play.push('b');
    play.settle();
    play.writes = (0, 0);
    play.poll("production", &["0.96", "0.97"]);
    assert_eq!(play.writes, (0, 0));
}

#[test]
fn what_was_measured_runs_out_at_an_instant_that_is_waited_for() {
    for strategy in ["pin", SUSPENDING] {
        let mut play = Play::new(&json!({ "strategy": strategy }));
        play.by_metric("");
        play.measure("production", "0.5");
        play.settle();
        let runs_out = play.now + SignedDuration::from_secs(90);
        assert_eq!(play.look().wake, Some(runs_out), "{strategy}");
        let decision = play.ours().last_decision.clone().unwrap();
        assert_eq!(decision.next, None, "{strategy}");
        play.now = runs_out;
        play.settle();
        let decision = play.ours().last_decision.clone().unwrap();
        assert_eq!(decision.checked[0].reason, "Expired", "{strategy}");
    }
}

#[test]
fn a_row_that_is_not_long_enough_yet_is_told_with_its_end_and_once() {
    let mut play = Play::new(&json!({}));
    play.by_metric("for: 10m,");
    play.measure("production", "0.95");
    play.settle();
    let decision = play.ours().last_decision.clone().unwrap();
    let enough = play.now + SignedDuration::from_mins(10);
    assert_eq!(decision.next, Some(time(enough)));
    play.writes = (0, 0);
    play.poll("production", &["0.96", "0.97"]);
    assert_eq!(play.writes, (0, 0));
}

#[test]
fn only_what_is_done_by_an_answer_has_to_be_recorded() {
    let mut play = Play::new(&json!({ "strategy": SUSPENDING }));
    play.by_metric("");
    play.measure("production", "0.95");
    play.settle();
    play.poll("production", &["0.96", "0.97", "0.5", "0.6"]);
    assert!(play.told.len() > 5);
    assert_eq!(play.effects, 0, "nothing was held, so nothing is let go");
    play.poll("production", &["0.95", "0.96", "0.97"]);
    assert_eq!(play.effects, 1, "what was held is let go once");
}

#[test]
fn what_waits_for_its_turn_is_recorded_when_that_comes() {
    let mut play = Play::new(&json!({ "spread": "1h" }));
    play.settle();
    play.open();
    play.settle();
    play.pass(1);
    play.settle();
    assert_eq!((play.admitted(), play.effects), (None, 0));
    play.pass(60);
    play.settle();
    assert!(play.admitted().is_some());
    assert_eq!(play.effects, 1);
}
