//! Step 1: what the app runs in a target, and whether it runs it healthily.
//!
//! What comes in: the object of the app as the API server has it, and what the status said of the target
//! before. What goes out: [`App`], which has all that is read of an object, and how a target stands.
//!
//! The controllers of Flux set `Ready=Unknown` at each interval, while they look whether anything has
//! drifted. An app that runs what it ran before, and was last told to run nothing else, is then taken to be
//! as it was: otherwise each interval would interrupt a run.

use std::collections::BTreeMap;

use serde_json::Value;
use sluice_crds::PipelineSpec;
use sluice_crds::pipeline::{AppReference, ClusterReference, Target, TargetStatus};

use super::{Sight, Trouble};
use crate::evidence::expression::{Allowance, Expression, REMEDY_FOR_TEXT};
use crate::revision::Revision;
use crate::text::refusal::{Refusal, Refusals};
use crate::text::words::clean;
use crate::verdict::condition::cut;

mod played;

/// What expressions are asked about.
const OBJECT: &str = "object";
/// The most bytes of a version.
const LONGEST_VERSION: usize = 64;
/// The most bytes of what is wrong with a target.
const LONGEST_ERROR: usize = 160;
/// How many digits of a digest helm-controller appends to a version.
const DIGITS: usize = 12;

/// How the app of a spec is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Reader {
    kind: Kind,
    revision: Option<Expression>,
    versions: Vec<(String, Expression)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    HelmRelease,
    Other,
}

/// What is read of the object of an app. Two that are equal say the same.
#[derive(Clone, Debug, PartialEq)]
pub struct App {
    /// What it runs. As an error: it says something that is no revision.
    pub(super) applied: Result<Option<Revision>, String>,
    /// What it was last told to run.
    pub(super) attempted: Option<Revision>,
    is_suspended: bool,
    is_observed: bool,
    ready: Ready,
    versions: BTreeMap<String, String>,
    /// Versions that cannot be shown: why.
    unshown: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Ready {
    True,
    False(String),
    /// Unknown, or there is no such condition.
    Unknown,
}

/// A target, after its app was looked at.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// None: it is not known.
    pub(super) runs: Option<Runs>,
    pub(super) trouble: Option<Trouble>,
    pub(super) status: TargetStatus,
}

/// What a target runs.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    pub(super) applied: Option<Revision>,
    pub(super) attempted: Option<Revision>,
    pub(super) verdict: Verdict,
}

/// Whether a target runs its revision healthily.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Healthy,
    /// Its controller still works on it: what is said of that.
    AtWork(String),
    /// It does not: why.
    Failed(String),
}

impl App {
    /// An object that could not be read: why.
    pub fn unread(why: &str) -> Self {
        Self {
            applied: Err(why.to_owned()),
            attempted: None,
            is_suspended: false,
            is_observed: true,
            ready: Ready::Unknown,
            versions: BTreeMap::new(),
            unshown: Vec::new(),
        }
    }
}

impl Reader {
    /// How the app of this spec is read.
    ///
    /// # Errors
    /// Expressions that make no sense.
    pub fn new(spec: &PipelineSpec) -> Result<Self, Refusals> {
        let mut mistakes = Vec::new();
        let mut parse = |field: String, text: &str| match Expression::parse_text(text, &[OBJECT]) {
            Ok(expression) => Some(expression),
            Err(problem) => {
                mistakes.push(Refusal::new(field, problem, REMEDY_FOR_TEXT));
                None
            }
        };
        let AppReference {
            kind,
            revision_expression,
            api_version: _,
            name: _,
        } = &spec.app_ref;
        let field = || "spec.appRef.revisionExpression".to_owned();
        let revision = revision_expression.as_deref();
        let revision = revision.and_then(|text| parse(field(), text));
        let versions = spec.versions.iter().enumerate();
        let versions = versions.filter_map(|(place, version)| {
            let field = format!("spec.versions[{place}].expression");
            let expression = parse(field, &version.expression)?;
            Some((version.name.clone(), expression))
        });
        let reader = Self {
            kind: match kind.as_str() {
                "HelmRelease" => Kind::HelmRelease,
                _ => Kind::Other,
            },
            revision,
            versions: versions.collect(),
        };
        Refusals::unless_empty(mistakes, reader)
    }

