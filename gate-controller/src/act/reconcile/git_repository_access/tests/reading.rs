//! What a repository is asked, and what is made of its answers.

use std::collections::HashMap;
use std::sync::Mutex;

use sluice_core::delivery::promotion_strategy::evidence::{
    Answer, Commit, ForgeStatus, Heads, METADATA, NOTES,
};
use sluice_core::delivery::pull_request::Word;
use sluice_egress::EgressError;
use sluice_forges::{FilePath, ForgeError, Missing, Sha, Trouble};
use tokio::time::Instant;

use super::*;
use crate::act::reconcile::git_repository_access::reading::{Repository, answer, list};
use crate::observe::repositories::{LONGEST_TEXT, Said};

/// A repository that is played, and what it was asked.
#[derive(Default)]
struct Played {
    references: Vec<(String, String)>,
    files: HashMap<(String, String), Result<Vec<u8>, Trouble>>,
    contains: Option<Trouble>,
    asked: Mutex<Vec<String>>,
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

    fn asked(&self) -> Vec<String> {
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

fn sha(letter: char) -> String {
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
    async fn references(&self, prefixes: &[String]) -> Result<Vec<(String, String)>, ForgeError> {
        self.note(prefixes.join(" "));
        Ok(self.references.clone())
    }

    async fn commit(&self, commit: &Sha) -> Result<Option<Commit>, ForgeError> {
        self.note(format!("commit {commit}"));
        Ok(Some(Commit {
            tree: sha('7'),
            parents: Vec::new(),
            at: Timestamp::UNIX_EPOCH,
            message: "ü".repeat(LONGEST_TEXT),
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
        Ok(Vec::new())
    }
}

fn contains() -> Question {
    let (base, commit) = (sha('b'), sha('c'));
    Question::Contains { base, commit }
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
    let names = ["env/prod", "env/prod-next", "env/gone"].map(str::to_owned);
    let heads = list(&played, &names.clone().into()).await.unwrap();
    let [prod, next, _] = names;
    let expected = Heads {
        branches: [(prod, sha('a')), (next, sha('b'))].into(),
        notes: Some(sha('d')),
    };
    assert_eq!(heads, expected);
    assert_eq!(
        played.asked(),
        [
            "refs/heads/env/gone refs/heads/env/prod refs/heads/env/prod-next \
          refs/notes/hydrator.metadata"
        ]
    );
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
async fn a_message_is_cut_between_characters() {
    let played = Played::default();
    let said = played.says(Question::Commit(sha('a'))).await;
    let Said::Answer(Some(Answer::Commit(commit))) = said else {
        panic!("{said:?}");
    };
    assert_eq!(commit.message.len(), LONGEST_TEXT);
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
