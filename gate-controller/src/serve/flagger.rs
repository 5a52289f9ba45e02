//! `POST /gate/check`: the same question in the form of Flagger's webhooks.
//!
//! What comes in: what Flagger sends, with our gates in the webhook's metadata. What goes out: 200
//! where the canary may go on, 403 where it has to wait.
//!
//! Flagger waits for every answer but 200, 201 and 202. It does not say which kind of hook asks, and
//! it sends no header of ours; but a password in the webhook's URL comes as `Authorization: Basic`.
//! (Flagger 1.44, pkg/controller/webhook.go and scheduler_hooks.go.)

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sluice_core::text::refusal::Refusal;
use sluice_core::text::words;
use sluice_crds::{CheckedGate, GateReference, Require, State as GateState, Subject};

use super::asking::{Asking, Remote, bearer, password, whole};
use super::check::read;
use super::limit::Who;
use super::problem::{Refused, json};
use super::question::{self, Named, Question};
use crate::tell::decisions::Answer;

/// What Flagger wants to do if the webhook does not say it.
const ACTION: &str = "advance";
/// The kind of the caller.
const KIND: &str = "Canary";
/// The most characters that a message repeats of what others have written.
const QUOTED: usize = 80;

/// What Flagger sends. Other fields that it may send are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlaggerRequest {
    /// The name of the Canary.
    pub name: String,

    /// Its namespace.
    pub namespace: String,

    /// The phase that the Canary is in.
    #[serde(default)]
    pub phase: String,

    /// The `metadata` of the webhook.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

/// The answer to Flagger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlaggerAnswer {
    /// Whether the canary may continue.
    pub open: bool,

    /// Why, in one word. If several gates decided, one word for each cause.
    pub reason: String,

    /// Why, in a sentence. Left out if the request has no token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

pub(super) async fn answer(
    State(asking): State<Arc<Asking>>,
    request: Request,
) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    let remote = Remote::of(&parts);
    let answered = check(&asking, &parts.headers, remote, body).await;
    answered.inspect_err(|refused| {
        if refused.passes() {
            return;
        }
        // Flagger shows nobody what it was answered.
        let problem = refused.problem();
        tracing::warn!(
            error = problem.error,
            field = problem.field,
            remedy = problem.remedy,
            from = %remote.0,
            "a webhook of Flagger is refused: its canary waits"
        );
    })
}

async fn check(
    asking: &Asking,
    headers: &HeaderMap,
    remote: Remote,
    body: Body,
) -> Result<Response, Refused> {
    asking.ready()?;
    let password = password(headers);
    let token = bearer(headers).or(password.as_deref());
    let caller = match token {
        None if asking.flagger_without_token() => None,
        token => Some(asking.caller(remote, token).await.map_err(in_the_url)?),
    };
    let who = caller.as_ref();
    let who = who.map_or_else(|| Who::at(remote.0), |caller| Who::Caller(caller.key));
    asking.take(who, 1)?;
    let question = question(read(&whole(body).await?, FORM)?)?;
    asking.take(who, question.others())?;
    if let Some(caller) = &caller {
        asking.may_check(caller, &question).await?;
    }
    let answer = asking.decide(&question, caller.as_deref()).await;
    let status = match answer.decision.allowed {
        true => StatusCode::OK,
        false => StatusCode::FORBIDDEN,
    };
    Ok(json(status, &told(answer, caller.is_some())))
}

/// What a body has to look like.
const FORM: &str = "send what Flagger sends: name, namespace, phase, and metadata with `gate`";

fn in_the_url(refused: Refused) -> Refused {
    let remedy = "write a valid token into the webhook's URL, as \
                  https://token:TOKEN@HOST/gate/check, or run the controller with \
                  --flagger-without-token";
    match refused.status() {
        StatusCode::UNAUTHORIZED => refused.or(remedy),
        _ => refused,
    }
}

/// The answer to Flagger: without a token, no more than one word for each cause.
fn told(answer: Answer, known: bool) -> FlaggerAnswer {
    let Answer { decision, reason } = answer;
    let decided = |gate: &&CheckedGate| decision.decided_by.contains(&gate.gate);
    let mut reasons: Vec<&str> = reason.into_iter().collect();
    for gate in decision.checked.iter().filter(decided) {
        if !reasons.contains(&gate.reason.as_str()) {
            reasons.push(&gate.reason);
        }
    }
    let state = match decision.allowed {
        true => GateState::Open,
        false => GateState::Closed,
    };
    FlaggerAnswer {
        open: decision.allowed,
        reason: match reasons.is_empty() {
            true => state.to_string(),
            false => reasons.join(", "),
        },
        message: known.then_some(decision.message),
    }
}

