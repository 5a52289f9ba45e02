//! What tells one act from every other: keys and numbers of runs; and how long to wait.

use jiff::{SignedDuration, Timestamp};
use sluice_crds::PullRequestSpec;
use sluice_crds::pipeline::{PullRequestStrategy, StrategyKind};
use sluice_crds::pull_request::{Change, RepositoryKind};

use super::whose::Whose;
use crate::delivery::pull_request::Key;
use crate::revision::Revision;

/// After what was promoted has not arrived for so long, it is said to have no effect.
pub(super) const SETTLE: SignedDuration = SignedDuration::from_mins(30);
/// The first wait after a failure. It doubles each time.
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(10);
/// The longest wait after a failure.
const LONGEST_RETRY: SignedDuration = SignedDuration::from_mins(15);
/// The first wait before a notification is sent again that had no effect. It doubles each time.
const FIRST_REPEAT: SignedDuration = SignedDuration::from_mins(10);
/// The longest such wait.
const LONGEST_REPEAT: SignedDuration = SignedDuration::from_hours(6);

/// How a promotion is done, as far as another way is another act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::delivery) struct Way<'a> {
    strategy: &'a str,
    forge: &'a str,
    url: &'a str,
    secret: &'a str,
    base: &'a str,
    paths: &'a [String],
}

impl<'a> Way<'a> {
    pub(super) fn of(strategy: StrategyKind<'a>) -> Self {
        match strategy {
            StrategyKind::PullRequest(strategy) => Self::of_strategy(strategy),
            StrategyKind::Notification(_) | StrategyKind::Admission(_) => Self {
                strategy: strategy.as_str(),
                forge: "",
                url: "",
                secret: "",
                base: "",
                paths: &[],
            },
        }
    }

    /// Who merges it, and how, does not make it another one.
    pub(in crate::delivery) fn of_strategy(strategy: &'a PullRequestStrategy) -> Self {
        let PullRequestStrategy {
            type_,
            url,
            base_branch,
            secret_ref,
            paths,
            merge: _,
            method: _,
        } = strategy;
        Self {
            strategy: StrategyKind::PullRequest(strategy).as_str(),
            forge: type_.as_str(),
            url,
            secret: &secret_ref.name,
            base: base_branch,
            paths,
        }
    }

    /// None: no pipeline has made it.
    pub(in crate::delivery) fn of_pull_request(spec: &'a PullRequestSpec) -> Option<Self> {
        let Some(Change::Markers(markers)) = &spec.change else {
            return None;
        };
        match spec.repository.kind()? {
            RepositoryKind::Address { type_, url, secret } => Some(Self {
                strategy: "pull-request",
                forge: type_.as_str(),
                url,
                secret,
                base: &spec.target_branch,
                paths: &markers.paths,
            }),
            RepositoryKind::Access(_) => None,
        }
    }
}

/// The key of one promotion: the same act has the same key, also after a restart. Another run, another
/// strategy, repository, Secret or branch is another act, and so are other files.
pub(super) fn key(
    whose: Whose<'_>,
    environment: &str,
    run: i64,
    revision: &str,
    way: Way<'_>,
) -> String {
    let run = run.to_string();
    let Way {
        strategy,
        forge,
        url,
        secret,
        base,
        paths,
    } = way;
    let mut parts = vec![whose.namespace, whose.name, environment, &run, revision];
    parts.extend([strategy, forge, url, secret, base]);
    parts.extend(paths.iter().map(String::as_str));
    Key::of(&parts).to_string()
}

/// The number of a run that begins at `now`, in milliseconds since 1970, and more than `greatest`.
pub(super) fn next_run(now: Timestamp, greatest: Option<i64>) -> i64 {
    let after = greatest.map_or(0, |greatest| greatest.saturating_add(1));
    now.as_millisecond().max(after)
}

/// How long to wait after so many failures: 10 s, 20 s, up to 15 min.
pub(in crate::delivery) fn retry_after(attempts: u32) -> SignedDuration {
    doubled(FIRST_RETRY, attempts.saturating_sub(1), LONGEST_RETRY)
}

/// How long a notification may have no effect before it is sent again, after so many times that it was:
/// never before it is said to have none, later 40 min, up to 6 h.
pub(super) fn repeat_after(repeats: u32) -> SignedDuration {
    doubled(FIRST_REPEAT, repeats, LONGEST_REPEAT).max(SETTLE)
}

fn doubled(first: SignedDuration, times: u32, longest: SignedDuration) -> SignedDuration {
    let factor = 1i32.checked_shl(times.min(30)).unwrap_or(i32::MAX);
    first.checked_mul(factor).unwrap_or(longest).min(longest)
}

/// A revision, and the commits that the merges of its own pull requests have put onto it: an environment
/// that follows the branch that is merged into runs these, and nothing else has changed.
#[derive(Clone, Debug)]
pub(super) struct Lineage {
    root: Revision,
    merges: Vec<Revision>,
}

