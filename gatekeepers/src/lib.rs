//! Evidence: what gatekeepers are judged from, besides their spec and the clock.
//!
//! What comes in: a Gatekeeper, clients that only read, what was observed before, an instant.
//! What goes out: an [`Observation`], whose evidence `sluice_core::gatekeeper` judges. One file a
//! kind of gatekeeper; nothing is decided here, and nothing is written.
//!
//! What leaves the cluster leaves it through [`sluice_egress`], and nowhere else.

use jiff::Timestamp;
use kube::ResourceExt;
use sluice_core::gatekeeper::Evidence;
use sluice_core::gatekeeper::approval::{Authors, Votes};
use sluice_core::gatekeeper::revisions::List;
use sluice_crds::gatekeeper::{
    ApprovalRule, ConfigMapKeyReference, EvidenceStatus, Kind, NotOneKind, Revisions,
};
use sluice_crds::{Gatekeeper, GatekeeperSpec};
use sluice_egress::Egress;

pub mod config_maps;
#[cfg(test)]
mod fake_api;
mod http;
mod lists;
mod metric;
pub mod objects;
mod polling;
mod schedule;
mod source;
#[cfg(test)]
#[path = "../../egress/src/test_server.rs"]
mod test_server;
pub mod watching;

pub use config_maps::{ConfigMapKey, ConfigMaps};
pub use objects::ObjectWatches;
pub use source::{ObjectsKey, Source};

/// What evidence is gathered with. Cheap to clone: clones share their watches and limits.
#[derive(Clone)]
pub struct Clients {
    /// The ConfigMaps of the cluster.
    pub config_maps: ConfigMaps,
    /// Objects of other kinds.
    pub objects: ObjectWatches,
    /// The way out of the cluster.
    pub egress: Egress,
    kubernetes: kube::Client,
    reader: schedule::Reader,
}

impl Clients {
    /// Clients that see what `kubernetes` may see, and leave the cluster through `egress`.
    pub fn new(kubernetes: kube::Client, egress: Egress) -> Self {
        Self {
            config_maps: ConfigMaps::new(kubernetes.clone()),
            objects: ObjectWatches::new(kubernetes.clone()),
            egress,
            kubernetes,
            reader: schedule::Reader::default(),
        }
    }
}

/// What was observed for one gatekeeper.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// What to judge it from.
    pub evidence: Evidence,
    /// When to observe again, if nothing changes before. None: only on a change.
    pub again: Option<Timestamp>,
    seen: Seen,
}

/// What was seen in detail, so that it is not looked at again before it is due.
#[derive(Clone, Debug, Default)]
enum Seen {
    #[default]
    Nothing,
    Calendars(Vec<schedule::Seen>),
    Lists(Vec<lists::Seen<List>>),
    Authors(Vec<lists::Seen<Authors>>),
    Metric(Box<metric::Seen>),
    Objects(Box<objects::Seen>),
    Http(Box<http::Seen>),
}

impl Seen {
    fn calendars(&self) -> &[schedule::Seen] {
        match self {
            Seen::Calendars(seen) => seen,
            _ => &[],
        }
    }

    fn lists(&self) -> &[lists::Seen<List>] {
        match self {
            Seen::Lists(seen) => seen,
            _ => &[],
        }
    }

    fn authors(&self) -> &[lists::Seen<Authors>] {
        match self {
            Seen::Authors(seen) => seen,
            _ => &[],
        }
    }

    fn metric(&self) -> Option<&metric::Seen> {
        match self {
            Seen::Metric(seen) => Some(seen),
            _ => None,
        }
    }

    fn objects(&self) -> objects::Seen {
        match self {
            Seen::Objects(seen) => objects::Seen::clone(seen),
            _ => objects::Seen::default(),
        }
    }

    fn http(&self) -> Option<&http::Seen> {
        match self {
            Seen::Http(seen) => Some(seen),
            _ => None,
        }
    }
}

