//! What is listed of a repository, whatever somebody has pushed to it.

use sluice_core::delivery::promotion_strategy::evidence::{Heads, NOTES};
use sluice_core::delivery::pull_request::Word;
use sluice_egress::EgressError;
use sluice_forges::Trouble;
use tokio::time::Instant;

use super::reading::{Played, sha};
use super::*;
use crate::act::reconcile::git_repository_access::listing::list;
use crate::observe::repositories::Listed;

fn reference(name: &str) -> (String, String) {
    (name.to_owned(), sha('a'))
}

fn full(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

fn set<'n>(names: impl IntoIterator<Item = &'n str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(40)
}

/// The branches of which something is known, and those of which nothing is.
fn says(listed: &Listed) -> [String; 2] {
    let Listed {
        heads, unlisted, ..
    } = listed;
    let join = |names: Vec<&str>| names.join(" ");
    [
        join(heads.branches.keys().map(String::as_str).collect()),
        join(unlisted.keys().map(String::as_str).collect()),
    ]
}

#[tokio::test]
async fn branches_and_notes_are_listed_by_one_request() {
    let reference = |name: &str, letter| (name.to_owned(), sha(letter));
    let played = Played {
        references: vec![
            reference("refs/heads/env/prod", 'a'),
            reference("refs/heads/env/prod-next", 'b'),
            reference("refs/heads/env/prod-next-2", 'c'),
            reference(NOTES, 'd'),
            reference("refs/notes/hydrator.metadata-2", 'e'),
        ],
        ..Played::default()
    };
    let names = set(["env/prod", "env/prod-next", "env/gone"]);
    let listed = list(&played, &names, &BTreeSet::new(), soon()).await;
    let [prod, next] = ["env/prod", "env/prod-next"].map(str::to_owned);
    let expected = Heads {
        branches: [(prod, sha('a')), (next, sha('b'))].into(),
        notes: Sight::Known(sha('d')),
    };
    assert_eq!(listed.unwrap(), expected.into());
    let asked = "refs/heads/env/gone refs/heads/env/prod refs/heads/env/prod-next refs/notes/hydrator.metadata";
    assert_eq!(played.asked(), [asked]);
}

/// However much begins with a name, it comes before that; and others are listed by the next requests.
#[tokio::test]
async fn a_list_that_is_cut_keeps_what_it_has_brought() {
    let names = set(["env/dev", "env/prod", "r", "s", "t"]);
    let list = async |wide: &[&str], is_mixed| {
        let there = ["refs/heads/env/prod", "refs/heads/r", "refs/heads/t", NOTES];
        let played = Played {
            references: there.map(reference).into(),
            wide: set(wide.iter().copied()),
            is_mixed,
            ..Played::default()
        };
        let listed = list(&played, &names, &BTreeSet::new(), soon()).await;
        (listed.unwrap(), played.asked().len())
    };
    let all = ["env/prod r t", ""].map(str::to_owned);
    let (listed, asked) = list(&["refs/heads/r"], false).await;
    assert_eq!((says(&listed), asked), (all.clone(), 3));
    assert_eq!(listed.heads.notes, Sight::Known(sha('a')));
    assert_eq!(listed.wide, set(["refs/heads/r"]));
    let (listed, asked) = list(&[NOTES], false).await;
    assert_eq!((says(&listed), asked), (all, 1));
    assert_eq!(listed.heads.notes, Sight::Known(sha('a')));
    // Of a server that keeps no order, those alone are not known that it says too much of.
    let (listed, asked) = list(&["refs/heads/r", NOTES], true).await;
    assert_eq!(says(&listed), ["env/prod t", "r"].map(str::to_owned));
    let Sight::Failed(why) = &listed.heads.notes else {
        panic!("{listed:?}");
    };
    assert!(why.contains(NOTES), "{why}");
    assert!((5..=11).contains(&asked), "{asked}");
}

/// A namespace pushes so much below half of all names that there is never the time to list them all.
#[tokio::test(start_paused = true)]
async fn anyone_who_pushes_very_much_stops_nobody_else() {
    let evil: Vec<_> = (0..40).map(|n| format!("evil/{n:02}")).collect();
    for own in ["shop", "aaa"] {
        let own: Vec<_> = (0..40).map(|n| format!("{own}/{n:02}")).collect();
        let names: BTreeSet<_> = own.iter().chain(&evil).cloned().collect();
        let references = names.iter().map(|it| reference(&full(it)));
        let played = Played {
            references: references.chain([reference(NOTES)]).collect(),
            wide: evil.iter().map(|it| full(it)).collect(),
            takes: Duration::from_secs(2),
            ..Played::default()
        };
        let mut wide = BTreeSet::new();
        for round in 0..6 {
            let are_found = wide.len() == evil.len();
            let begun = Instant::now();
            let listed = list(&played, &names, &wide, soon()).await.unwrap();
            let took = begun.elapsed().as_secs();
            assert!(took <= if are_found { 14 } else { 42 }, "{round}: {took}");
            let is_known = |name: &String| listed.heads.branches.contains_key(name);
            assert!(own.iter().all(is_known), "{round}: {:?}", says(&listed));
            assert_eq!(listed.heads.notes, Sight::Known(sha('a')));
            let late = evil.iter().filter(|name| !is_known(name)).count();
            assert_eq!(listed.unlisted.len(), late);
            assert!(late > 10 && listed.unlisted.values().all(|why| why.contains("no time")));
            let asked = played.asked();
            assert!(!are_found || !asked[0].contains("evil"), "{asked:?}");
            wide = listed.wide;
        }
        // In the first ones it is found out what is too much.
        assert_eq!(wide.len(), evil.len());
    }
}

/// What takes so long may be what somebody has pushed.
#[tokio::test]
async fn a_failure_after_the_first_reply_is_of_what_was_asked_then() {
    let names = set(["r", "s", "t"]);
    let list = async |trouble: Trouble, wide: &[&str]| {
        let played = Played {
            references: ["refs/heads/s", "refs/heads/t"].map(reference).into(),
            failing: Some((full("r"), trouble)),
            ..Played::default()
        };
        let wide = set(wide.iter().copied());
        let listed = list(&played, &names, &wide, soon()).await;
        listed.map_err(|failure| failure.at(Timestamp::UNIX_EPOCH).word)
    };
    let timed_out = || Trouble::Unanswered(EgressError::TimedOut(Duration::from_secs(10)));
    for trouble in [timed_out(), Trouble::Failed(504)] {
        let listed = list(trouble, &["refs/heads/r"]).await.unwrap();
        assert_eq!(says(&listed), ["s t", "r"].map(str::to_owned));
        assert_eq!(listed.heads.notes, Sight::Absent);
        assert_eq!(listed.wide, set(["refs/heads/r"]));
    }
    // A forge that says nothing at all is known as such.
    assert_eq!(list(timed_out(), &[]).await, Err(Word::Unanswered));
    let unauthorized = list(Trouble::Unauthorized, &["refs/heads/r"]).await;
    assert_eq!(unauthorized, Err(Word::Unauthorized));
}