    /// Whether expressions are asked, which may read all of an object.
    pub fn asks_expressions(&self) -> bool {
        self.revision.is_some() || !self.versions.is_empty()
    }

    /// Reads an object. With expressions this takes part of a second at most, for all of them together; keep
    /// the result.
    pub fn read(&self, object: &Value) -> App {
        let status = &object["status"];
        let (mut applied, mut attempted) = match self.kind {
            Kind::HelmRelease => helm_release(status),
            Kind::Other => {
                let text = |field: &str| status[field].as_str().map(str::to_owned);
                (text("lastAppliedRevision"), text("lastAttemptedRevision"))
            }
        };
        let mut unshown = Vec::new();
        let mut problem = None;
        let mut versions = BTreeMap::new();
        if self.asks_expressions() {
            let (inputs, allowance) = ([(OBJECT, object.clone())], Allowance::default());
            if let Some(expression) = &self.revision {
                (applied, attempted) = (None, None);
                match expression.text_of(&inputs, &allowance) {
                    Ok(text) => applied = Some(text),
                    Err(why) => problem = Some(format!("revisionExpression: {why}")),
                }
            }
            for (name, expression) in &self.versions {
                match expression.text_of(&inputs, &allowance) {
                    Ok(text) => {
                        let text = cut(clean(&text, LONGEST_VERSION), LONGEST_VERSION);
                        versions.insert(name.clone(), text);
                    }
                    Err(why) => unshown.push(format!("version {name}: {why}")),
                }
            }
        }
        let parse = |text: &str| {
            let wrong = |why| format!("`{}` is no revision: {why}", clean(text, 64));
            Revision::parse(text).map_err(wrong)
        };
        let text = applied.filter(|text| !text.is_empty());
        let applied = match problem {
            Some(problem) => Err(problem),
            None => text.as_deref().map(parse).transpose(),
        };
        App {
            applied,
            attempted: attempted.and_then(|text| Revision::parse(&text).ok()),
            is_suspended: object["spec"]["suspend"] == Value::Bool(true),
            is_observed: is_observed(object),
            ready: ready(status),
            versions,
            unshown,
        }
    }
}

/// What the newest deployed release is, and what was last tried, both without the digits of the digest
/// that helm-controller appends where a chart is from a registry.
fn helm_release(status: &Value) -> (Option<String>, Option<String>) {
    let releases = status["history"].as_array();
    let releases = releases.map(Vec::as_slice).unwrap_or_default();
    let deployed = releases.iter().find(|it| it["status"] == "deployed");
    let applied = deployed.and_then(|it| {
        let version = it["chartVersion"].as_str()?;
        Some(without_digest(version, it["ociDigest"].as_str()))
    });
    let tried = status["lastAttemptedRevisionDigest"].as_str();
    let newest = || releases.first().and_then(|it| it["ociDigest"].as_str());
    let attempted = status["lastAttemptedRevision"].as_str();
    let attempted = attempted.map(|version| without_digest(version, tried.or_else(newest)));
    (applied, attempted)
}

fn without_digest(version: &str, digest: Option<&str>) -> String {
    let stripped = || {
        let (_, digits) = digest?.split_once(':')?;
        version
            .strip_suffix(digits.get(..DIGITS)?)?
            .strip_suffix('+')
    };
    stripped().unwrap_or(version).to_owned()
}

/// Whether its controller has dealt with the present generation. An object that says nothing of that has
/// not been dealt with, unless it has no generation either.
fn is_observed(object: &Value) -> bool {
    let generation = &object["metadata"]["generation"];
    generation.is_null() || object["status"]["observedGeneration"] == *generation
}

fn ready(status: &Value) -> Ready {
    let conditions = status["conditions"].as_array();
    let found = conditions
        .into_iter()
        .flatten()
        .find(|it| it["type"] == "Ready");
    let Some(found) = found else {
        return Ready::Unknown;
    };
    match found["status"].as_str() {
        Some("True") => Ready::True,
        Some("False") => {
            let message = found["message"].as_str().unwrap_or_default();
            Ready::False(clean(message, LONGEST_ERROR))
        }
        _ => Ready::Unknown,
    }
}

