//! What a repository is asked, and what is made of its answers.

use std::collections::HashMap;
use std::sync::Mutex;

use sluice_core::delivery::promotion_strategy::evidence::{Answer, Commit, ForgeStatus, METADATA};
use sluice_core::delivery::pull_request::Word;
use sluice_egress::EgressError;
use sluice_forges::{FilePath, ForgeError, Missing, Sha, Trouble, Wait};
use tokio::time::{Instant, advance};

use super::*;
use crate::act::reconcile::git_repository_access::reading::{Found, Repository, answer};
use crate::observe::repositories::{LONGEST_TEXT, Said};

/// A repository that is played, and what it was asked.
#[derive(Default)]
pub(super) struct Played {
    pub(super) references: Vec<(String, String)>,
    /// What begins with these names is too much to be listed: a list ends there.
    pub(super) wide: BTreeSet<String>,
    /// Whether it keeps no order.
    pub(super) is_mixed: bool,
    /// What lists fail with that have these names.
    pub(super) failing: Option<(String, Trouble)>,
    /// How long a list takes.
    pub(super) takes: Duration,
    pub(super) files: HashMap<(String, String), Result<Vec<u8>, Trouble>>,
    pub(super) contains: Option<Trouble>,
    pub(super) commit: Option<Result<String, Trouble>>,
    pub(super) statuses: Option<Trouble>,
    pub(super) asked: Mutex<Vec<String>>,
}

impl Played {
    fn with(mut self, commit: char, path: &str, bytes: Result<&[u8], Trouble>) -> Self {
        let place = (sha(commit), path.to_owned());
        self.files.insert(place, bytes.map(<[u8]>::to_vec));
        self
    }

    fn note(&self, asked: String) {
        self.asked.lock().unwrap().push(asked);
    }

    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    async fn answers(&self, questions: Vec<Question>) -> Vec<Said> {
        let clock = SetClock::new(NOON.parse().unwrap());
        let until = Instant::now() + Duration::from_secs(30);
        let said = answer(self, questions, &clock, until).await;
        said.into_iter().map(|(_, said)| said).collect()
    }

    async fn says(&self, question: Question) -> Said {
        self.answers(vec![question]).await.remove(0)
    }
}

pub(super) fn sha(letter: char) -> String {
    letter.to_string().repeat(40)
}

fn error(trouble: Trouble) -> ForgeError {
    ForgeError {
        host: "git.example.com".to_owned(),
        operation: "read",
        trouble,
    }
}

impl Repository for Played {
    async fn references(&self, names: &[String]) -> Result<Found, ForgeError> {
        self.note(names.join(" "));
        if !self.takes.is_zero() {
            advance(self.takes).await;
        }
        if let Some((name, trouble)) = &self.failing
            && names.contains(name)
        {
            return Err(error(trouble.clone()));
        }
        let begins = |name: &String| names.iter().any(|it| name.starts_with(it));
        let found = self.references.iter().filter(|(name, _)| begins(name));
        let cut = names.iter().filter(|name| self.wide.contains(*name)).min();
        let Some(cut) = cut else {
            return Ok(Found {
                names: found.cloned().collect(),
                ..Found::default()
            });
        };
        let last = format!("{cut}~");
        let found = found.filter(|(name, _)| *name < last && !self.is_mixed);
        let left = names.iter().filter(|name| **name > last || self.is_mixed);
        Ok(Found {
            names: found.cloned().collect(),
            left: left.cloned().collect(),
            wide: vec![cut.clone()],
        })
    }

    async fn commit(&self, commit: &Sha) -> Result<Option<Commit>, ForgeError> {
        self.note(format!("commit {commit}"));
        let message = self.commit.clone().unwrap_or(Ok(String::new()));
        let mut message = message.map_err(error)?;
        // As of one that was cut.
        message.reserve(1 << 20);
        Ok(Some(Commit {
            tree: sha('7'),
            parents: Vec::new(),
            at: Timestamp::UNIX_EPOCH,
            message,
        }))
    }

    async fn file(&self, commit: &Sha, path: &FilePath) -> Result<Option<Vec<u8>>, ForgeError> {
        let path = path.as_str().to_owned();
        self.note(path.clone());
        match self.files.get(&(commit.to_string(), path)) {
            Some(found) => found.clone().map(Some).map_err(error),
            None => Ok(None),
        }
    }

