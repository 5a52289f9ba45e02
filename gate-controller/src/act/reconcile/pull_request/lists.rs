//! The lists of open pull requests: one a minute for each repository and branch, which all PullRequests of
//! it use.
//!
//! What comes in: which list, the instant, and how to get it. What goes out: one pull request of it, if it
//! is open. Of several who need a list at once, one gets it, and the others wait for that.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use sluice_core::delivery::pull_request::Pull;
use sluice_crds::PullRequest;

use crate::act::forges::Located;

/// For how long a list is used: less than the minute between two looks at a pull request.
const FRESH: SignedDuration = SignedDuration::from_secs(50);
/// After so long a list is dropped that nobody has got again.
const KEPT: SignedDuration = SignedDuration::from_mins(10);

/// How often lists are got anew because something has changed, in the long run and at once. Forges count them.
const ANEW: SignedDuration = SignedDuration::from_secs(30);
const AT_ONCE: i32 = 4;

/// The lists.
#[derive(Default)]
pub struct Lists {
    all: Mutex<HashMap<Key, Arc<tokio::sync::Mutex<Option<Listed>>>>>,
    /// Until when each repository has had its turns to be listed anew.
    anew: Mutex<HashMap<Located, Timestamp>>,
}

/// Which list: of the same address by the same Secret, so that nobody sees by it what another one may see.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    at: Located,
    base: String,
}

/// An open pull request in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) pull: Pull,
    pub(crate) head: String,
}

struct Listed {
    at: Timestamp,
    open: HashMap<u64, Open>,
}

impl Key {
    pub(crate) fn of(object: &PullRequest, at: &Located) -> Self {
        Self {
            at: at.clone(),
            base: object.spec.target_branch.clone(),
        }
    }
}

impl Lists {
    /// A pull request, as a list has it that is fresh: the known one, or what `list` gets.
    ///
    /// # Errors
    /// Those of `list`.
    pub(crate) async fn find<E>(
        &self,
        key: &Key,
        now: Timestamp,
        number: u64,
        list: impl Future<Output = Result<HashMap<u64, Open>, E>>,
    ) -> Result<Option<Open>, E> {
        let place = self.place(key, now);
        let mut known = place.lock().await;
        let fresh = known
            .take()
            .filter(|listed| is_within(listed.at, FRESH, now));
        let listed = match fresh {
            Some(listed) => listed,
            None => Listed {
                at: now,
                open: list.await?,
            },
        };
        let found = listed.open.get(&number).cloned();
        *known = Some(listed);
        Ok(found)
    }

    /// The same without getting anything. None: no list is fresh, or it is not in it.
    pub(crate) fn known(&self, key: &Key, now: Timestamp, number: u64) -> Option<Open> {
        let place = self.place(key, now);
        let known = place.try_lock().ok()?;
        let listed = known.as_ref()?;
        let is_fresh = is_within(listed.at, FRESH, now);
        listed.open.get(&number).filter(|_| is_fresh).cloned()
    }

    /// Something has changed in a repository: who needs a list of it from now on gets another one. Returns whether
    /// that is so: anyone who changes very much has others wait for the usual time.
    pub(crate) fn outdate(&self, at: &Located, now: Timestamp) -> bool {
        let has_turn = self.take_turn(at, now);
        if has_turn {
            self.all.lock().retain(|key, _| key.at != *at);
        }
        has_turn
    }

    fn take_turn(&self, at: &Located, now: Timestamp) -> bool {
        let later = |at: Timestamp, turns| {
            let wait = ANEW.saturating_mul(turns);
            at.saturating_add(wait).unwrap_or(at)
        };
        let mut anew = self.anew.lock();
        // Also after the clock was set back.
        anew.retain(|_, until| (now..=later(now, AT_ONCE)).contains(until));
        let until = anew.get(at).copied().unwrap_or(now);
        let has_turn = until <= later(now, AT_ONCE - 1);
        if has_turn {
            anew.insert(at.clone(), later(until, 1));
        }
        has_turn
    }

    fn place(&self, key: &Key, now: Timestamp) -> Arc<tokio::sync::Mutex<Option<Listed>>> {
        let mut all = self.all.lock();
        if !all.contains_key(key) {
            all.retain(|_, place| match place.try_lock() {
                Ok(known) => (known.as_ref()).is_some_and(|it| is_within(it.at, KEPT, now)),
                Err(_) => true,
            });
        }
        Arc::clone(all.entry(key.clone()).or_default())
    }
}

