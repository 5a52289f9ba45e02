//! What people read.

use sluice_crds::promotion_strategy::marks;

use super::*;
use crate::delivery::pull_request::Says;

/// What goes, with the reason that it was.
type Step = (&'static str, Box<dyn Fn(&mut Play)>);

/// Each rule holds it back, and one after another does not any more: the first of them decides, and all are
/// told, in the status and at the forge.
#[test]
fn the_first_of_all_waits_decides() {
    let mut play = Play::new();
    play.spec(|spec| {
        spec["environments"][0]["gates"] = json!({"refs": [{"name": "office"}]});
        spec["environments"][1]["gates"] = json!({"refs": [{"name": "office"}]});
        spec["environments"][1]["proposedCommitStatuses"] = json!([{"key": "lint"}]);
    });
    play.all_healthy();
    play.settle();
    let second = play.hydrate("v2");
    play.open.insert("office".to_owned(), false);
    play.settle();
    let first = play.environment("env/dev").last_healthy[0].dry_sha.clone();
    play.check("env/dev", "health", "failure");
    play.pull_request("env/test").status.as_mut().unwrap().draft = true;
    play.repository.set("main", &first);
    let foreign = play.repository.push("env/test", &first, "foreign");
    let accepts = format!("env/test={foreign}");
    play.clock_is_lost = true;
    let steps: [Step; 8] = [
        ("ClockLost", Box::new(|play| play.clock_is_lost = false)),
        (
            "ForeignCommit",
            Box::new(move |play| {
                play.object.metadata.annotations =
                    Some([(marks::ACCEPT.to_owned(), accepts.clone())].into());
            }),
        ),
        (
            "NotOnDryBranch",
            Box::new(move |play| play.repository.set("main", &second)),
        ),
        (
            "WaitsForEnvironment",
            Box::new(|play| play.merge_by_person("env/dev")),
        ),
        (
            "CheckFailed",
            Box::new(|play| play.check("env/dev", "health", "success")),
        ),
        (
            "CheckMissing",
            Box::new(|play| play.check("env/test-next", "lint", "success")),
        ),
        (
            "Draft",
            Box::new(|play| {
                play.pull_request("env/test").status.as_mut().unwrap().draft = false;
            }),
        ),
        (
            "GateClosed",
            Box::new(|play| {
                play.open.insert("office".to_owned(), true);
            }),
        ),
    ];
    let reasons: Vec<_> = steps.iter().map(|(reason, _)| *reason).collect();
    for (place, (reason, step)) in steps.iter().enumerate() {
        if *reason == "CheckFailed" {
            play.check("env/dev", "health", "failure");
        }
        play.settle();
        // Gates are asked once nothing else holds it back.
        let last = if *reason == "GateClosed" { 8 } else { 7 };
        assert_eq!(play.reasons("env/test"), reasons[place..last], "{reason}");
        let environment = play.environment("env/test").clone();
        assert_eq!(environment.reason.as_deref(), Some(*reason));
        for wait in &environment.waits {
            let length = wait.message.chars().count();
            assert!((1..=500).contains(&length) && !wait.message.contains(char::is_control));
        }
        let said = Says::of(&play.pull_request("env/test").clone(), &play.object).unwrap();
        assert!(said.why.chars().count() <= 140, "{}", said.why);
        let begins = said.why.trim_end_matches('…');
        assert!(
            environment.waits[0].message.starts_with(begins),
            "{}",
            said.why
        );
        step(&mut play);
    }
    play.settle();
    assert_eq!(play.merges.last().unwrap().0, "env/test");
}

/// All of it is written by people who commit to the dry branch, and read by everybody in the forge.
#[test]
fn what_others_have_written_means_nothing_on_a_pull_request() {
    let subject = "@team closes #1 [here](https://evil.test) ![](x) `code` ``` <script>";
    let mut play = Play::new();
    play.settle();
    let dry = play.hydrate("v2");
    let metadata = json!({
        "drySHA": dry, "subject": format!("{subject}\nand more"), "author": "Eve <eve@example.com>\u{202e}",
        "repoURL": "https://evil.test",
    });
    play.repository.says("env/dev-next", &metadata.to_string());
    play.settle();
    let spec = play.pull_request("env/dev").spec.clone();
    assert_eq!(spec.title, format!("Promote {} to env/dev", &dry[..12]));
    let lines: Vec<_> = spec.description.lines().collect();
    let line = format!("- Commit: ````{subject}````");
    assert!(lines.contains(&line.as_str()), "{}", spec.description);
    assert!(
        lines.contains(&"- Author: `Eve <eve@example.com>`"),
        "{}",
        spec.description
    );
    let first = &play
        .environment("env/prod")
        .active
        .clone()
        .unwrap()
        .dry_sha
        .unwrap();
    assert!(lines.contains(&format!("- Replaces: `{first}`").as_str()));
    assert!(!spec.description.contains("and more"));
    assert_eq!(spec.description.matches("evil.test").count(), 1);
    assert!(
        spec.description
            .contains("kubectl gate why -n apps promotionstrategy/shop env/dev")
    );
}
