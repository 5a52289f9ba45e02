//! Reports an admission to gatekeepers of the kind `external`, as an errand.
//!
//! What comes in: the targets whose gatekeepers have to be told, and what is seen of those. What goes out:
//! one server-side apply of `status.report` for each, as the user of the kubeconfig. A report that is
//! written says the same each time, so that it can be written twice.

use std::collections::BTreeMap;

use futures::future::join_all;
use jiff::SignedDuration;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use sluice_clusters::{Cluster, Fleet, Kind, Part, Sight, Unknown, Wanted};
use sluice_core::delivery::pipeline::{self, Admit, Desk, Outcome, ReportSight};
use sluice_crds::pipeline::{Admission, Environment, GatekeeperReference, StrategyKind, Target};
use sluice_crds::{GROUP, Gatekeeper, Pipeline};
use tokio::time::{Duration, Instant, timeout_at};

use super::cluster::cluster_of;
use crate::act::errands::{Term, Unfinished};
use crate::act::reconcile::Context;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind;
use crate::observe::named::Place;

/// The field manager of reports.
const MANAGER: &str = "gate-controller-reports";
/// How long one API server may take to answer, and then its watch to show the report.
const PATIENCE: Duration = Duration::from_secs(15);
const SHOWN: Duration = Duration::from_secs(10);
/// How soon a report is tried again that was there and could not be written again.
const AGAIN: SignedDuration = SignedDuration::from_secs(300);
/// What the places of errands on our own cluster are counted under.
const OWN: &str = "this cluster";

/// The gatekeeper that admissions to an environment are reported to, if they are.
pub(super) fn gatekeeper_of<'o>(
    object: &'o Pipeline,
    environment: &Environment,
) -> Option<&'o GatekeeperReference> {
    // Nothing is promoted to the first environment.
    let mut later = object.spec.environments.iter().skip(1);
    let environment = later.find(|it| it.name == environment.name)?;
    match object.spec.promotion_of(environment)?.strategy.kind()? {
        StrategyKind::Admission(Admission { gatekeeper_ref }) => gatekeeper_ref.as_ref(),
        StrategyKind::PullRequest(_) | StrategyKind::Notification(_) => None,
    }
}

/// Where the gatekeeper of a target is.
pub(super) fn place(
    context: &Context,
    key: &ObjectKey,
    target: &Target,
    named: &GatekeeperReference,
) -> Result<Place, Unknown> {
    let kind = Kind {
        group: GROUP.to_owned(),
        kind: "Gatekeeper".to_owned(),
    };
    let namespace = named.namespace.as_ref();
    let wanted = Wanted {
        from: key.namespace.to_string(),
        cluster: cluster_of(context, key, target)?,
        kind,
        namespace: namespace.unwrap_or(&target.namespace).clone(),
        part: Part::State,
    };
    let name = named.name.clone();
    Ok(Place { wanted, name })
}

/// What a gatekeeper says. None: it was not read yet.
pub(super) fn sight(context: &Context, place: &Result<Place, Unknown>) -> Option<ReportSight> {
    let seen = match place {
        Ok(place) => context.apps.watched.see(place),
        Err(why) => Sight::Unknown(why.clone()),
    };
    match (seen, place) {
        (Sight::Unknown(Unknown::NotYet), _) => None,
        (Sight::Unknown(why), _) => Some(ReportSight::Unreadable(why.to_string())),
        (Sight::Absent, Ok(place)) => Some(ReportSight::Unreadable(absent(place))),
        (Sight::Seen(object), _) => Some(pipeline::said(&object.read())),
        (Sight::Absent, Err(_)) => None,
    }
}

fn absent(place: &Place) -> String {
    format!(
        "there is no Gatekeeper {}; create it with spec.external and the user of the kubeconfig in \
         writers",
        name_of(place)
    )
}

fn name_of(place: &Place) -> String {
    let Place { wanted, name } = place;
    match wanted.cluster {
        Cluster::Own => format!("{}/{name}", wanted.namespace),
        Cluster::Remote(_) => format!("{}/{name} in {}", wanted.namespace, wanted.cluster),
    }
}

