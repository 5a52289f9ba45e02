use rstest::rstest;

use super::*;
use crate::gatekeeper::approval::Ballot;
use crate::gatekeeper::{Keeper, evidence};
use crate::time::clock::{Now, Trust};

const NOW: &str = "2026-11-20T12:00:00Z";
const COMMIT: &str = "4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";

/// What is known in addition: a Pipeline, and whether statuses are verified.
struct Around {
    promoting: Option<Named<Arc<Pipeline>>>,
    verified: bool,
}

impl Known for Around {
    fn is_verified(&self, _: &Gatekeeper) -> bool {
        self.verified
    }

    fn ballot(&self, _: &Gatekeeper) -> Arc<Ballot> {
        Arc::default()
    }

    fn unreadable(&self, _: &Gatekeeper) -> Option<Arc<str>> {
        None
    }

    fn pipeline(&self, _: &Gatekeeper, _: &PipelineRule) -> Option<Named<Arc<Pipeline>>> {
        self.promoting.clone()
    }
}

fn gatekeeper(environment: &str) -> Arc<Gatekeeper> {
    let spec = format!(
        "{{onError: open, pipeline: {{name: app, namespace: flux-system, environment: {environment}}}}}"
    );
    let mut object = Gatekeeper::new("promoted", serde_saphyr::from_str(&spec).unwrap());
    object.metadata.generation = Some(3);
    Arc::new(object)
}

/// Three environments: `dev`, `prod` with an admission, `dr` without a promotion, `eu` by a notification.
fn pipeline(admitted: &[&str]) -> Named<Arc<Pipeline>> {
    let targets = "targets: [{namespace: app}]";
    let spec = format!(
        "{{appRef: {{kind: HelmRelease, name: app}}, environments: [{{name: dev, {targets}}},
          {{name: prod, {targets}, promotion: {{strategy: {{admission: {{}}}}}}}},
          {{name: dr, {targets}}},
          {{name: eu, {targets}, promotion: {{strategy: {{notification: {{}}}}}}}}]}}"
    );
    let mut pipeline = Pipeline::new("app", serde_saphyr::from_str(&spec).unwrap());
    let entry = |it: &&str| serde_json::json!({"revision": it, "run": 7, "at": NOW});
    let admitted: Vec<_> = admitted.iter().map(entry).collect();
    let status = serde_json::json!({
        "environments": {"prod": {"state": "Promoted", "admitted": admitted}},
    });
    pipeline.status = Some(serde_json::from_value(status).unwrap());
    Named::Here(Arc::new(pipeline))
}

/// State, reason and words of a keeper, asked about a revision or about none.
fn says(keeper: &Keeper, revision: Option<&str>) -> (State, String, String) {
    let revision = revision.map(|text| Revision::parse(text).unwrap());
    let now = Now::given(NOW.parse().unwrap());
    let verdict = keeper.verdict(Question::new(now, revision.as_ref()));
    (verdict.state, verdict.reason, verdict.message)
}

fn keeper(environment: &str, around: &Around) -> Keeper {
    let object = gatekeeper(environment);
    let known = evidence(&object, Evidence::default(), around);
    Keeper::new(object, known, NOW.parse().unwrap())
}

fn ask(
    environment: &str,
    promoting: Named<Arc<Pipeline>>,
    revision: Option<&str>,
) -> (State, String, String) {
    let around = Around {
        promoting: Some(promoting),
        verified: true,
    };
    says(&keeper(environment, &around), revision)
}

/// Missing is closed although `onError` is open: a Pipeline is no measurement.
#[rstest]
#[case::missing(
    "prod",
    Named::Missing,
    "PipelineMissing: there is no Pipeline flux-system/app"
)]
#[case::elsewhere(
    "prod",
    Named::Forbidden,
    "CrossNamespaceRef: the Pipeline flux-system/app is in another namespace, which --no-cross-namespace-refs or --watch-all-namespaces=false forbids"
)]
#[case::unreadable(
    "prod",
    Named::Unreadable("odd".into()),
    "EvidenceBroken: the Pipeline flux-system/app cannot be read: odd"
)]
#[case::no_environment(
    "production",
    pipeline(&["6.1.6"]),
    "EnvironmentMissing: the Pipeline flux-system/app has no environment production"
)]
#[case::nothing(
    "prod",
    pipeline(&[]),
    "NothingAdmitted: the Pipeline flux-system/app has admitted nothing to prod"
)]
#[case::nothing_that_is_a_revision(
    "prod",
    pipeline(&["main@sha1:4f2a"]),
    "NothingAdmitted: the Pipeline flux-system/app has admitted nothing to prod"
)]
#[case::the_first(
    "dev",
    pipeline(&[]),
    "NothingAdmitted: the Pipeline flux-system/app has admitted nothing to dev, which is its first environment: nothing is promoted there"
)]
#[case::by_people(
    "dr",
    pipeline(&[]),
    "NothingAdmitted: the Pipeline flux-system/app has admitted nothing to dr, which has no promotion; write one with strategy: {admission: {}}"
)]
#[case::otherwise(
    "eu",
    pipeline(&[]),
    "NothingAdmitted: the Pipeline flux-system/app has admitted nothing to eu, to which it promotes by notification; write strategy: {admission: {}} instead"
)]
#[case::another(
    "prod",
    pipeline(&["6.1.6", "6.1.5"]),
    "NotAdmitted: the Pipeline flux-system/app has not admitted 6.1.7 to prod, but 6.1.6"
)]
fn what_was_not_admitted_is_held_back_and_says_why(
    #[case] environment: &str,
    #[case] promoting: Named<Arc<Pipeline>>,
    #[case] expected: &str,
) {
    let (state, reason, message) = ask(environment, promoting, Some("6.1.7"));
    assert_eq!(state, State::Closed);
    assert_eq!(format!("{reason}: {message}"), expected);
}

