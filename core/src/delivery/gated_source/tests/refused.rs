//! What the API server refuses is reported, once.

use rstest::rstest;

use super::*;
use crate::delivery::act::{Act as _, Refused, with_ready};

impl Play {
    /// One look, of which the API server refuses all that is to be done. Returns how many writes of
    /// the status that leads to.
    fn is_refused(&mut self, code: u16) -> usize {
        let before = self.writes.0;
        let report = self.look();
        self.write_status(&report);
        let what = report.acts.iter().find_map(Act::writes).unwrap();
        let message = "words ".repeat(200);
        let refusal = Refused {
            what,
            code,
            message,
        };
        let conditions = refusal.conditions();
        if let Some(status) = with_ready(&self.object, conditions, self.now) {
            self.object.status = Some(status);
            self.writes.0 += 1;
        }
        self.writes.0 - before
    }
}

#[rstest]
#[case::without_a_right(403, true)]
#[case::by_a_policy(422, true)]
#[case::for_another_reason(400, false)]
fn a_write_that_is_refused_is_told_once(#[case] code: u16, #[case] stalls: bool) {
    let mut play = Play::new(&json!({}));
    play.open();
    assert_eq!(play.is_refused(code), 2);
    assert_eq!(play.says("Ready").unwrap(), "False WriteRefused");
    let stalled = play.says("Stalled").is_some();
    assert_eq!((stalled, play.says("Reconciling")), (stalls, None));
    let said = play.message("Ready");
    assert!(
        said.contains("a write of the GitRepository app,") && said.len() < 600,
        "{said}"
    );
    // Admitted it is, and the other conditions are there.
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
    assert_eq!(play.says("Blocked").unwrap(), "False NothingPending");
    for _ in 0..3 {
        play.pass(1);
        assert_eq!(play.is_refused(code), 0);
    }
    // An edit of the spec has it say so of the new generation, once.
    play.object.metadata.generation = Some(2);
    assert_eq!((play.is_refused(code), play.is_refused(code)), (1, 0));
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
    assert_eq!(play.says("Stalled"), None);
}

#[test]
fn it_is_told_of_one_that_is_going_too() {
    let mut play = Play::new(&json!({ "deletionPolicy": "Delete" }));
    play.open();
    play.settle();
    play.object.metadata.deletion_timestamp = Some(time(play.now));
    play.object.metadata.generation = Some(2);
    assert_eq!((play.is_refused(403), play.is_refused(403)), (1, 0));
    assert_eq!(play.says("Stalled").unwrap(), "True WriteRefused");
    assert_eq!(play.ours().observed_generation, Some(2));
}