/// Begins to report it. Its end wakes the pipeline. What came of it before was looked at.
pub(super) fn begin(context: &Context, key: &ObjectKey, object: &Pipeline, admit: &Admit) {
    let environment = object.spec.environments.iter();
    let mut environment = environment.filter(|it| it.name == admit.environment);
    let Some(environment) = environment.next() else {
        return;
    };
    let Some(named) = gatekeeper_of(object, environment) else {
        return;
    };
    let targets = admit.targets.iter();
    let targets = targets.filter_map(|place| environment.targets.get(*place));
    // Targets of one namespace have the same gatekeeper.
    let mut letters: BTreeMap<String, Result<Letter, String>> = BTreeMap::new();
    for target in targets {
        let place = place(context, key, target, named);
        let name = place.as_ref().map(name_of);
        let name = name.unwrap_or_else(|_| target.namespace.clone());
        let letter = || Letter::new(context, key, place, &admit.revision);
        letters.entry(name).or_insert_with(letter);
    }
    let fleet = context.apps.watched.fleet();
    let parts = by_host(letters.into_values())
        .into_iter()
        .map(|(host, letters)| {
            let fleet = fleet.clone();
            (host, move |term| report(letters, fleet, term))
        });
    let later = context.clock.now().saturating_add(AGAIN).ok();
    let not_before = later.filter(|_| admit.again);
    let of = Work::own(kind::Kind::Pipeline, key.clone());
    context.errands.forget_over(&of, &admit.errand);
    let together = move |outcomes| Ok(together(outcomes, not_before));
    let errands = &context.errands;
    errands.begin_parts(&of, &admit.errand, parts.collect(), together);
}

/// The reports for each API server. One that cannot be written asks none.
fn by_host(
    letters: impl Iterator<Item = Result<Letter, String>>,
) -> BTreeMap<String, Vec<Result<Letter, String>>> {
    let mut all: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for letter in letters {
        let host = letter.as_ref().map_or("", |letter| letter.host.as_str());
        let host = if host.is_empty() { OWN } else { host };
        all.entry(host.to_owned()).or_default().push(letter);
    }
    all
}

/// Writes all reports to one API server. One that cannot be written stops no other.
async fn report(letters: Vec<Result<Letter, String>>, fleet: Fleet, term: Term) -> Outcome {
    let written = letters.iter().map(|letter| write(letter, &fleet, &term));
    let written = join_all(written).await.into_iter();
    let mut wrong: Vec<String> = written.filter_map(Result::err).collect();
    wrong.dedup();
    match wrong.is_empty() {
        true => Outcome::Done,
        false => Outcome::Failed {
            why: wrong.join("; "),
            not_before: None,
        },
    }
}

/// What came of the reports to all API servers.
fn together(
    outcomes: Vec<Result<Outcome, Unfinished>>,
    not_before: Option<jiff::Timestamp>,
) -> Outcome {
    let wrong = outcomes.into_iter().filter_map(|outcome| match outcome {
        Ok(Outcome::Failed { why, .. }) => Some(why),
        Ok(_) => None,
        Err(unfinished) => Some(unfinished.to_string()),
    });
    let wrong: Vec<String> = wrong.collect();
    match wrong.is_empty() {
        true => Outcome::Done,
        false => Outcome::Failed {
            why: wrong.join("; "),
            not_before,
        },
    }
}

async fn write(letter: &Result<Letter, String>, fleet: &Fleet, term: &Term) -> Result<(), String> {
    match letter {
        Ok(letter) => letter.write(fleet, term).await,
        Err(why) => Err(why.clone()),
    }
}

/// A report, and the gatekeeper that it is for.
struct Letter {
    place: Place,
    name: String,
    revision: String,
    desk: Desk,
    client: Client,
    host: String,
}

impl Letter {
    /// For the gatekeeper as it is seen now.
    fn new(
        context: &Context,
        key: &ObjectKey,
        place: Result<Place, Unknown>,
        revision: &str,
    ) -> Result<Self, String> {
        let place = place.map_err(|why| why.to_string())?;
        let desk = match context.apps.watched.see(&place) {
            Sight::Seen(object) => pipeline::desk(&object.read())?,
            Sight::Absent => return Err(absent(&place)),
            Sight::Unknown(why) => return Err(why.to_string()),
        };
        let cluster = &place.wanted.cluster;
        let (client, host) = context
            .apps
            .watched
            .fleet()
            .client(&key.namespace, cluster)
            .map_err(|why| why.to_string())?;
        Ok(Self {
            name: name_of(&place),
            place,
            revision: revision.to_owned(),
            desk,
            client,
            host,
        })
    }