impl App {
    /// Whether it runs its revision healthily. The first that holds decides. `before` is what the status
    /// said of the target.
    fn verdict(&self, before: Option<&TargetStatus>) -> Verdict {
        let applied = match &self.applied {
            Ok(applied) => applied.as_ref(),
            Err(why) => return Verdict::Failed(why.clone()),
        };
        if self.is_suspended {
            return Verdict::Failed("it is suspended".to_owned());
        }
        if !self.is_observed {
            let message = "its controller has not looked at its newest spec yet";
            return Verdict::AtWork(message.to_owned());
        }
        match (&self.ready, applied) {
            (Ready::False(message), _) if message.is_empty() => {
                Verdict::Failed("it is not ready".to_owned())
            }
            (Ready::False(message), _) => Verdict::Failed(message.clone()),
            (Ready::Unknown, _) => match before.filter(|before| self.runs_as(before)) {
                Some(before) if before.ready => Verdict::Healthy,
                Some(TargetStatus {
                    error: Some(error), ..
                }) => Verdict::Failed(error.clone()),
                Some(_) | None => Verdict::AtWork("its controller is at work".to_owned()),
            },
            (Ready::True, Some(_)) => Verdict::Healthy,
            (Ready::True, None) => {
                Verdict::Failed("it is ready, and says of no revision that it runs it".to_owned())
            }
        }
    }

    /// Whether it runs what it ran before, and was told to run nothing else, then and now.
    fn runs_as(&self, before: &TargetStatus) -> bool {
        let Ok(Some(applied)) = &self.applied else {
            return false;
        };
        before.revision.as_deref() == Some(applied.as_str())
            && before.attempted.is_none()
            && self.attempted_else().is_none()
    }

    /// What it was last told to run, where that is another revision than it runs.
    fn attempted_else(&self) -> Option<&Revision> {
        let applied = self.applied.as_ref().ok().and_then(Option::as_ref);
        let attempted = self.attempted.as_ref();
        attempted.filter(|attempted| applied.is_none_or(|applied| !applied.is(attempted)))
    }
}

impl Seen {
    /// A target as it is seen, with what the status said of it before.
    pub(super) fn new(target: &Target, sight: &Sight, before: Option<&TargetStatus>) -> Self {
        let status = TargetStatus {
            namespace: target.namespace.clone(),
            cluster_ref: target.cluster_ref.as_ref().map(named),
            ready: false,
            revision: None,
            attempted: None,
            versions: BTreeMap::new(),
            error: None,
        };
        match sight {
            Sight::Unknown(trouble) => Self {
                runs: None,
                trouble: Some(trouble.clone()),
                status: TargetStatus {
                    error: error(&[&trouble.message]),
                    ..status
                },
            },
            Sight::Here(app) => Self::here(app, status, before),
        }
    }

    fn here(app: &App, status: TargetStatus, before: Option<&TargetStatus>) -> Self {
        let same = |it: &&TargetStatus| {
            (&it.namespace, &it.cluster_ref) == (&status.namespace, &status.cluster_ref)
        };
        let verdict = app.verdict(before.filter(same));
        let applied = app.applied.as_ref().ok().cloned().flatten();
        let text = |revision: &Revision| revision.as_str().to_owned();
        let mut troubles: Vec<&str> = Vec::new();
        match &verdict {
            Verdict::Healthy => {}
            Verdict::AtWork(why) | Verdict::Failed(why) => troubles.push(why),
        }
        // What cannot be shown is said where nothing is worse.
        if troubles.is_empty() {
            troubles.extend(app.unshown.iter().map(String::as_str));
        }
        Self {
            status: TargetStatus {
                ready: verdict == Verdict::Healthy,
                revision: applied.as_ref().map(text),
                attempted: app.attempted_else().map(text),
                versions: app.versions.clone(),
                error: error(&troubles),
                ..status
            },
            runs: Some(Runs {
                applied,
                attempted: app.attempted.clone(),
                verdict,
            }),
            trouble: None,
        }
    }
}

/// A reference without what is not looked at.
fn named(cluster: &ClusterReference) -> ClusterReference {
    ClusterReference {
        api_version: None,
        ..cluster.clone()
    }
}

fn error(troubles: &[&str]) -> Option<String> {
    let text = clean(&troubles.join("; "), LONGEST_ERROR);
    (!text.is_empty()).then(|| cut(text, LONGEST_ERROR))
}