    async fn contains(&self, base: &Sha, commit: &Sha) -> Result<bool, ForgeError> {
        self.note(format!("{base} contains {commit}"));
        match &self.contains {
            Some(trouble) => Err(error(trouble.clone())),
            None => Ok(true),
        }
    }

    async fn statuses(&self, _: &Sha) -> Result<Vec<ForgeStatus>, ForgeError> {
        match &self.statuses {
            Some(trouble) => Err(error(trouble.clone())),
            None => Ok(Vec::new()),
        }
    }
}

fn contains() -> Question {
    let (base, commit) = (sha('b'), sha('c'));
    Question::Contains { base, commit }
}

#[tokio::test]
async fn metadata_is_a_short_text() {
    let long = vec![b'x'; LONGEST_TEXT + 1];
    let played = Played::default()
        .with('a', METADATA, Ok(b"{}"))
        .with('b', METADATA, Ok(&long))
        .with('c', METADATA, Ok(&long[1..]))
        .with('d', METADATA, Ok(b"\xff"))
        .with('e', METADATA, Err(Trouble::NotAFile))
        .with(
            'f',
            METADATA,
            Err(Trouble::Unanswered(EgressError::TooLong(1))),
        );
    let says = async |letter| played.says(Question::Metadata(sha(letter))).await;
    let text = |text: &str| Said::Answer(Some(Answer::Text(text.into())));
    let unusable = |why: &str| Said::Unusable(why.to_owned());
    let too_long = unusable("hydrator.metadata is longer than 64 KiB");
    assert_eq!(says('a').await, text("{}"));
    assert_eq!(says('b').await, too_long);
    assert_eq!(says('c').await, text(&"x".repeat(LONGEST_TEXT)));
    assert_eq!(
        says('d').await,
        unusable("hydrator.metadata is no text in UTF-8")
    );
    assert_eq!(says('e').await, unusable("hydrator.metadata is no file"));
    assert_eq!(says('f').await, too_long);
    assert_eq!(says('0').await, Said::Answer(None));
    // Nobody is asked about something that cannot be the id of a commit.
    played.asked();
    let nonsense = played.says(Question::Metadata("../../x".to_owned())).await;
    assert_eq!(nonsense, Said::Answer(None));
    assert_eq!(played.asked(), [""; 0]);
}

#[tokio::test]
async fn a_note_is_found_in_whichever_folder_it_is() {
    let of = |letter: char| sha(letter);
    let note = |letter| Question::Note {
        notes: sha('9'),
        of: of(letter),
    };
    let flat = of('a');
    let in_folder = format!("bb/{}", &of('b')[2..]);
    let deep = format!("cc/cc/{}", &of('c')[4..]);
    let other = format!("dd/dd/{}", &of('d')[4..]);
    let mut played = Played::default();
    for path in [&flat, &in_folder, &deep, &other] {
        played = played.with('9', path, Ok(path.as_bytes()));
    }
    let letters = ['a', 'b', 'c', 'd', 'e'];
    let said = played.answers(letters.map(note).into()).await;
    let found = |path: &String| Said::Answer(Some(Answer::Text(path.as_str().into())));
    let expected = [&flat, &in_folder, &deep, &other].map(found);
    assert_eq!(said[..4], expected);
    assert_eq!(said[4], Said::Answer(None));
    // Where the last one was is tried first.
    let asked = played.asked();
    assert_eq!(asked[0], flat);
    assert_eq!(asked[6], other);
    assert_eq!(asked.len(), 10);
}

#[tokio::test]
async fn of_a_long_message_the_first_and_the_last_lines_are_kept() {
    let kept = async |message: &str| {
        let played = Played {
            commit: Some(Ok(message.to_owned())),
            ..Played::default()
        };
        let said = played.says(Question::Commit(sha('a'))).await;
        let Said::Answer(Some(Answer::Commit(commit))) = said else {
            panic!("{said:?}");
        };
        // Nothing of the rest is held.
        assert_eq!(commit.message.capacity(), commit.message.len());
        commit.message.clone()
    };
    let short = format!("Promote\n\n{}\n", "x".repeat(4_000));
    assert_eq!(kept(&short).await, short);
    let lines = "ü line\n".repeat(10_000);
    let long = kept(&format!("Promote\n\n{lines}\nSluice-Key: 1\n")).await;
    assert!((4_000..=4_097).contains(&long.len()), "{}", long.len());
    assert!(long.starts_with("Promote\n\nü line\n"));
    assert!(long.ends_with("ü line\n\nSluice-Key: 1\n"));
    let whole = |line: &str| matches!(line, "Promote" | "" | "ü line" | "Sluice-Key: 1");
    assert!(long.lines().all(whole));
    // Lines that are too long by themselves: the first one is cut, and the last one left out.
    let long = kept(&"ü".repeat(10_000)).await;
    assert_eq!(long, format!("{}\n", "ü".repeat(1_024)));
    let long = kept(&format!("a{}\nKey: 1", "ü".repeat(10_000))).await;
    assert_eq!(long, format!("a{}\nKey: 1", "ü".repeat(1_023)));
}

