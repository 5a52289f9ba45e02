//! Whether a service account may read objects: a user who writes a Gatekeeper learns nothing by it that
//! this account may not know.
//!
//! The API server is asked with a SubjectAccessReview for the account and the groups that it is
//! in, and again every minute: rights come from several kinds of objects and from authorizers
//! outside the cluster, so that there is nothing to watch.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client, Error};
use sluice_core::time::span::later;
use sluice_egress::secrets::is_object_name;
use tokio::time::timeout;

use super::DEADLINE;
use super::answers::Answers;
use super::kinds::{Kind, Obstacle};

/// How soon to ask again if the answer was yes: the longest time for which a gatekeeper still sees what
/// its account may not see any more.
const RECHECK: SignedDuration = SignedDuration::from_mins(1);
/// For how long a yes counts while the API server cannot be asked.
const GOOD_FOR: SignedDuration = SignedDuration::from_mins(10);
/// How soon to ask again where the answer was no: somebody may be granting the right just now.
const RETRY_DENIED: SignedDuration = SignedDuration::from_secs(15);
/// How soon to ask again where there was no answer.
const RETRY_FAILED: SignedDuration = SignedDuration::from_secs(15);
/// What has to be allowed.
const VERBS: [&str; 3] = ["get", "list", "watch"];

/// Who wants to read what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    /// Of the service account.
    pub(super) home: String,
    /// Its name.
    pub(super) account: String,
    /// Of the objects.
    pub(super) group: String,
    /// Of the objects.
    pub(super) plural: String,
    /// Where the objects are. None: in no namespace.
    pub(super) namespace: Option<String>,
    /// One object. None: any.
    pub(super) name: Option<String>,
}

/// The rights that were asked for.
pub(super) struct Rights {
    client: Client,
    answers: Answers<Question, Answer>,
}

struct Answer {
    /// Why not, if it may not.
    allowed: Result<(), String>,
    /// When this was answered.
    told: Timestamp,
    /// When to ask again.
    again: Timestamp,
}

/// Why there is no right.
enum Refusal {
    /// The API server says so.
    Denied(String),
    /// It could not be asked.
    Unknown(String),
}

impl Question {
    /// Whether the service account `home`/`account` may read objects of `kind`.
    pub(super) fn new(
        (home, account): (&str, &str),
        kind: &Kind,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Self {
        Self {
            home: home.to_owned(),
            account: account.to_owned(),
            group: kind.resource.group.clone(),
            plural: kind.resource.plural.clone(),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        }
    }

    fn review(&self, verb: &str) -> SubjectAccessReview {
        let Self {
            home,
            account,
            group,
            plural,
            namespace,
            name,
        } = self;
        let groups = [
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{home}"),
            "system:authenticated".to_owned(),
        ];
        let attributes = ResourceAttributes {
            group: Some(group.clone()),
            resource: Some(plural.clone()),
            namespace: namespace.clone(),
            name: name.clone(),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        };
        SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(format!("system:serviceaccount:{home}:{account}")),
                groups: Some(groups.into()),
                resource_attributes: Some(attributes),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        }
    }

    fn untold(&self) -> Refusal {
        let Self { home, account, .. } = self;
        Refusal::Unknown(format!(
            "the API server does not tell what the service account {home}/{account} may read"
        ))
    }

    fn denied(&self, verb: &str) -> String {
        let Self {
            home,
            account,
            group,
            plural,
            namespace,
            name,
        } = self;
        let resource = match group.as_str() {
            "" => plural.clone(),
            group => format!("{plural}.{group}"),
        };
        let name = name.as_ref().map(|name| format!(" {name}"));
        let place = namespace
            .as_ref()
            .map(|name| format!(" in namespace {name}"));
        format!(
            "the service account {home}/{account} may not {verb} {resource}{}{}: grant it get, \
             list, watch",
            name.unwrap_or_default(),
            place.unwrap_or_default(),
        )
    }
}

