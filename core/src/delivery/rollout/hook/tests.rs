//! Answers, calls that are repeated, and calls that are not.

use rstest::rstest;
use sluice_crds::rollout::{HookType, Method};

use super::*;
use crate::time::stamp::time;

fn hook(name: &str) -> Hook {
    Hook {
        type_: HookType::PreBatchRollout,
        name: name.to_owned(),
        url: "https://tests.shop.svc/smoke".to_owned(),
        method: Method::Post,
        expected: Expected::Success,
        metadata: vec![("team".to_owned(), "shop".to_owned())],
        timeout: SignedDuration::from_secs(10),
        secret: None,
    }
}

fn noon() -> Timestamp {
    "2026-11-23T12:00:00Z".parse().unwrap()
}

fn record(hook: &Hook, status: Option<i32>, attempts: i32) -> HookRecord {
    HookRecord {
        type_: hook.type_,
        name: hook.name.clone(),
        batch: Some(1),
        checksum: checksum(hook),
        at: time(noon()),
        attempts,
        status,
        done: status.is_some(),
        error: None,
    }
}

#[rstest]
#[case::ok(Answer::Status(200), Meaning::Pass)]
#[case::no_content(Answer::Status(204), Meaning::Pass)]
#[case::partial(Answer::Status(206), Meaning::Veto)]
#[case::elsewhere(Answer::Status(302), Meaning::Veto)]
#[case::bad_request(Answer::Status(400), Meaning::Veto)]
#[case::forbidden(Answer::Status(403), Meaning::Veto)]
#[case::too_slow(Answer::Status(408), Meaning::Again)]
#[case::too_many(Answer::Status(429), Meaning::Again)]
#[case::broken(Answer::Status(500), Meaning::Again)]
#[case::unavailable(Answer::Status(503), Meaning::Again)]
#[case::nothing(Answer::Nothing, Meaning::Again)]
fn an_answer_means(#[case] answer: Answer, #[case] expected: Meaning) {
    assert_eq!(meaning(&hook("a"), &answer), expected);
}

#[test]
fn what_is_expected_passes_and_nothing_else() {
    let mut hook = hook("a");
    hook.expected = Expected::OneOf([409, 503].into());
    assert_eq!(meaning(&hook, &Answer::Status(503)), Meaning::Pass);
    assert_eq!(meaning(&hook, &Answer::Status(409)), Meaning::Pass);
    assert_eq!(meaning(&hook, &Answer::Status(200)), Meaning::Veto);
    assert_eq!(meaning(&hook, &Answer::Status(500)), Meaning::Again);
}

#[test]
fn hooks_are_called_one_after_another() {
    let (first, second) = (hook("first"), hook("second"));
    let hooks = [&first, &second];
    let next = |records: &[HookRecord]| next(hooks, Some(1), records, noon());
    assert_eq!(next(&[]), Next::Call(&first));
    let passed = record(&first, Some(200), 1);
    assert_eq!(next(std::slice::from_ref(&passed)), Next::Call(&second));
    let all = [passed.clone(), record(&second, Some(204), 1)];
    assert_eq!(next(&all), Next::Passed);
    let vetoed = [passed, record(&second, Some(403), 1)];
    assert_eq!(next(&vetoed), Next::Vetoed(&second, 403));
}

/// What a restarted controller reads is enough for it not to call again.
#[test]
fn an_answer_counts_for_its_hook_alone() {
    let hook = hook("a");
    let answered = |change: fn(&mut HookRecord)| {
        let mut record = record(&hook, Some(200), 1);
        change(&mut record);
        next([&hook], Some(1), &[record], noon())
    };
    assert_eq!(answered(|_| {}), Next::Passed);
    let changes: [fn(&mut HookRecord); 5] = [
        |it| it.batch = Some(0),
        |it| it.batch = None,
        |it| it.name.push('x'),
        |it| it.type_ = HookType::PostBatchRollout,
        |it| it.checksum.push('x'),
    ];
    for change in changes {
        assert_eq!(answered(change), Next::Call(&hook));
    }
}

#[rstest]
#[case(1, 1)]
#[case(2, 2)]
#[case(5, 16)]
#[case(6, 30)]
#[case(1000, 30)]
fn what_cannot_answer_is_called_again_later(#[case] attempts: i32, #[case] seconds: i64) {
    let hook = hook("a");
    let records = [record(&hook, Some(503), attempts)];
    let at = later(noon(), SignedDuration::from_secs(seconds));
    let next = |now| next([&hook], Some(1), &records, now);
    assert_eq!(next(noon()), Next::Wait(&hook, at));
    assert_eq!(next(at), Next::Call(&hook));
}

#[test]
fn the_key_is_the_same_for_the_same_call_alone() {
    let (hook, mut other) = (hook("a"), hook("a"));
    other.url.push('x');
    let call = Call {
        namespace: "shop",
        name: "web",
        run: 7,
        identity: "4f2a",
        revision: "6.8.0",
        state: RollingState::RollingInBatches,
        batch: Some(1),
        hook: &hook,
    };
    let mut keys = vec![
        call.key(),
        Call { run: 8, ..call }.key(),
        Call {
            batch: None,
            ..call
        }
        .key(),
        Call {
            name: "web2",
            ..call
        }
        .key(),
        Call {
            namespace: "shop2",
            ..call
        }
        .key(),
        Call {
            hook: &other,
            ..call
        }
        .key(),
    ];
    // How far the run is changes nothing: it is the same call.
    let state = RollingState::RolloutFailing;
    assert_eq!(Call { state, ..call }.key(), call.key());
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 6);
    let expected = json!({
        "name": "web", "namespace": "shop", "phase": "rollingInBatches", "checksum": "4f2a",
        "metadata": {"team": "shop"}, "batch": 1, "revision": "6.8.0",
    });
    assert_eq!(call.payload(), expected);
}