impl Observation {
    /// The evidence for `object` as far as it was observed already, for this spec or for an
    /// earlier one. None if some of it was not.
    pub fn evidence_for(&self, object: &Gatekeeper) -> Option<Evidence> {
        match object.spec.kind() {
            Ok(Kind::Schedule(spec)) => {
                schedule::known(spec, self.seen.calendars()).map(Evidence::Calendars)
            }
            Ok(Kind::Revisions(spec)) => {
                lists::known(references(spec), self.seen.lists()).map(Evidence::Lists)
            }
            Ok(Kind::Approval(spec)) => {
                let authors = lists::known(author_lists(spec), self.seen.authors())?;
                Some(votes(authors.into_iter().next()))
            }
            Ok(Kind::Metric(spec)) => {
                let seen = self.seen.metric().filter(|seen| seen.is_about(spec))?;
                Some(Evidence::Metric(seen.observed.clone()))
            }
            Ok(Kind::Objects(spec)) => {
                let known = objects::known(spec, &self.seen.objects())?;
                Some(known.map_or(Evidence::Nothing, Evidence::Objects))
            }
            Ok(Kind::Http(spec)) => {
                let seen = self.seen.http().filter(|seen| seen.is_about(spec))?;
                Some(Evidence::Http(seen.observed.clone()))
            }
            Ok(Kind::Manual(_) | Kind::Gates(_) | Kind::External(_)) | Err(NotOneKind) => {
                Some(Evidence::default())
            }
        }
    }

    /// The same, but with everything due that is otherwise read at intervals: somebody asked for
    /// a look.
    #[must_use]
    pub fn made_due(mut self) -> Self {
        match &mut self.seen {
            Seen::Calendars(calendars) => {
                for calendar in calendars {
                    calendar.make_due();
                }
            }
            Seen::Metric(seen) => seen.make_due(),
            Seen::Objects(seen) => seen.make_due(),
            Seen::Http(seen) => seen.make_due(),
            Seen::Nothing | Seen::Lists(_) | Seen::Authors(_) => {}
        }
        self
    }
}

fn references(spec: &Revisions) -> impl Iterator<Item = &ConfigMapKeyReference> {
    let all = spec.allow_from.iter().chain(&spec.deny_from);
    all.map(|source| &source.config_map_ref)
}

fn author_lists(spec: &ApprovalRule) -> impl Iterator<Item = &ConfigMapKeyReference> {
    let authors = spec.forbid_self.iter();
    authors.map(|authors| &authors.config_map_ref)
}

/// Evidence of votes, whose Approvals somebody else adds.
fn votes(authors: Option<sluice_core::gatekeeper::approval::Reading>) -> Evidence {
    Evidence::Votes(Votes {
        authors,
        ..Votes::default()
    })
}

/// Whether there is anything to observe for a gatekeeper with this spec.
pub fn needs_evidence(spec: &GatekeeperSpec) -> bool {
    if spec.suspend {
        return false;
    }
    match spec.kind() {
        Ok(Kind::Schedule(spec)) => schedule::needs_evidence(spec),
        Ok(Kind::Revisions(spec)) => references(spec).next().is_some(),
        Ok(Kind::Approval(spec)) => author_lists(spec).next().is_some(),
        Ok(Kind::Metric(_) | Kind::Objects(_) | Kind::Http(_)) => true,
        Ok(Kind::Manual(_) | Kind::Gates(_) | Kind::External(_)) | Err(NotOneKind) => false,
    }
}

/// What a gatekeeper is judged from inside the cluster: a change of it is a reason to observe anew.
pub fn sources(object: &Gatekeeper) -> Vec<Source> {
    let namespace = namespace(object);
    let maps = |references: &mut dyn Iterator<Item = &ConfigMapKeyReference>| {
        let mut keys: Vec<_> = references
            .map(|reference| lists::source(reference, &namespace))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter().map(Source::ConfigMap).collect()
    };
    match object.spec.kind() {
        Ok(Kind::Schedule(spec)) => maps(&mut schedule::references(spec)),
        Ok(Kind::Revisions(spec)) => maps(&mut references(spec)),
        Ok(Kind::Approval(spec)) => maps(&mut author_lists(spec)),
        Ok(Kind::Objects(spec)) => objects::sources(spec, &namespace),
        Ok(
            Kind::Manual(_) | Kind::Metric(_) | Kind::Http(_) | Kind::Gates(_) | Kind::External(_),
        )
        | Err(NotOneKind) => Vec::new(),
    }
}