impl Rights {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            answers: Answers::default(),
        }
    }

    /// When to ask again, if it may be read. `at_once`: ask even if it is not due yet.
    pub(super) async fn may_read(
        &self,
        question: &Question,
        at_once: bool,
        now: Timestamp,
    ) -> Result<Timestamp, Obstacle> {
        let is_old = |answer: &Answer| answer.again <= now;
        let mut answer = self.answers.to(question, is_old).await;
        let due = match &*answer {
            None => true,
            // Answered later than now: the clock was set back.
            Some(answer) => at_once || answer.again <= now || now < answer.told,
        };
        if due {
            let asked = timeout(DEADLINE, self.ask(question)).await;
            let asked = asked.unwrap_or_else(|_| Err(question.untold()));
            *answer = Some(answered(asked, answer.take(), now));
        }
        match &*answer {
            Some(Answer {
                allowed: Ok(()),
                again,
                ..
            }) => Ok(*again),
            Some(Answer {
                allowed: Err(why),
                again,
                ..
            }) => Err(Obstacle {
                costly: false,
                why: why.clone(),
                again: *again,
            }),
            None => Err(Obstacle {
                costly: false,
                why: question.denied(VERBS[0]),
                again: now,
            }),
        }
    }

    async fn ask(&self, question: &Question) -> Result<(), Refusal> {
        self.exists(question).await?;
        for verb in VERBS {
            self.review(question, verb).await?;
        }
        Ok(())
    }

    async fn exists(&self, question: &Question) -> Result<(), Refusal> {
        let Question { home, account, .. } = question;
        let missing = || Refusal::Denied(format!("there is no service account {home}/{account}"));
        if !is_object_name(account) {
            return Err(missing());
        }
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), home);
        match api.get_metadata(account).await {
            Ok(_) => Ok(()),
            Err(Error::Api(status)) if status.is_not_found() => Err(missing()),
            Err(Error::Api(status)) if status.is_forbidden() => Err(Refusal::Denied(format!(
                "may not get serviceaccounts in namespace {home}: grant gate-controller get"
            ))),
            Err(_) => Err(question.untold()),
        }
    }

    async fn review(&self, question: &Question, verb: &str) -> Result<(), Refusal> {
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let (review, params) = (question.review(verb), PostParams::default());
        match api.create(&params, &review).await {
            Ok(review) => match review.status {
                Some(status) if status.allowed && status.denied != Some(true) => Ok(()),
                _ => Err(Refusal::Denied(question.denied(verb))),
            },
            Err(Error::Api(status)) if status.is_forbidden() => Err(Refusal::Denied(
                "may not create subjectaccessreviews: grant gate-controller create".to_owned(),
            )),
            Err(_) => Err(question.untold()),
        }
    }
}

/// The answer to use, from the new answer and the one before.
fn answered(asked: Result<(), Refusal>, before: Option<Answer>, now: Timestamp) -> Answer {
    let after = |wait| later(now, wait);
    match asked {
        Ok(()) => Answer {
            allowed: Ok(()),
            told: now,
            again: after(RECHECK),
        },
        Err(Refusal::Denied(why)) => Answer {
            allowed: Err(why),
            told: now,
            again: after(RETRY_DENIED),
        },
        Err(Refusal::Unknown(why)) => match before.filter(|before| still_counts(before, now)) {
            Some(before) => Answer {
                again: after(RETRY_FAILED),
                ..before
            },
            None => Answer {
                allowed: Err(why),
                told: now,
                again: after(RETRY_FAILED),
            },
        },
    }
}

/// What was allowed stays so for a while although the API server cannot be asked.
fn still_counts(answer: &Answer, now: Timestamp) -> bool {
    let end = answer.told.saturating_add(GOOD_FOR);
    answer.allowed.is_ok() && answer.told <= now && now < end.unwrap_or(Timestamp::MAX)
}