fn question(request: FlaggerRequest) -> Result<Question, Refused> {
    let FlaggerRequest {
        name,
        namespace,
        phase,
        metadata,
    } = request;
    question::name("name", &name)?;
    question::namespace("namespace", &namespace)?;
    let Metadata {
        list,
        gates,
        require,
        revision,
        hook,
    } = Metadata::of(metadata)?;
    answers(hook.as_deref(), &phase)?;
    let revision = revision.map(|text| question::revision("metadata.revision", &text));
    let named = gates.split(',').map(|gate| named(list, gate.trim()));
    let subject = Subject {
        kind: KIND.to_owned(),
        namespace,
        name: Some(name),
        action: hook.unwrap_or_else(|| ACTION.to_owned()),
        revision: None,
    };
    let revision = revision.transpose()?;
    Ok(Question::new(
        list,
        require,
        named.collect(),
        subject,
        revision,
    )?)
}

/// `name` or `namespace/name`.
fn named(field: &str, gate: &str) -> Named {
    let (namespace, name) = match gate.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, gate),
    };
    Named {
        field: format!("{field}[{}]", words::clean(gate, QUOTED)),
        gate: GateReference {
            name: name.to_owned(),
            namespace,
        },
    }
}

/// What the metadata of a webhook says.
struct Metadata {
    /// The field that names the gates.
    list: &'static str,
    gates: String,
    require: Require,
    revision: Option<String>,
    hook: Option<String>,
}

impl Metadata {
    fn of(mut entries: BTreeMap<String, String>) -> Result<Self, Refusal> {
        let (gate, gates) = (entries.remove("gate"), entries.remove("gates"));
        let (list, gates) = match (gate, gates) {
            (Some(gates), None) => ("metadata.gate", gates),
            (None, Some(gates)) => ("metadata.gates", gates),
            (Some(_), Some(_)) => {
                let problem = "it stands beside `gate`";
                let remedy = "name all gates in one of them, with commas between them";
                return Err(Refusal::new("metadata.gates", problem, remedy));
            }
            (None, None) => {
                let problem = "it names no gate";
                let remedy = "write `gate: NAME` or `gates: NAME, NAMESPACE/NAME` into the \
                              webhook's metadata";
                return Err(Refusal::new("metadata", problem, remedy));
            }
        };
        let require = match entries.remove("require").as_deref() {
            None | Some("all") => Require::All,
            Some("oneOf") => Require::OneOf,
            Some(other) => {
                let problem = format!("`{}` is not known", words::clean(other, QUOTED));
                return Err(Refusal::new(
                    "metadata.require",
                    problem,
                    "write all or oneOf",
                ));
            }
        };
        let known = Self {
            list,
            gates,
            require,
            revision: entries.remove("revision"),
            hook: entries.remove("hook"),
        };
        match entries.pop_first() {
            None => Ok(known),
            // Only they have it, and it tells what they are.
            Some((key, _)) if key == "eventMessage" => Err(ask_nothing("metadata", "event")),
            Some((key, _)) => Err(Refusal::new(
                format!("metadata.{}", words::clean(&key, QUOTED)),
                "it is not known",
                "write gate or gates, and perhaps require, revision and hook",
            )),
        }
    }
}

/// Refuses webhooks of types for which the answer would not mean "continue" or "wait".
fn answers(hook: Option<&str>, phase: &str) -> Result<(), Refusal> {
    match hook {
        Some("confirm-rollout" | "confirm-promotion" | "confirm-traffic-increase") => Ok(()),
        Some("rollback") => Err(rolls_back("metadata.hook")),
        // Of the hooks that ask, no other is sent in this phase.
        None if phase == "WaitingPromotion" => Err(rolls_back("phase")),
        None => Ok(()),
        Some(hook @ ("rollout" | "pre-rollout")) => Err(Refusal::new(
            "metadata.hook",
            format!(
                "to a {hook} hook a closed gate would be a failed check, and after some of these \
                 Flagger rolls back"
            ),
            CONFIRM,
        )),
        Some(hook @ ("post-rollout" | "event")) => Err(ask_nothing("metadata.hook", hook)),
        Some(other) => {
            let problem = format!(
                "`{}` is not a webhook type of Flagger",
                words::clean(other, QUOTED)
            );
            Err(Refusal::new("metadata.hook", problem, CONFIRM))
        }
    }
}

const CONFIRM: &str = "use a webhook of type confirm-rollout, confirm-traffic-increase or \
                       confirm-promotion, which waits while the gate is closed";

fn rolls_back(field: &str) -> Refusal {
    let problem = "Flagger rolls back when a rollback hook is answered, so an open gate would roll \
                   the canary back";
    Refusal::new(field, problem, CONFIRM)
}

fn ask_nothing(field: &str, hook: &str) -> Refusal {
    let problem = format!("hooks of type {hook} tell and do not ask: no gate can hold them");
    Refusal::new(field, problem, CONFIRM)
}