/// Gathers the evidence of `object` at `now`. What is not due yet is taken from `last`; what
/// reads as it did before is not read twice.
pub async fn observe(
    object: &Gatekeeper,
    clients: &Clients,
    last: &Observation,
    now: Timestamp,
) -> Observation {
    let namespace = namespace(object);
    match object.spec.kind() {
        Ok(Kind::Schedule(spec)) => {
            let seen = schedule::observe(object, spec, clients, last.seen.calendars(), now).await;
            let readings = seen.iter().map(|seen| seen.reading.clone()).collect();
            Observation {
                evidence: Evidence::Calendars(readings),
                again: seen.iter().filter_map(schedule::Seen::again).min(),
                seen: Seen::Calendars(seen),
            }
        }
        Ok(Kind::Revisions(spec)) => {
            let all: Vec<_> = references(spec).collect();
            let (last, parse) = (last.seen.lists(), List::parse);
            let seen = lists::observe(&all, &namespace, clients, last, parse).await;
            Observation {
                evidence: Evidence::Lists(seen.iter().map(|seen| seen.reading.clone()).collect()),
                again: None,
                seen: Seen::Lists(seen),
            }
        }
        Ok(Kind::Approval(spec)) => {
            let all: Vec<_> = author_lists(spec).collect();
            let (last, parse) = (last.seen.authors(), Authors::parse);
            let seen = lists::observe(&all, &namespace, clients, last, parse).await;
            Observation {
                evidence: votes(seen.first().map(|seen| seen.reading.clone())),
                again: None,
                seen: Seen::Authors(seen),
            }
        }
        Ok(Kind::Metric(spec)) => {
            let said = said(object).and_then(|evidence| evidence.metric.as_ref());
            let last = last.seen.metric();
            let seen = metric::observe(object, spec, clients, last, said, now).await;
            seen.map_or_else(Observation::default, |seen| Observation {
                evidence: Evidence::Metric(seen.observed.clone()),
                again: Some(seen.again()),
                seen: Seen::Metric(Box::new(seen)),
            })
        }
        Ok(Kind::Objects(spec)) => {
            let said = said(object).and_then(|evidence| evidence.objects.as_ref());
            let (watches, last) = (&clients.objects, last.seen.objects());
            let seen = objects::observe(object, spec, watches, &last, said, now).await;
            Observation {
                evidence: seen
                    .observed
                    .clone()
                    .map_or(Evidence::Nothing, Evidence::Objects),
                again: seen.again(),
                seen: Seen::Objects(Box::new(seen)),
            }
        }
        Ok(Kind::Http(spec)) => {
            let said = said(object).and_then(|evidence| evidence.http.as_ref());
            let last = last.seen.http();
            let seen = http::observe(object, spec, clients, last, said, now).await;
            seen.map_or_else(Observation::default, |seen| Observation {
                evidence: Evidence::Http(seen.observed.clone()),
                again: Some(seen.again()),
                seen: Seen::Http(Box::new(seen)),
            })
        }
        Ok(Kind::Manual(_) | Kind::Gates(_) | Kind::External(_)) | Err(NotOneKind) => {
            Observation::default()
        }
    }
}

/// The evidence that a status has of this very spec: what a controller that has just started goes
/// on from.
fn said(object: &Gatekeeper) -> Option<&EvidenceStatus> {
    let status = object.status.as_ref()?;
    let is_current = status.observed_generation == object.metadata.generation;
    status.evidence.as_deref().filter(|_| is_current)
}

fn namespace(object: &Gatekeeper) -> String {
    object.namespace().unwrap_or_default()
}