/// Anyone who pushes must not stop what else is asked about the repository.
#[tokio::test]
async fn what_is_pushed_makes_one_question_useless_and_no_other() {
    let answers = async |played: Played| {
        let questions = [
            Question::Commit(sha('a')),
            Question::Statuses(sha('a')),
            contains(),
            Question::Metadata(sha('a')),
        ];
        played.answers(questions.into()).await
    };
    let too_long = || Trouble::Unanswered(EgressError::TooLong(1 << 20));
    for (commit, statuses) in [
        (Trouble::CommitTooLong(256), Trouble::TooManyStatuses(100)),
        (Trouble::TooManyParents(16), too_long()),
    ] {
        let expected = [&commit, &statuses].map(|it| Said::Unusable(it.to_string()));
        let said = answers(Played {
            commit: Some(Err(commit)),
            statuses: Some(statuses),
            contains: Some(Trouble::Absent(Missing::Commit)),
            ..Played::default().with('a', METADATA, Ok(b"\xff"))
        });
        let said = said.await;
        assert_eq!(said[..2], expected);
        assert_eq!(said[2], Said::Answer(None));
        assert!(matches!(said[3], Said::Unusable(_)), "{said:?}");
    }
    // A commit that nobody understands is tried again, and the others are answered.
    let said = answers(Played {
        commit: Some(Err(Trouble::NotUnderstood("committer".to_owned()))),
        ..Played::default()
    });
    let said = said.await;
    assert!(matches!(said[0], Said::FailedAlone(_)), "{said:?}");
    assert_eq!(said.len(), 4);
    // What is left is kept for merges: that says nothing of what they wait for.
    let said = answers(Played {
        commit: Some(Err(Trouble::Throttled(Wait::Unsaid))),
        ..Played::default()
    });
    let said = said.await;
    assert!(matches!(said[0], Said::FailedAlone(_)), "{said:?}");
    assert_eq!(said.len(), 4);
    for trouble in [
        too_long_to_wait(),
        Trouble::Failed(503),
        Trouble::Unauthorized,
        Trouble::RateLimited(Wait::Unsaid),
    ] {
        let said = answers(Played {
            commit: Some(Err(trouble)),
            ..Played::default()
        });
        let said = said.await;
        assert!(matches!(said[..], [Said::Failed(_)]), "{said:?}");
    }
}

fn too_long_to_wait() -> Trouble {
    Trouble::Unanswered(EgressError::Broken)
}

#[tokio::test]
async fn after_a_forge_has_failed_no_more_is_asked() {
    let played = Played {
        contains: Some(Trouble::Failed(500)),
        ..Played::default()
    };
    let questions = [
        Question::Statuses(sha('a')),
        contains(),
        Question::Metadata(sha('a')),
    ];
    let said = played.answers(questions.into()).await;
    assert_eq!(said.len(), 2);
    assert_eq!(said[0], Said::Answer(Some(Answer::Statuses([].into()))));
    let Said::Failed(failure) = &said[1] else {
        panic!("{said:?}");
    };
    assert_eq!(failure.word, Word::Unanswered);

    let played = Played {
        contains: Some(Trouble::Absent(Missing::Commit)),
        ..Played::default()
    };
    assert_eq!(played.says(contains()).await, Said::Answer(None));
}

#[tokio::test]
async fn nothing_is_begun_when_the_time_is_over() {
    let played = Played::default();
    let questions = vec![contains(), contains()];
    let clock = SetClock::new(NOON.parse().unwrap());
    let said = answer(&played, questions, &clock, Instant::now()).await;
    assert_eq!(said.len(), 1);
}
