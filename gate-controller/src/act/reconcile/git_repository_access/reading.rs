//! What a forge is asked about commits for a GitRepositoryAccess.
//!
//! What comes in: questions about commits. What goes out: the answers, one after another, until the forge fails or
//! the time is over. What is of no use because of what somebody has pushed says nothing of what else is asked.

use std::sync::Arc;

use sluice_core::delivery::promotion_strategy::evidence::{
    Answer, Commit, ForgeState, ForgeStatus, METADATA, Question,
};
use sluice_egress::EgressError;
use sluice_forges::{FilePath, Forge, ForgeError, Missing, Named, Sha, StatusState, Trouble};
use tokio::time::Instant;

use crate::act::forges::Failure;
use crate::observe::clock::Clock;
use crate::observe::repositories::{LONGEST_TEXT, Said};

/// The most bytes of a message's beginning, and of its end.
const LONGEST_PART: usize = 2 << 10;

/// What a repository can be asked.
pub(super) trait Repository: Sync {
    /// Which references with these names there are.
    fn references(
        &self,
        names: &[String],
    ) -> impl Future<Output = Result<Found, ForgeError>> + Send;

    /// A commit. None: there is no such commit.
    fn commit(
        &self,
        commit: &Sha,
    ) -> impl Future<Output = Result<Option<Commit>, ForgeError>> + Send;

    /// A file at a commit. None: there is no such file, or no such commit.
    fn file(
        &self,
        commit: &Sha,
        path: &FilePath,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, ForgeError>> + Send;

    /// Whether a commit is another one, or an ancestor of it.
    fn contains(
        &self,
        base: &Sha,
        commit: &Sha,
    ) -> impl Future<Output = Result<bool, ForgeError>> + Send;

    /// The newest status of each context.
    fn statuses(
        &self,
        commit: &Sha,
    ) -> impl Future<Output = Result<Vec<ForgeStatus>, ForgeError>> + Send;
}

/// What a repository says of names.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Those that are there, with what they point to.
    pub(super) names: Vec<(String, String)>,
    /// Those of which it does not say that, because it has said too much before.
    pub(super) left: Vec<String>,
    /// Those with which very much begins.
    pub(super) wide: Vec<String>,
}

/// Answers questions in their order. None is begun after `until`, or after the forge has failed.
pub(super) async fn answer(
    repository: &impl Repository,
    questions: Vec<Question>,
    clock: &dyn Clock,
    until: Instant,
) -> Vec<(Question, Said)> {
    let mut said = Vec::new();
    let mut notes = Depth::default();
    for question in questions {
        if !said.is_empty() && Instant::now() >= until {
            break;
        }
        let answer = match ask(repository, &question, &mut notes).await {
            Ok(answer) => answer,
            Err(error) => failed(error, clock),
        };
        let has_failed = matches!(answer, Said::Failed(_));
        said.push((question, answer));
        if has_failed {
            break;
        }
    }
    said
}

/// What follows from a failure: for what it was about, or for all that is asked.
fn failed(error: ForgeError, clock: &dyn Clock) -> Said {
    let trouble = &error.trouble;
    let is_of_all = match trouble {
        Trouble::Absent(Missing::Commit) => return Said::Answer(None),
        Trouble::Unanswered(EgressError::TooLong(_))
        | Trouble::CommitTooLong(_)
        | Trouble::TooManyParents(_)
        | Trouble::TooManyStatuses(_)
        | Trouble::NotAFile => return Said::Unusable(trouble.to_string()),
        Trouble::Unanswered(_)
        | Trouble::Failed(_)
        | Trouble::Unauthorized
        | Trouble::NoRight(_)
        | Trouble::RateLimited(_) => true,
        // What is kept for merges is there for those that they wait for.
        _ => false,
    };
    let failure = Failure::from(error).at(clock.now());
    match is_of_all {
        true => Said::Failed(failure),
        false => Said::FailedAlone(failure),
    }
}

async fn ask(
    repository: &impl Repository,
    question: &Question,
    notes: &mut Depth,
) -> Result<Said, ForgeError> {
    let answered = match question {
        Question::Commit(of) => match Sha::parse(of) {
            Some(of) => {
                let commit = repository.commit(&of).await;
                commit.map(|found| found.map(|commit| Answer::Commit(Arc::new(cut(commit)))))
            }
            None => Ok(None),
        },
        Question::Metadata(of) => match (Sha::parse(of), FilePath::parse(METADATA)) {
            (Some(of), Ok(path)) => return text(METADATA, repository.file(&of, &path).await),
            _ => Ok(None),
        },
        Question::Note { notes: at, of } => match (Sha::parse(at), Sha::parse(of)) {
            (Some(at), Some(of)) => return notes.read(repository, &at, &of).await,
            _ => Ok(None),
        },
        Question::Contains { base, commit } => match (Sha::parse(base), Sha::parse(commit)) {
            (Some(base), Some(commit)) => {
                let contains = repository.contains(&base, &commit).await;
                contains.map(|contains| Some(Answer::Contains(contains)))
            }
            _ => Ok(None),
        },
        Question::Statuses(of) => match Sha::parse(of) {
            Some(of) => {
                let statuses = repository.statuses(&of).await;
                statuses.map(|statuses| Some(Answer::Statuses(statuses.into())))
            }
            None => Ok(None),
        },
    };
    answered.map(Said::Answer)
}

