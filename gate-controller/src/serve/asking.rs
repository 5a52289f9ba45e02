//! Those who ask: who they are, what they may, how often, and the answer.
//!
//! What comes in: requests over HTTP. What goes out: decisions. Nothing is decided here: that is
//! [`Decide`]'s.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use sluice_core::delivery::pipeline::View;
use sluice_core::gate;
use sluice_core::revision::Revision;
use sluice_crds::{Decision, GateSet, Subject};

use crate::tell::decisions::{Answer, Asker, Decisions};

use super::auth::{Caller, RESOURCE, Reviews, Right, Unasked, VERB};
use super::limit::{Limiter, Rate, Who};
use super::problem::Refused;
use super::question::Question;

/// The most bytes of a body.
const BODY: usize = 64 * 1024;

/// How often the API server is asked for one address whose a token is. A refusal here is as cheap as any
/// answer: the limit spares the API server. Neither value is zero, or this would not compile.
const STRANGERS: Rate = Rate {
    rate: NonZeroU32::new(20).unwrap(),
    burst: NonZeroU32::new(100).unwrap(),
};

/// Which Pipelines are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Of this namespace. None: of all.
    pub namespace: Option<&'a str>,
    /// Only those behind this namespace and name.
    pub after: Option<(&'a str, &'a str)>,
    /// At most so many.
    pub most: usize,
}

/// Makes the decisions.
pub trait Decide: Send + Sync + 'static {
    /// Whether `subject` may go out with `revision`, now. The gates of `set` have their
    /// namespaces. None: it names no gates, and those of policies decide alone.
    fn decide(
        &self,
        set: Option<&GateSet>,
        subject: &Subject,
        revision: Option<&Revision>,
    ) -> Decision;

    /// The Pipelines that are wanted, sorted by namespace and name.
    fn pipelines(&self, wanted: Wanted<'_>) -> Vec<View>;

    /// A Pipeline. None: there is none of that name.
    fn pipeline(&self, namespace: &str, name: &str) -> Option<View>;

    /// Whether all is known that decisions are made from.
    fn synced(&self) -> bool;
}

/// What is needed to answer.
pub struct Asking {
    decide: Arc<dyn Decide>,
    decisions: Arc<Decisions>,
    reviews: Reviews,
    callers: Limiter,
    strangers: Limiter,
    flagger_without_token: bool,
}

/// From where a request comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote(pub(super) IpAddr);

impl Asking {
    /// Everybody may ask for gates at this rate. Whether Flagger may without a token is for the
    /// operator to say.
    pub fn new(
        decide: Arc<dyn Decide>,
        decisions: Arc<Decisions>,
        reviews: Reviews,
        rate: Rate,
        flagger_without_token: bool,
    ) -> Self {
        Self {
            decide,
            decisions,
            reviews,
            callers: Limiter::new(rate),
            strangers: Limiter::new(STRANGERS),
            flagger_without_token,
        }
    }

    /// What knows the answers.
    pub(super) fn decider(&self) -> &dyn Decide {
        self.decide.as_ref()
    }

    /// Whether anything can be decided yet.
    pub(super) fn ready(&self) -> Result<(), Refused> {
        if self.decide.synced() {
            return Ok(());
        }
        let why = "the controller does not know every gate and GatePolicy yet";
        Err(Refused::unavailable(why))
    }

    /// Whether Flagger may ask without a token.
    pub(super) fn flagger_without_token(&self) -> bool {
        self.flagger_without_token
    }

    /// Who asks.
    pub(super) async fn caller(
        &self,
        remote: Remote,
        token: Option<&str>,
    ) -> Result<Arc<Caller>, Refused> {
        let token = token.ok_or_else(|| self.unknown("no bearer token was sent"))?;
        let take = || self.strangers.take(Who::at(remote.0), NonZeroU32::MIN);
        let caller = self.reviews.caller(token, take).await.map_err(unasked)?;
        caller.ok_or_else(|| self.unknown("the API server does not know the bearer token"))
    }

    fn unknown(&self, error: &str) -> Refused {
        let audience = match self.reviews.audiences() {
            [] => String::new(),
            [one, ..] => format!(" --audience {one}"),
        };
        let remedy = format!(
            "send the header Authorization: Bearer TOKEN with a valid one, such as \
             `kubectl create token SERVICEACCOUNT{audience}` prints"
        );
        Refused::new(StatusCode::UNAUTHORIZED, error, remedy)
    }

    /// Counts so many gates.
    pub(super) fn take(&self, who: Who, gates: usize) -> Result<(), Refused> {
        let gates = u32::try_from(gates).unwrap_or(u32::MAX);
        let Some(gates) = NonZeroU32::new(gates) else {
            return Ok(());
        };
        let waiting = self.callers.take(who, gates);
        waiting.map_err(|after| too_many("you ask about too many gates a second", after))
    }

    /// Whether the caller may check every gate that it names, and ask about the namespace of the change:
    /// if it names no gate of that namespace, it needs the right to check all gates there, because the
    /// answer shows what that namespace is asked for.
    pub(super) async fn may_check(
        &self,
        caller: &Caller,
        question: &Question,
    ) -> Result<(), Refused> {
        let namespace = question.subject.namespace.as_str();
        let names_one = question.gates().any(|(named, ..)| named == namespace);
        let unnamed = (!names_one).then_some((namespace, None, "namespace"));
        let named = question
            .gates()
            .map(|(namespace, name, field)| (namespace, Some(name), field));
        let asked = unnamed
            .into_iter()
            .chain(named)
            .map(async |(namespace, name, field)| {
                let allowed = self.reviews.may_check(caller, namespace, name).await;
                match allowed.map_err(unasked)? {
                    true => Ok(()),
                    false => Err(forbidden(caller, namespace, name).at(field)),
                }
            });
        join_all(asked).await.into_iter().collect()
    }

