//! When what is proposed is joined to the history of its environment first, and when it is not.

use rstest::rstest;

use super::*;

/// Three promotions into one environment, and what somebody does after the first.
#[rstest]
#[case::merges(false, |_: &mut Play| {}, 0)]
#[case::squashes(true, |_: &mut Play| {}, 2)]
#[case::a_push_that_is_overwritten(false, |play: &mut Play| {
    let dry = play.repository.head("main");
    play.repository.push("prod", &dry, "foreign");
}, 1)]
#[case::a_push_that_is_accepted(false, |play: &mut Play| {
    let dry = play.repository.head("main");
    let pushed = play.repository.push("prod", &dry, "hotfix");
    let accepts = format!("prod={pushed}");
    play.object.metadata.annotations = Some([("sluice.dev/accept".to_owned(), accepts)].into());
}, 1)]
#[case::a_person_merges(false, |play: &mut Play| {
    play.spec(|spec| spec["environments"][0]["autoMerge"] = json!(false));
    play.hydrate("by hand");
    play.settle();
    play.merge_by_person("prod");
    play.spec(|spec| spec["environments"][0]["autoMerge"] = json!(true));
}, 0)]
#[case::nothing_changes(false, |play: &mut Play| drop(play.hydrate_some("nothing", "")), 0)]
fn it_is_joined_where_a_merge_would_mix(
    #[case] squashes: bool,
    #[case] then: fn(&mut Play),
    #[case] joins: usize,
) {
    let mut play = Play::with(&json!({
        "repoRef": {"name": "shop"},
        "environments": [{"branch": "prod", "foreignCommits": "Overwrite"}],
    }));
    play.squashes = squashes;
    play.settle();
    for version in ["v2", "v3", "v4"] {
        let dry = play.hydrate(version);
        play.settle();
        assert_eq!(play.at("prod"), Some(dry.as_str()), "{version}");
        if version == "v2" {
            then(&mut play);
            play.settle();
        }
    }
    let joined = play.events.iter().filter(|it| it.starts_with("joins"));
    assert_eq!(joined.count(), joins, "{:?}", play.events);
}
