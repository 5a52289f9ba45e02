//! What is found out about a commit by Flux and by the forge.

use rstest::rstest;

use super::*;
use crate::delivery::promotion_strategy::evidence::{ForgeState, ForgeStatus};

/// The second commit is in dev, which has this check and no other.
fn merged(check: &Value) -> Play {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    play.spec(|spec| {
        spec["activeCommitStatuses"] = json!([]);
        spec["environments"][0]["activeCommitStatuses"] = json!([check]);
        spec["environments"][1]["unchecked"] = json!(true);
    });
    play.hydrate("v2");
    play.settle();
    assert_eq!(play.merges.len(), 1);
    play
}

impl Play {
    /// Flux says this of a Kustomization. `HEAD` stands for what dev has, `OLD` for what it had.
    fn flux(&mut self, name: &str, status: &Value) {
        let head = self.repository.head("env/dev");
        let old = self.environment("env/dev").last_healthy[0]
            .hydrated_sha
            .clone();
        let mut object = json!({
            "metadata": {"name": name, "namespace": "apps", "generation": 2},
            "status": {"observedGeneration": 2},
        });
        let text = status
            .to_string()
            .replace("HEAD", &head)
            .replace("OLD", &old);
        let said: Value = serde_json::from_str(&text).unwrap();
        for (field, value) in said.as_object().unwrap() {
            match field.as_str() {
                "suspend" => object["spec"] = json!({"suspend": value}),
                "ready" => {
                    object["status"]["conditions"] = json!([{
                        "type": "Ready", "status": value, "reason": "Said", "message": "so it is",
                        "lastTransitionTime": "2026-11-23T11:00:00Z",
                    }]);
                }
                field => object["status"][field] = value.clone(),
            }
        }
        let found = Found::Here(Arc::new(serde_json::from_value(object).unwrap()));
        self.kustomizations
            .insert(("apps".to_owned(), name.to_owned()), found);
    }

    /// What test waits for. None: it got the commit.
    fn waits_for(&mut self) -> Option<(String, String)> {
        self.settle();
        let is_merged = self.merges.len() > 1;
        (!is_merged).then(|| {
            let test = self.environment("env/test");
            (test.reason.clone().unwrap(), test.message.clone().unwrap())
        })
    }
}

const PASSES: &str = "";

#[rstest]
#[case::ready(json!({"ready": "True", "lastAppliedRevision": "env/dev@sha1:HEAD"}), PASSES)]
#[case::as_older_ones_write_it(json!({"ready": "True", "lastAppliedRevision": "env/dev/HEAD"}), PASSES)]
#[case::from_an_artifact_of_it(
    json!({"ready": "True", "lastAppliedRevision": "v2@sha256:ab", "lastAppliedOriginRevision": "env/dev@sha1:HEAD"}),
    PASSES
)]
#[case::ready_with_the_old_one(
    json!({"ready": "True", "lastAppliedRevision": "env/dev@sha1:OLD"}), "CheckPending has applied env/dev@sha1:"
)]
#[case::tried_and_ready_with_the_old_one(
    json!({"ready": "True", "lastAppliedRevision": "OLD", "lastAttemptedRevision": "HEAD"}),
    "CheckPending is not ready yet"
)]
#[case::under_way(
    json!({"ready": "Unknown", "lastAppliedRevision": "OLD", "lastAttemptedRevision": "env/dev@sha1:HEAD"}),
    "CheckPending is not ready yet"
)]
#[case::failed(
    json!({"ready": "False", "lastAppliedRevision": "OLD", "lastAttemptedRevision": "env/dev@sha1:HEAD"}),
    "CheckFailed is not ready: so it is"
)]
#[case::failed_with_the_old_one(
    json!({"ready": "False", "lastAppliedRevision": "OLD", "lastAttemptedRevision": "OLD"}), "CheckPending has applied"
)]
#[case::suspended(json!({"ready": "True", "lastAppliedRevision": "HEAD", "suspend": true}), "CheckPending is suspended")]
#[case::not_looked_at(
    json!({"ready": "True", "lastAppliedRevision": "HEAD", "observedGeneration": 1}), "CheckPending was changed"
)]
#[case::new(json!({}), "CheckPending has applied nothing")]
fn a_kustomization_proves_the_commit_that_it_has(#[case] says: Value, #[case] expected: &str) {
    let named = json!({"kustomizations": [{"name": "one"}, {"name": "shop"}]});
    let mut play = merged(&json!({"key": "flux", "flux": named}));
    play.flux(
        "one",
        &json!({"ready": "True", "lastAppliedRevision": "HEAD"}),
    );
    play.flux("shop", &says);
    let waits = play.waits_for();
    let (reason, words) = expected.split_once(' ').unzip();
    assert_eq!(waits.as_ref().map(|it| it.0.as_str()), reason);
    if let (Some((_, message)), Some(words)) = (waits, words) {
        let found = format!("Kustomization apps/shop {words}");
        assert!(message.contains(&found), "{message}");
    }
}

#[rstest]
#[case::missing(Found::Missing, "is not there")]
#[case::not_installed(Found::NotInstalled, "is of a kind that is not installed")]
#[case::unreadable(Found::Unreadable("forbidden".into()), "cannot be read: forbidden")]
fn a_kustomization_that_is_not_seen_proves_nothing(#[case] found: Found, #[case] says: &str) {
    let named = json!({"kustomizations": [{"name": "shop", "namespace": "flux"}]});
    let mut play = merged(&json!({"key": "flux", "flux": named}));
    let key = ("flux".to_owned(), "shop".to_owned());
    play.kustomizations.insert(key, found);
    let (reason, message) = play.waits_for().unwrap();
    assert_eq!(reason, "CheckPending");
    let expected = format!("Kustomization flux/shop {says}");
    assert!(message.ends_with(&expected), "{message}");
}

#[rstest]
#[case::success("ci", ForgeState::Success, None)]
#[case::pending("ci", ForgeState::Pending, Some("CheckPending"))]
#[case::failure("ci", ForgeState::Failure, Some("CheckFailed"))]
#[case::another_one("CI", ForgeState::Success, Some("CheckMissing"))]
fn a_status_of_the_forge_proves_the_commit_that_it_is_of(
    #[case] context: &str,
    #[case] state: ForgeState,
    #[case] reason: Option<&str>,
) {
    let mut play = merged(&json!({"key": "ci", "forge": "ci"}));
    let said = |context: &str, state| ForgeStatus {
        context: context.to_owned(),
        state,
        description: "so it is".to_owned(),
    };
    // Of what was proposed.
    let other = play.repository.head("env/dev-next");
    play.repository
        .tell(&other, said("ci", ForgeState::Success));
    let head = play.repository.head("env/dev");
    play.repository.tell(&head, said(context, state));
    let waits = play.waits_for();
    assert_eq!(waits.map(|it| it.0).as_deref(), reason);
}