/// What was admitted before may go back.
#[rstest]
#[case::newest("6.1.6")]
#[case::before("6.1.5")]
#[case::with_build_metadata("6.1.6+4f2a")]
fn what_was_admitted_may_go(#[case] revision: &str) {
    let (state, reason, message) = ask("prod", pipeline(&["6.1.6", "6.1.5"]), Some(revision));
    assert_eq!((state, reason.as_str()), (State::Open, "Admitted"));
    let expected = format!("the Pipeline flux-system/app has admitted {revision} to prod");
    assert_eq!(message, expected);
}

#[test]
fn a_commit_may_go_by_any_name() {
    let named = format!("main@sha1:{COMMIT}");
    let (state, ..) = ask("prod", pipeline(&[&named]), Some(COMMIT));
    assert_eq!(state, State::Open);
    let (state, ..) = ask("prod", pipeline(&["main"]), Some(&named));
    assert_eq!(state, State::Closed);
}

#[test]
fn without_a_revision_it_depends() {
    let (state, reason, message) = ask("prod", pipeline(&["6.1.6", "6.1.5"]), None);
    assert_eq!(
        (state, reason.as_str()),
        (State::Conditional, "DependsOnRevision")
    );
    let expected =
        "it depends on the revision: the Pipeline flux-system/app has admitted 6.1.6 to prod";
    assert_eq!(message, expected);
}

#[test]
fn a_status_that_nobody_verifies_admits_nothing() {
    let around = Around {
        promoting: Some(pipeline(&["6.1.6"])),
        verified: false,
    };
    let (state, reason, _) = says(&keeper("prod", &around), Some("6.1.6"));
    assert_eq!(
        (state, reason.as_str()),
        (State::Closed, "UnverifiedIdentity")
    );
}

/// Where nobody has looked, the status counts, for questions about no particular revision and for its
/// own generation alone.
#[test]
fn what_nobody_has_looked_at_is_as_reported() {
    let around = Around {
        promoting: None,
        verified: true,
    };
    let object = gatekeeper("prod");
    let with = |generation: i64| {
        let mut object = Gatekeeper::clone(&object);
        let status = serde_json::json!({
            "observedGeneration": generation, "state": "Conditional", "reason": "DependsOnRevision",
            "message": "as it was",
        });
        object.status = Some(serde_json::from_value(status).unwrap());
        let known = evidence(&object, Evidence::default(), &around);
        Keeper::new(Arc::new(object), known, NOW.parse().unwrap())
    };
    assert_eq!(says(&with(3), None).0, State::Conditional);
    let (state, reason, message) = says(&with(3), Some("6.1.6"));
    assert_eq!((state, reason.as_str()), (State::Closed, "NotObserved"));
    assert_eq!(
        message,
        "the Pipeline flux-system/app has not been looked at yet"
    );
    assert_eq!(says(&with(2), None).1, "NotObserved");
}

/// An admission does not depend on the time.
#[test]
fn a_clock_that_is_wrong_changes_nothing() {
    let around = Around {
        promoting: Some(pipeline(&["6.1.6"])),
        verified: true,
    };
    let revision = Revision::parse("6.1.6").unwrap();
    let now = Now {
        trust: Trust::Lost(jiff::SignedDuration::from_hours(1)),
        ..Now::given(NOW.parse().unwrap())
    };
    let verdict = keeper("prod", &around).verdict(Question::new(now, Some(&revision)));
    assert_eq!((verdict.state, verdict.valid_until), (State::Open, None));
}

#[test]
fn a_status_without_news_makes_the_same_evidence() {
    let of = |admitted: &[&str]| {
        let around = Around {
            promoting: Some(pipeline(admitted)),
            verified: true,
        };
        evidence(&gatekeeper("prod"), Evidence::default(), &around)
    };
    assert_eq!(of(&["6.1.6"]), of(&["6.1.6"]));
    assert_ne!(of(&["6.1.6"]), of(&["6.1.7", "6.1.6"]));
}

#[test]
fn empty_names_are_refused() {
    let rule: PipelineRule = serde_saphyr::from_str("{name: '', environment: ''}").unwrap();
    let refused = KindSpec::check(&rule).unwrap_err().to_string();
    for field in ["spec.pipeline.name", "spec.pipeline.environment"] {
        assert!(refused.contains(field), "{refused}");
    }
}