/// What a file says, which is called so.
fn text(name: &str, file: Result<Option<Vec<u8>>, ForgeError>) -> Result<Said, ForgeError> {
    let too_long = || {
        let most = LONGEST_TEXT >> 10;
        Said::Unusable(format!("{name} is longer than {most} KiB"))
    };
    match file {
        Ok(None) => Ok(Said::Answer(None)),
        Ok(Some(bytes)) if bytes.len() > LONGEST_TEXT => Ok(too_long()),
        Ok(Some(bytes)) => match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(Said::Answer(Some(Answer::Text(text.into())))),
            Err(_) => Ok(Said::Unusable(format!("{name} is no text in UTF-8"))),
        },
        Err(error) => match error.trouble {
            Trouble::Absent(Missing::Commit | Missing::File) => Ok(Said::Answer(None)),
            Trouble::NotAFile => Ok(Said::Unusable(format!("{name} is no file"))),
            Trouble::Unanswered(EgressError::TooLong(_)) => Ok(too_long()),
            _ => Err(error),
        },
    }
}

/// A commit with a message that is not too long, which takes no more memory than it has to.
fn cut(commit: Commit) -> Commit {
    let message = shortened(&commit.message);
    Commit { message, ..commit }
}

/// A message, of which a long one keeps the lines at its beginning and, with the trailers, those at its end.
fn shortened(message: &str) -> String {
    if message.len() <= 2 * LONGEST_PART {
        return message.to_owned();
    }
    let is_boundary = |at: &usize| message.is_char_boundary(*at);
    let begin = (0..=LONGEST_PART).rev().find(is_boundary);
    let begin = message.get(..begin.unwrap_or_default()).unwrap_or_default();
    // A first line that is too long by itself is cut.
    let begin = begin.rsplit_once('\n').map_or(begin, |(lines, _)| lines);
    // One more: it may end the line before.
    let mut end = message.len() - LONGEST_PART - 1..message.len();
    let end = end.find(is_boundary).and_then(|at| message.get(at..));
    let end = end.and_then(|end| end.split_once('\n'));
    let end = end.map_or("", |(_, lines)| lines);
    [begin, end].join("\n")
}

/// How many folders deep the notes are that were found last. Git puts notes into folders once there are many.
#[derive(Clone, Copy, Default)]
struct Depth(usize);

impl Depth {
    /// The most folders that Git makes for notes that any repository has.
    const MOST: usize = 2;

    async fn read(
        &mut self,
        repository: &impl Repository,
        notes: &Sha,
        of: &Sha,
    ) -> Result<Said, ForgeError> {
        let others = (0..=Self::MOST).filter(|depth| *depth != self.0);
        for depth in [self.0].into_iter().chain(others) {
            let Ok(path) = FilePath::parse(&path(of.as_str(), depth)) else {
                continue;
            };
            let said = text("the note", repository.file(notes, &path).await)?;
            if said != Said::Answer(None) {
                *self = Self(depth);
                return Ok(said);
            }
        }
        Ok(Said::Answer(None))
    }
}

/// Where a note is that is so many folders deep: `abcd…`, `ab/cd…`, `ab/cd/…`.
fn path(of: &str, depth: usize) -> String {
    let mut rest = of;
    let mut path = String::new();
    for _ in 0..depth {
        let (folder, below) = rest.split_at_checked(2).unwrap_or((rest, ""));
        path.push_str(folder);
        path.push('/');
        rest = below;
    }
    path + rest
}

impl Repository for Forge {
    async fn references(&self, names: &[String]) -> Result<Found, ForgeError> {
        let Named { found, left, wide } = self.named(names).await?;
        let found = found.into_iter();
        Ok(Found {
            names: found.map(|it| (it.name, it.id.to_string())).collect(),
            left,
            wide,
        })
    }

    async fn commit(&self, commit: &Sha) -> Result<Option<Commit>, ForgeError> {
        let found = self.commit_object(commit).await?;
        Ok(found.map(|found| Commit {
            tree: found.tree.to_string(),
            parents: found.parents.iter().map(Sha::to_string).collect(),
            at: found.committed_at,
            message: found.message,
        }))
    }

    async fn file(&self, commit: &Sha, path: &FilePath) -> Result<Option<Vec<u8>>, ForgeError> {
        let found = Forge::file(self, commit, path).await?;
        Ok(found.map(|file| file.bytes))
    }

    async fn contains(&self, base: &Sha, commit: &Sha) -> Result<bool, ForgeError> {
        Forge::contains(self, base, commit).await
    }

    async fn statuses(&self, commit: &Sha) -> Result<Vec<ForgeStatus>, ForgeError> {
        let found = Forge::statuses(self, commit).await?.into_iter();
        let statuses = found.map(|it| ForgeStatus {
            context: it.context,
            state: match it.state {
                StatusState::Pending => ForgeState::Pending,
                StatusState::Success => ForgeState::Success,
                StatusState::Failure => ForgeState::Failure,
            },
            description: it.description,
        });
        Ok(statuses.collect())
    }
}