    /// Writes it while this replica leads, and waits until the watch shows it: what is decided next is
    /// decided from that.
    async fn write(&self, fleet: &Fleet, term: &Term) -> Result<(), String> {
        let mut changes = fleet.changes();
        let late = || format!("the API server of Gatekeeper {} does not answer", self.name);
        let until = until(term, PATIENCE)?;
        let by = timeout_at(until, self.whoami());
        let by = by.await.map_err(|_| late())??;
        if !self.desk.writers.contains(&by) {
            return Err(format!(
                "Gatekeeper {}: spec.external.writers does not name `{by}`, who reports; add it",
                self.name
            ));
        }
        let until = self::until(term, PATIENCE)?;
        let patched = timeout_at(until, self.patch(&by));
        patched.await.map_err(|_| late())??;
        let shown = async {
            while !self.is_shown(fleet) {
                // What was missed is seen in the next turn.
                let closed = tokio::sync::broadcast::error::RecvError::Closed;
                if changes.recv().await.is_err_and(|error| error == closed) {
                    return;
                }
            }
        };
        // It is written, whether or not it is shown.
        let _ = timeout_at(Instant::now() + SHOWN, shown).await;
        Ok(())
    }

    fn is_shown(&self, fleet: &Fleet) -> bool {
        match fleet.look(&self.place.wanted, &self.place.name) {
            Sight::Seen(object) => {
                pipeline::said(&object.read()) == ReportSight::Says(self.revision.clone())
            }
            Sight::Absent | Sight::Unknown(_) => false,
        }
    }

    /// As whom the API server knows the client.
    async fn whoami(&self) -> Result<String, String> {
        let api: Api<SelfSubjectReview> = Api::all(self.client.clone());
        let (params, review) = (PostParams::default(), SelfSubjectReview::default());
        let review = api.create(&params, &review).await;
        let status = review.map_err(|error| self.words(&error, "the user of the kubeconfig"))?;
        let user = status.status.and_then(|status| status.user_info);
        let name = user.and_then(|user| user.username);
        name.ok_or_else(|| format!("the API server of Gatekeeper {} names no user", self.name))
    }

    async fn patch(&self, by: &str) -> Result<(), String> {
        let resource = ApiResource::erase::<Gatekeeper>(&());
        let namespace = &self.place.wanted.namespace;
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &resource);
        let report = pipeline::report_of(&self.revision, &self.desk, by);
        let patch = Patch::Apply(json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": {"name": self.place.name, "namespace": namespace},
            "status": {"report": report},
        }));
        let params = PatchParams::apply(MANAGER).force();
        let patched = api.patch_status(&self.place.name, &params, &patch).await;
        patched.map(drop).map_err(|error| self.words(&error, by))
    }

    /// What is wrong with a request, and what to do. The words of another API server are its own.
    fn words(&self, error: &kube::Error, by: &str) -> String {
        let name = &self.name;
        match error {
            kube::Error::Api(status) if status.is_forbidden() => format!(
                "{by} may not patch gatekeepers/status of Gatekeeper {name}; grant patch on \
                 gatekeepers/status in that namespace"
            ),
            kube::Error::Api(status) if status.is_not_found() => {
                format!("there is no Gatekeeper {name} any more; create it")
            }
            kube::Error::Api(status) => format!(
                "the API server of Gatekeeper {name} answers with status {} {}",
                status.code, status.reason
            ),
            _ => format!("the API server of Gatekeeper {name} cannot be reached"),
        }
    }
}

/// Until when a request may take, if it may be sent.
fn until(term: &Term, patience: Duration) -> Result<Instant, String> {
    let until = term
        .may_act()
        .ok_or("there was no time left to report it")?;
    Ok(until.min(Instant::now() + patience))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_api_server_refuses_is_told_and_what_others_took_is_not() {
        let at = Some(jiff::Timestamp::UNIX_EPOCH);
        let failed = |why: &str, not_before| Outcome::Failed {
            why: why.to_owned(),
            not_before,
        };
        assert_eq!(together(vec![Ok(Outcome::Done); 2], at), Outcome::Done);
        let outcomes = vec![
            Ok(failed("one is not there", None)),
            Ok(Outcome::Done),
            Err(Unfinished::Late(Duration::from_secs(60))),
        ];
        let words = "one is not there; there was no end of it within 60s";
        assert_eq!(together(outcomes, at), failed(words, at));
    }
}