    /// Whether the caller has a right.
    pub(super) async fn may(&self, caller: &Caller, right: Right<'_>) -> Result<(), Refused> {
        let allowed = self.reviews.may(caller, right).await;
        match allowed.map_err(unasked)? {
            true => Ok(()),
            false => Err(lacking(caller, right)),
        }
    }

    /// The answer, as far as the caller may see it. It is reported, too.
    pub(super) async fn decide(&self, question: &Question, caller: Option<&Caller>) -> Answer {
        let Question {
            set,
            subject,
            revision,
            ..
        } = question;
        let decision = self.decide.decide(set.as_ref(), subject, revision.as_ref());
        let asker = caller.map_or(Asker::Stranger, |caller| Asker::Caller(caller.name()));
        let Answer { decision, reason } = self.decisions.tell(decision, asker).await;
        let decision = match caller {
            Some(caller) => self.redact(decision, caller).await,
            // A caller without a name gets no message at all.
            None => decision,
        };
        Answer { decision, reason }
    }

    /// Without the messages of those gates that policies have added and that the caller may not check. If
    /// the API server does not say, the caller may not.
    async fn redact(&self, decision: Decision, caller: &Caller) -> Decision {
        let added = decision.checked.iter().filter(|gate| gate.policy.is_some());
        let asked = added.map(async |gate| {
            let (namespace, name) = gate.gate.split_once('/')?;
            let allowed = self.reviews.may_check(caller, namespace, Some(name)).await;
            (allowed == Ok(true)).then(|| gate.gate.clone())
        });
        let seen: HashSet<String> = join_all(asked).await.into_iter().flatten().collect();
        gate::set::redacted(decision, |gate| {
            gate.policy.is_none() || seen.contains(&gate.gate)
        })
    }
}

impl Remote {
    /// Where a request comes from. All whose origin is not known count as one.
    pub(super) fn of(parts: &Parts) -> Self {
        let remote = parts.extensions.get().copied();
        remote.unwrap_or(Self(Ipv4Addr::UNSPECIFIED.into()))
    }
}

/// The token of a header `Authorization: Bearer TOKEN`.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    credentials(headers, "bearer")
}

/// The password of a header `Authorization: Basic`, which is where the one of a URL goes. The user
/// name does not matter.
pub(super) fn password(headers: &HeaderMap) -> Option<String> {
    let text = STANDARD.decode(credentials(headers, "basic")?).ok()?;
    let text = String::from_utf8(text).ok()?;
    let (_, password) = text.split_once(':')?;
    (!password.is_empty()).then(|| password.to_owned())
}

fn credentials<'a>(headers: &'a HeaderMap, scheme: &str) -> Option<&'a str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (named, credentials) = text.split_once(' ')?;
    let credentials = credentials.trim();
    (named.eq_ignore_ascii_case(scheme) && !credentials.is_empty()).then_some(credentials)
}

/// The whole body.
pub(super) async fn whole(body: Body) -> Result<Bytes, Refused> {
    let kib = BODY / 1024;
    to_bytes(body, BODY).await.map_err(|_| {
        let error = format!("the body is longer than {kib} KiB, or was not sent to its end");
        Refused::new(StatusCode::BAD_REQUEST, error, "send less")
    })
}

fn too_many(error: &str, after: Duration) -> Refused {
    let remedy = "wait for as many seconds as the header Retry-After says";
    Refused::new(StatusCode::TOO_MANY_REQUESTS, error, remedy).again(after)
}

fn unasked(why: Unasked) -> Refused {
    match why {
        Unasked::Unanswered(what) => {
            Refused::unavailable(format!("the API server cannot be asked {what}"))
        }
        Unasked::Limited(after) => {
            too_many("too many unknown tokens come from your address", after)
        }
    }
}

fn forbidden(caller: &Caller, namespace: &str, name: Option<&str>) -> Refused {
    let (resource, group) = (RESOURCE, sluice_crds::GROUP);
    let what = match name {
        Some(name) => format!("the gate \"{name}\""),
        None => "every gate".to_owned(),
    };
    Refused::new(
        StatusCode::FORBIDDEN,
        format!(
            "{caller} may not {VERB} {what} in the namespace \"{namespace}\": that needs the verb \
             {VERB} on {resource}.{group}"
        ),
        format!(
            "ask for a Role in \"{namespace}\" with apiGroups: [{group}], resources: [{resource}], \
             verbs: [{VERB}]"
        ),
    )
}

/// What is said to a caller that may not see Pipelines.
fn lacking(caller: &Caller, right: Right<'_>) -> Refused {
    let group = sluice_crds::GROUP;
    let Right {
        verb,
        resource,
        namespace,
        name,
    } = right;
    let (place, role) = match namespace {
        Some(namespace) => (
            format!(" in the namespace \"{namespace}\""),
            format!("a Role in \"{namespace}\""),
        ),
        None => (" of all namespaces".to_owned(), "a ClusterRole".to_owned()),
    };
    let what = name.map(|name| format!(" \"{name}\"")).unwrap_or_default();
    Refused::new(
        StatusCode::FORBIDDEN,
        format!("{caller} may not {verb} {resource}.{group}{what}{place}"),
        format!(
            "ask for {role} with apiGroups: [{group}], resources: [{resource}], verbs: [{verb}]"
        ),
    )
}