/// Whether an instant is at most so long ago, and not to come: the clock may have been set back.
fn is_within(at: Timestamp, long: SignedDuration, now: Timestamp) -> bool {
    let ago = now.duration_since(at);
    !ago.is_negative() && ago < long
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use sluice_crds::pipeline::ForgeType;

    use super::*;

    fn key(base: &str) -> Key {
        let url = "https://git.example.com/a/b";
        Key {
            at: Located::at("apps", ForgeType::Gitea, url, "token"),
            base: base.to_owned(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000 + second).unwrap()
    }

    async fn find(lists: &Lists, base: &str, second: i64, head: &str) -> Option<Open> {
        let open = Open {
            pull: Pull::default(),
            head: head.to_owned(),
        };
        let list = async { Ok::<_, Infallible>(HashMap::from([(7, open)])) };
        lists.find(&key(base), at(second), 7, list).await.unwrap()
    }

    #[tokio::test]
    async fn a_list_is_got_once_a_minute_for_each_branch() {
        let lists = Lists::default();
        let head = async |base, second, new| find(&lists, base, second, new).await.unwrap().head;
        assert_eq!(lists.known(&key("main"), at(0), 7), None);
        assert_eq!(head("main", 0, "one").await, "one");
        assert_eq!(head("main", 49, "two").await, "one");
        assert_eq!(lists.known(&key("main"), at(49), 7).unwrap().head, "one");
        assert_eq!(lists.known(&key("main"), at(49), 8), None);
        assert_eq!(lists.known(&key("main"), at(50), 7), None);
        assert_eq!(head("main", 50, "three").await, "three");
        assert_eq!(head("env/prod", 50, "four").await, "four");
        // The clock was set back.
        assert_eq!(head("main", 0, "five").await, "five");
        // What nobody asks for is dropped.
        assert_eq!(head("other", 700, "six").await, "six");
        assert_eq!(lists.all.lock().len(), 1);
    }

    #[tokio::test]
    async fn a_list_of_one_secret_is_seen_by_no_other() {
        let lists = Lists::default();
        find(&lists, "main", 0, "one").await.unwrap();
        let url = "https://git.example.com/a/b";
        let others = [
            Located::at("apps", ForgeType::Gitea, url, "another"),
            Located::at("other", ForgeType::Gitea, url, "token"),
            Located::at("apps", ForgeType::GitHub, url, "token"),
            Located::at(
                "apps",
                ForgeType::Gitea,
                "https://git.example.com/a/c",
                "token",
            ),
        ];
        for at in others {
            let base = "main".to_owned();
            assert_eq!(
                lists.known(&Key { at, base }, Timestamp::from_second(1_001).unwrap(), 7),
                None
            );
        }
        assert!(
            lists
                .known(&key("main"), Timestamp::from_second(1_001).unwrap(), 7)
                .is_some()
        );
    }

    #[tokio::test]
    async fn a_list_of_before_a_change_is_used_no_more() {
        let lists = Lists::default();
        let head = async |second, new| find(&lists, "main", second, new).await.unwrap().head;
        assert_eq!(head(0, "one").await, "one");
        let url = "https://git.example.com/a/other";
        let other = Located::at("apps", ForgeType::Gitea, url, "token");
        assert!(lists.outdate(&other, at(1)));
        assert_eq!(head(1, "two").await, "one");
        assert!(lists.outdate(&key("main").at, at(1)));
        assert_eq!(lists.known(&key("main"), at(1), 7), None);
        assert_eq!(head(1, "two").await, "two");
        assert_eq!(head(2, "three").await, "two");
    }

    /// Anyone who changes something all the time uses up nobody's limit at the forge by that.
    #[tokio::test]
    async fn lists_are_got_anew_a_few_times_at_once_and_then_twice_a_minute() {
        let lists = Lists::default();
        let all = 0..600;
        let anew = all.filter(|second| lists.outdate(&key("main").at, at(*second)));
        let anew: Vec<_> = anew.collect();
        assert_eq!(anew[..6], [0, 1, 2, 3, 30, 60]);
        assert_eq!(anew.len(), 4 + 19);
        // A list that is not dropped is used.
        find(&lists, "main", 599, "one").await.unwrap();
        assert!(!lists.outdate(&key("main").at, at(599)));
        assert_eq!(find(&lists, "main", 599, "two").await.unwrap().head, "one");
        // Another repository has its own, and after a while there are as many again.
        let url = "https://git.example.com/a/other";
        let other = Located::at("apps", ForgeType::Gitea, url, "token");
        assert!(lists.outdate(&other, at(599)));
        for second in [720, 720, 720, 720] {
            assert!(lists.outdate(&key("main").at, at(second)));
        }
        assert!(!lists.outdate(&key("main").at, at(720)));
        // The clock was set back.
        assert!(lists.outdate(&key("main").at, at(0)));
        assert_eq!(lists.anew.lock().len(), 1);
    }

    #[tokio::test]
    async fn a_list_that_cannot_be_got_is_no_list() {
        let lists = Lists::default();
        let failing = async { Err::<HashMap<u64, Open>, _>("dead") };
        let found = lists.find(&key("main"), at(0), 7, failing).await;
        assert_eq!(found, Err("dead"));
        assert_eq!(find(&lists, "main", 1, "one").await.unwrap().head, "one");
    }
}
