//! A look at one part: its kind, the right to read it, what has happened to its objects, and what follows
//! from that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use sluice_core::gatekeeper::objects::{Course, Part, Rule};
use sluice_crds::gatekeeper::ObjectRule;

use super::kinds::{Kind, Obstacle};
use super::rights::Question;
use super::store::{Change, News};
use super::watches::Unseen;
use super::{Followed, LOOK, MOST_OBJECTS, ObjectWatches, key};

/// How long the objects of one part may take to judge.
const LONGEST: Duration = Duration::from_secs(2);

/// What a look is taken with.
pub(super) struct Look<'a> {
    /// Of the gatekeeper.
    pub(super) home: String,
    pub(super) rule: Arc<Rule>,
    pub(super) watches: &'a ObjectWatches,
    pub(super) asks_again: bool,
    pub(super) now: Timestamp,
    pub(super) began: Instant,
}

impl Look<'_> {
    /// Looks at one part. An obstacle comes with what was seen before.
    pub(super) async fn at(
        &self,
        place: usize,
        before: Option<&Followed>,
    ) -> Result<Followed, (Option<Followed>, Obstacle)> {
        let part = &self.rule.parts()[place];
        let looked = self.look(place, part, before).await;
        looked.map_err(|obstacle| (before.cloned(), obstacle))
    }

    async fn look(
        &self,
        number: usize,
        part: &Part,
        before: Option<&Followed>,
    ) -> Result<Followed, Obstacle> {
        let spec = part.spec();
        let own = spec.namespace.as_deref().unwrap_or(&self.home);
        let kind = self
            .watches
            .kinds()
            .find(&key(spec, Some(own)), self.asks_again, self.now)
            .await?;
        let own = Some(own).filter(|_| kind.namespaced);
        let again = self.ask(spec, &kind, own).await?;
        let key = key(spec, own);
        let cursor = before.map(|before| before.cursor);
        let read = self.watches.read(&key, &kind, cursor).await;
        let (news, cursor) = match read {
            Ok(read) => read,
            Err(Unseen::Vanished) => {
                return Err(self.watches.kinds().vanished(&key, self.now).await);
            }
            Err(Unseen::Because(why)) => return Err(self.obstacle(why)),
        };
        let course = before.map(|before| &before.course);
        let course = self.advance(number, own, course, news).await?;
        Ok(Followed {
            spec: spec.clone(),
            course,
            cursor,
            again,
        })
    }

    /// Asks whether the service account may read the objects: all in their namespace, because many
    /// share that answer, and if not, the one. Returns when to ask again.
    async fn ask(
        &self,
        spec: &ObjectRule,
        kind: &Kind,
        namespace: Option<&str>,
    ) -> Result<Timestamp, Obstacle> {
        let account = (self.home.as_str(), self.rule.service_account());
        let may_read = async |name| {
            let question = Question::new(account, kind, namespace, name);
            let rights = self.watches.rights();
            rights.may_read(&question, self.asks_again, self.now).await
        };
        match (may_read(None).await, spec.name.as_deref()) {
            (Err(_), Some(name)) => may_read(Some(name)).await,
            (answer, _) => answer,
        }
    }

    /// Processes the news outside the threads that serve everything else: expressions take some time.
    async fn advance(
        &self,
        number: usize,
        namespace: Option<&str>,
        before: Option<&Arc<Course>>,
        news: News,
    ) -> Result<Arc<Course>, Obstacle> {
        let at = self.lately();
        let before = before.map(Arc::clone);
        let part = &self.rule.parts()[number];
        if let (Some(course), News::Changes(changes)) = (&before, &news)
            && !changes.iter().any(|change| concerns(course, part, change))
        {
            let mut course = Arc::clone(course);
            if course.satisfied_since().is_some_and(|since| at < since) {
                Arc::make_mut(&mut course).not_after(at);
            }
            return Ok(course);
        }
        // Never closed; if it were, there would be no limit to keep.
        let _turn = self.watches.turns().acquire().await.ok();
        let (rule, namespace) = (Arc::clone(&self.rule), namespace.map(str::to_owned));
        let judging = tokio::task::spawn_blocking(move || {
            let part = &rule.parts()[number];
            advanced(part, namespace.as_deref(), before, news, at)
        });
        let kind = &part.spec().kind;
        let judged = judging.await.unwrap_or(Err(TooMany::Stopped));
        judged.map_err(|too_many| Obstacle {
            costly: matches!(too_many, TooMany::Slow),
            ..self.obstacle(format!("cannot judge {kind}: {too_many}"))
        })
    }

    /// The present instant, to the second: waiting for the API server takes a while.
    fn lately(&self) -> Timestamp {
        let waited = i64::try_from(self.began.elapsed().as_secs()).unwrap_or(i64::MAX);
        let lately = self.now.saturating_add(SignedDuration::from_secs(waited));
        lately.unwrap_or(Timestamp::MAX)
    }

    fn obstacle(&self, why: String) -> Obstacle {
        let again = self.now.saturating_add(LOOK);
        let again = again.unwrap_or(Timestamp::MAX);
        Obstacle {
            why,
            again,
            costly: false,
        }
    }
}

fn concerns(course: &Course, part: &Part, change: &Change) -> bool {
    let nothing = BTreeMap::new();
    let labels = change.now.as_ref().map_or(&nothing, |now| &now.labels);
    course.concerns(part, &change.name, labels)
}

/// Why the objects of a part are not judged.
#[derive(Debug, thiserror::Error)]
enum TooMany {
    #[error("the selector matches more than {MOST_OBJECTS} objects; write a narrower one")]
    Selected,
    #[error("it takes longer than {}s; write a simpler expression, or select fewer objects", LONGEST.as_secs())]
    Slow,
    #[error("judging them stops; this is a defect of gate-controller")]
    Stopped,
}

/// The course of a part after the news.
fn advanced(
    part: &Part,
    namespace: Option<&str>,
    before: Option<Arc<Course>>,
    news: News,
    at: Timestamp,
) -> Result<Arc<Course>, TooMany> {
    let began = Instant::now();
    let (mut course, changes) = match (before, news) {
        (Some(course), News::Changes(changes)) => (course, changes),
        // A part that has not begun gets all objects.
        (_, News::All(objects)) => (Arc::new(Course::begin(namespace)), objects),
        (None, News::Changes(_)) => return Err(TooMany::Stopped),
    };
    let going = Arc::make_mut(&mut course);
    going.not_after(at);
    for change in &changes {
        if !concerns(going, part, change) {
            continue;
        }
        if began.elapsed() > LONGEST {
            return Err(TooMany::Slow);
        }
        if change.unseen {
            going.lose_sight(at);
        }
        let object = change.now.as_ref().map(|now| now.read());
        going.follow(part, &change.name, object, at);
        if going.len() > MOST_OBJECTS {
            return Err(TooMany::Selected);
        }
    }
    Ok(course)
}
