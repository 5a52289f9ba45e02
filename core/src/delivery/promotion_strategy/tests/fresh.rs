//! Where branches are listed seldom: merges are ordered from a fresh list.

use sluice_crds::pipeline::MergeGate;

use super::*;

/// The second commit may be merged into dev. The branches were listed some time ago.
fn listed(seconds: i64) -> Play {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    play.propose_second();
    play.list_age = SignedDuration::from_secs(seconds);
    play
}

#[test]
fn a_merge_waits_for_a_fresh_list_and_nothing_is_written_for_that() {
    let mut play = listed(1_800);
    let (writes, told) = (play.writes, play.told.len());
    for asked in 1..3 {
        let report = play.look();
        assert_eq!(report.acts, [Act::Freshen]);
        assert!(!report.changed);
        assert_eq!((play.writes, play.freshened), (writes, asked));
    }
    // Nothing is recorded of what was not decided.
    assert_eq!(play.told.len(), told);
    play.list_age = SignedDuration::ZERO;
    play.look();
    assert!(play.environment("env/dev").order.is_some());
}

#[test]
fn who_lists_once_a_minute_does_not_wait() {
    let mut play = listed(70);
    play.look();
    assert!(play.environment("env/dev").order.is_some());
    assert_eq!(play.freshened, 0);
    // Also after the clock was set back.
    for seconds in [80, -80] {
        let mut play = listed(seconds);
        play.look();
        assert_eq!(play.freshened, 1, "{seconds}");
    }
}

#[test]
fn an_order_that_stands_and_a_merge_of_a_person_need_no_fresh_list() {
    let mut play = listed(0);
    play.forge_works = false;
    play.look();
    let order = play.environment("env/dev").order.clone();
    assert!(order.is_some());
    play.list_age = SignedDuration::from_mins(30);
    play.look();
    assert_eq!(play.environment("env/dev").order, order);
    let mut play = listed(1_800);
    play.spec(|spec| spec["environments"][0]["autoMerge"] = json!(false));
    play.look();
    assert_eq!(play.reasons("env/dev"), ["WaitsForPerson"]);
    assert_eq!(play.freshened, 0);
}

#[test]
fn a_list_that_fails_is_told_once() {
    let mut play = listed(1_800);
    play.repository.is_list_failing = true;
    play.look();
    let dev = play.environment("env/dev");
    assert_eq!(
        (dev.order.as_ref(), dev.gate),
        (None, Some(MergeGate::Pending))
    );
    assert_eq!(play.reasons("env/dev"), ["ForgeUnavailable"]);
    assert!(play.message("env/dev").contains("cannot be listed now"));
    let writes = play.writes;
    play.look();
    assert_eq!((play.writes, play.freshened), (writes, 2));
    play.repository.is_list_failing = false;
    play.list_age = SignedDuration::ZERO;
    play.look();
    assert!(play.environment("env/dev").order.is_some());
}

#[test]
fn what_has_to_be_taken_back_does_not_wait_for_a_list() {
    let mut play = Play::new();
    play.spec(|spec| {
        spec["environments"][1]["after"] = json!([]);
        spec["environments"][1]["autoMerge"] = json!(false);
        spec["environments"][1]["gates"] = json!({"refs": [{"name": "office"}]});
    });
    play.all_healthy();
    play.settle();
    play.propose_second();
    play.forge_works = false;
    let gate = |play: &Play| play.environment("env/test").gate;
    play.list_age = SignedDuration::from_mins(30);
    play.repository.is_list_failing = true;
    play.look();
    assert_eq!(gate(&play), Some(MergeGate::Success));
    play.repository.is_list_failing = false;
    play.open.insert("office".to_owned(), false);
    play.look();
    assert_eq!(gate(&play), Some(MergeGate::Pending));
    // What would be ordered meanwhile still waits.
    assert_eq!(play.reasons("env/dev"), ["ForgePending"]);
    assert_eq!(play.environment("env/dev").order, None);
}
