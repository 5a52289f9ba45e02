//! Where a branch goes back to.

use anyhow::{Result, bail};
use sluice_crds::promotion_strategy::{EnvironmentStatus, Healthy, Tip};

use crate::arguments::Commit;

/// A dry commit, and what was made of it where the controller does not know that by itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) dry_sha: String,
    pub(super) hydrated_sha: Option<String>,
}

/// The commit that is meant; the newest healthy one that is neither there nor taken back, if none is.
///
/// # Errors
/// There is none; it is not known, with those that are.
pub(super) fn choose(
    status: &EnvironmentStatus,
    active: &Tip,
    to: Option<&Commit>,
    hydrated: Option<&Commit>,
) -> Result<Destination> {
    let branch = &status.branch;
    let is_there = |sha: &str| active.dry_sha.as_deref() == Some(sha);
    let is_held = |sha: &str| status.held.iter().any(|it| it.dry_sha == sha);
    let healthy = status.last_healthy.iter();
    let mut ways = healthy.filter(|it| !is_there(&it.dry_sha) && !is_held(&it.dry_sha));
    let Some(to) = to else {
        let Some(newest) = ways.next() else {
            bail!(
                "it is not known where {branch} could go back to: its checks have passed with {}; name a dry \
                 commit with --to, and with --hydrated the commit of the branch that was made from it",
                known(&status.last_healthy)
            )
        };
        return Ok(Destination {
            dry_sha: newest.dry_sha.clone(),
            hydrated_sha: None,
        });
    };
    let among = status.last_healthy.iter().map(|it| it.dry_sha.as_str());
    let found = to.among(among)?;
    if let Some(sha) = found.or(to.whole()).filter(|sha| is_there(sha)) {
        bail!("--to: {branch} has {} already", Commit::short(sha));
    }
    match (found, to.whole(), hydrated.map(Commit::whole)) {
        (Some(sha), _, None) => Ok(Destination {
            dry_sha: sha.to_owned(),
            hydrated_sha: None,
        }),
        (_, _, Some(None)) => bail!("--hydrated: write all 40 digits"),
        (found, whole, Some(Some(hydrated))) => match found.or(whole) {
            Some(sha) => Ok(Destination {
                dry_sha: sha.to_owned(),
                hydrated_sha: Some(hydrated.to_owned()),
            }),
            None => bail!("--to: write all 40 digits of {to}, which is not known"),
        },
        (None, _, None) => bail!(
            "--to: it is not known that the checks of {branch} have passed with {to}; they have with {}; for \
             another one, also name the commit of the branch that was made from it with --hydrated",
            known(&status.last_healthy)
        ),
    }
}

/// Those that are known.
fn known(healthy: &[Healthy]) -> String {
    let all = healthy.iter().map(|it| Commit::short(&it.dry_sha));
    let all: Vec<&str> = all.collect();
    match all.is_empty() {
        true => "none that is known".to_owned(),
        false => all.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::arguments::commit;

    const NOW: &str = "2026-11-20T19:00:00Z";

    fn sha(digit: char) -> String {
        digit.to_string().repeat(40)
    }

    /// The branch has `active`; its checks have passed with all of `healthy`, the newest first.
    fn status(active: char, healthy: &str, held: &str) -> EnvironmentStatus {
        let healthy = healthy
            .chars()
            .map(|digit| json!({"drySHA": sha(digit), "hydratedSHA": sha('0'), "time": NOW}));
        let held = held.chars();
        let held = held.map(|digit| json!({"drySHA": sha(digit), "revertCommit": "a"}));
        serde_json::from_value(json!({
            "branch": "env/prod", "state": "Failed",
            "active": {"drySHA": sha(active), "hydratedSHA": sha('1'), "tree": sha('2'), "since": NOW},
            "lastHealthyDrySHAs": healthy.collect::<Vec<_>>(), "held": held.collect::<Vec<_>>(),
        }))
        .unwrap()
    }

    fn chosen(status: &EnvironmentStatus, to: Option<&str>, hydrated: Option<&str>) -> String {
        let read = |text: Option<&str>| text.map(|text| commit(text).unwrap());
        let (to, hydrated) = (read(to), read(hydrated));
        let active = status.active.as_ref().unwrap();
        match choose(status, active, to.as_ref(), hydrated.as_ref()) {
            Ok(found) => format!(
                "{}{}",
                &found.dry_sha[..1],
                found
                    .hydrated_sha
                    .map(|it| it[..1].to_owned())
                    .unwrap_or_default()
            ),
            Err(error) => error.to_string(),
        }
    }

    #[rstest]
    #[case::it_is_not_healthy('d', "cba", "", "c")]
    #[case::it_is('c', "cba", "", "b")]
    #[case::it_was_brought_back('b', "bca", "c", "a")]
    fn the_newest_healthy_one_that_is_neither_there_nor_taken_back(
        #[case] active: char,
        #[case] healthy: &str,
        #[case] held: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(chosen(&status(active, healthy, held), None, None), expected);
    }

    #[test]
    fn one_that_is_named_has_to_be_known_or_to_come_with_its_commit() {
        let status = status('d', "cba", "");
        assert_eq!(chosen(&status, Some("bbbbbbbbbbbb"), None), "b");
        let unknown = chosen(&status, Some("eeeeeeeeeeee"), None);
        assert!(
            unknown.contains("they have with cccccccccccc, bbbbbbbbbbbb, aaaaaaaaaaaa"),
            "{unknown}"
        );
        let (e, f) = (sha('e'), sha('f'));
        assert_eq!(chosen(&status, Some(&e), Some(&f)), "ef");
        assert!(chosen(&status, Some(&e), None).contains("--hydrated"));
        assert!(chosen(&status, Some(&e), Some("fffffff")).contains("all 40 digits"));
        assert!(chosen(&status, Some("eeeeeee"), Some(&f)).contains("all 40 digits"));
        assert!(chosen(&status, Some("ddddddd"), None).contains("it is not known"));
        assert!(chosen(&status, Some(&sha('d')), None).contains("has dddddddddddd already"));
    }

    #[test]
    fn where_nothing_is_known_it_says_so() {
        let text = chosen(&status('a', "a", ""), None, None);
        assert!(text.contains("have passed with aaaaaaaaaaaa"), "{text}");
        let text = chosen(&status('a', "", ""), None, None);
        assert!(text.contains("none that is known"), "{text}");
    }
}