/// A merge of a pull request: the commit that it made, and the first parent of that.
#[derive(Clone, Debug)]
pub(super) struct Merge {
    pub(super) commit: Revision,
    pub(super) onto: Revision,
}

impl Lineage {
    /// The revision with all that the merges put onto it. A merge of which the first parent is neither the
    /// revision nor another such merge does not count: somebody else has pushed in between.
    pub(super) fn new(root: Revision, merges: &[Merge]) -> Self {
        let mut own = Self {
            root,
            merges: Vec::new(),
        };
        // Each round finds at least one more, or is the last.
        for _ in 0..merges.len() {
            let is_next = |it: &&Merge| own.has(&it.onto) && !own.has(&it.commit);
            match merges.iter().find(is_next) {
                Some(next) => own.merges.push(next.commit.clone()),
                None => break,
            }
        }
        own
    }

    /// Whether this is the revision, or one of those merges.
    pub(super) fn has(&self, revision: &Revision) -> bool {
        self.root.is(revision) || self.merges.iter().any(|merge| merge.is(revision))
    }
}

impl Merge {
    /// None: it is not known, or makes no sense.
    pub(super) fn read(commit: Option<&str>, onto: Option<&str>) -> Option<Self> {
        Some(Self {
            commit: Revision::parse(commit?).ok()?,
            onto: Revision::parse(onto?).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use sluice_crds::pipeline::{Admission, Notification};

    use super::*;

    const WHOSE: Whose<'_> = Whose {
        namespace: "apps",
        name: "podinfo",
    };

    fn revision(digit: char) -> Revision {
        Revision::parse(&digit.to_string().repeat(40)).unwrap()
    }

    #[test]
    fn every_part_of_an_act_is_in_its_key() {
        let (note, admission) = (Notification::default(), Admission::default());
        let note = Way::of(StrategyKind::Notification(&note));
        let admission = Way::of(StrategyKind::Admission(&admission));
        let paths = ["x".to_owned()];
        let other = Whose {
            namespace: "app",
            name: "spodinfo",
        };
        let keys = [
            key(WHOSE, "prod", 1, "6.1.0", note),
            key(other, "prod", 1, "6.1.0", note),
            key(WHOSE, "dev", 1, "6.1.0", note),
            key(WHOSE, "prod", 2, "6.1.0", note),
            key(WHOSE, "prod", 1, "6.1.1", note),
            key(WHOSE, "prod", 1, "6.1.0", admission),
            key(WHOSE, "prod", 1, "6.1.0", Way { url: "x", ..note }),
            key(WHOSE, "prod", 1, "6.1.0", Way { base: "x", ..note }),
            key(
                WHOSE,
                "prod",
                1,
                "6.1.0",
                Way {
                    secret: "x",
                    ..note
                },
            ),
            key(WHOSE, "prod", 1, "6.1.0", Way { forge: "x", ..note }),
            key(
                WHOSE,
                "prod",
                1,
                "6.1.0",
                Way {
                    paths: &paths,
                    ..note
                },
            ),
        ];
        for (place, one) in keys.iter().enumerate() {
            assert_eq!(one.len(), 12);
            assert!(!keys[..place].contains(one), "{place}: {keys:?}");
        }
        assert_eq!(keys[0], key(WHOSE, "prod", 1, "6.1.0", note));
    }

    #[test]
    fn a_run_is_later_than_every_run_before_it_also_where_the_clock_goes_back() {
        let now = Timestamp::from_millisecond(5_000).unwrap();
        assert_eq!(next_run(now, None), 5_000);
        assert_eq!(next_run(now, Some(4_000)), 5_000);
        assert_eq!(next_run(now, Some(5_000)), 5_001);
        assert_eq!(next_run(now, Some(9_000)), 9_001);
    }

    #[rstest]
    #[case(1, 10)]
    #[case(2, 20)]
    #[case(7, 640)]
    #[case(8, 900)]
    #[case(u32::MAX, 900)]
    fn failures_are_tried_again_ever_later(#[case] attempts: u32, #[case] seconds: i64) {
        assert_eq!(retry_after(attempts).as_secs(), seconds);
    }

    #[rstest]
    #[case(0, 30)]
    #[case(1, 30)]
    #[case(2, 40)]
    #[case(3, 80)]
    #[case(5, 320)]
    #[case(6, 360)]
    #[case(u32::MAX, 360)]
    fn what_has_no_effect_is_sent_again_ever_later(#[case] repeats: u32, #[case] minutes: i64) {
        assert_eq!(repeat_after(repeats).as_mins(), minutes);
    }

    #[test]
    fn own_merges_count_only_in_an_unbroken_row() {
        let merge = |commit, onto| Merge {
            commit: revision(commit),
            onto: revision(onto),
        };
        let merges = [merge('c', 'b'), merge('b', 'a'), merge('e', 'd')];
        let lineage = Lineage::new(revision('a'), &merges);
        let has = |digit| lineage.has(&revision(digit));
        assert!(has('a') && has('b') && has('c'));
        assert!(!has('d') && !has('e') && !has('f'));
    }
}
