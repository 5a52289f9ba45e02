//! What is done, on an API server that is played.

use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Map, Value, json};
use sluice_clusters::{Fleet, Scope};
use sluice_core::delivery::gated_source::{Act, Child, Report};
use sluice_core::gate::Identity;
use sluice_core::time::clock::Trust;
use sluice_crds::GatedSource;
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::gated_source::SourceKind;
use sluice_egress::{Egress, Rules};
use tower::service_fn;

use crate::act::errands::Errands;
use crate::act::forges::Forges;
use crate::act::reconcile::commit_status::postings::Postings;
use crate::act::reconcile::git_repository_access::readings::Readings;
use crate::act::reconcile::pull_request::at_forges::AtForges;
use crate::act::reconcile::rollout::calls::Calls;
use crate::act::reconcile::{Context, consumer};
use crate::act::waker::Waker;
use crate::cluster::failure;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::lease::{Held, Leadership};
use crate::observe::apps::Apps;
use crate::observe::clock::{Clock, Jumps, SetClock};
use crate::observe::repositories::Repositories;
use crate::observe::workloads::Workloads;
use crate::observe::world::{Standing, World};
use crate::tell::audit::Audit;
use crate::tell::counters::Counters;
use crate::tell::decisions::Decisions;
use crate::tell::events::Events;

/// An API server with a gated source of that version and everything that is written to it.
pub(in crate::act::reconcile) fn api(
    version: &'static str,
    seen: &Arc<Mutex<Vec<Method>>>,
) -> Client {
    let seen = Arc::clone(seen);
    let service = service_fn(move |request: Request<Body>| {
        seen.lock().unwrap().push(request.method().clone());
        let metadata = |name: &str, version: &str| json!({ "namespace": "apps", "name": name, "resourceVersion": version });
        let answer = match *request.method() {
            Method::GET => json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                "metadata": metadata("app", version),
            }),
            _ => json!({ "metadata": metadata("child", "10"), "spec": {} }),
        };
        let answer = Response::new(Body::from(answer.to_string().into_bytes()));
        async move { Ok::<_, std::convert::Infallible>(answer) }
    });
    Client::new(service, "apps")
}

pub(in crate::act::reconcile) fn noon() -> Arc<dyn Clock> {
    Arc::new(SetClock::new("2026-11-20T12:00:00Z".parse().unwrap()))
}

pub(in crate::act::reconcile) fn world() -> World {
    let standing = Standing {
        trust: Trust::Good,
        identity: Identity::Verified,
    };
    World::new(standing, true)
}

pub(in crate::act::reconcile) fn context(
    client: Client,
    world: World,
    clock: Arc<dyn Clock>,
) -> Context {
    let counters = Arc::<Counters>::default();
    let jumps = Arc::new(Jumps::new(Arc::clone(&clock)));
    let (until, leadership) = Leadership::new(jumps);
    until.send_replace(Some(Held::for_ever()));
    let world = Arc::new(world);
    let (events, _) = Events::new(Arc::clone(&counters), Arc::clone(&clock));
    let decisions = Decisions::new(
        Arc::clone(&world),
        Arc::clone(&clock),
        Arc::clone(&counters),
        events.clone(),
        Audit::default(),
    );
    let waker = Waker {
        world: Arc::clone(&world),
        queue: Arc::new(crate::act::queue::Shared::new(8)),
        clock: Arc::clone(&clock),
    };
    let egress = Egress::new(Rules::default()).unwrap();
    let forges = Forges::new(client.clone(), egress.clone(), Arc::clone(&counters));
    let fleet = || Fleet::new(client.clone(), Scope::All, egress.clone());
    let (apps, workloads) = (Apps::new(fleet()), Workloads::new(fleet()));
    let calls = Calls::new(leadership.clone(), waker.clone(), egress);
    let at_forges = AtForges::new(leadership.clone(), waker.clone());
    let wake = waker.clone();
    let errands = Errands::new(leadership.clone(), move |work| wake.wake(work.clone()));
    let postings = Postings::new(leadership.clone(), waker.clone());
    let readings = Readings::new(leadership.clone(), waker.clone());
    let wake = waker.clone();
    let repositories = Repositories::new(Arc::clone(&clock), move |access| {
        wake.wake(Work::own(Kind::GitRepositoryAccess, access.clone()));
    });
    Context {
        client,
        errands,
        forges: Arc::new(forges),
        at_forges: Arc::new(at_forges),
        postings: Arc::new(postings),
        repositories: Arc::new(repositories),
        readings: Arc::new(readings),
        promotions: None,
        world,
        clock,
        events,
        audit: Audit::default(),
        decisions: Arc::new(decisions),
        definitions: Arc::default(),
        apps: Arc::new(apps),
        workloads: Arc::new(workloads),
        calls: Arc::new(calls),
        artifacts: None,
        counters,
        shard: Default::default(),
        leadership,
        waker,
    }
}

/// A child that is to be pinned to what the cache knows as admitted.
fn pin() -> Act {
    let pinned = |commit: &str| -> Map<String, Value> {
        let spec = json!({ "url": "u", "ref": { "commit": commit } });
        spec.as_object().unwrap().clone()
    };
    let metadata = json!({ "namespace": "apps", "name": "child", "resourceVersion": "9" });
    let before = json!({ "metadata": metadata, "spec": pinned("b") });
    let before: FluxObject = serde_json::from_value(before).unwrap();
    Act::Write(Box::new(Child {
        kind: FluxKind::Source(SourceKind::GitRepository),
        name: "child".to_owned(),
        spec: pinned("a"),
        annotations: Default::default(),
        labels: Default::default(),
        before: Some(Arc::new(before)),
    }))
}

/// This replica has just begun to lead. The watch of children has brought what the former leader has
/// written, and the watch of gated sources has not brought yet what it has admitted.
#[tokio::test]
async fn nothing_is_written_from_an_earlier_version_of_the_gated_source() {
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GatedSource",
        "metadata": { "namespace": "apps", "name": "app", "resourceVersion": "5" },
        "spec": {
            "sourceRef": { "kind": "GitRepository", "name": "upstream" },
            "gates": { "refs": [{ "name": "production" }] },
        },
    });
    let object: Arc<GatedSource> = Arc::new(serde_json::from_value(object).unwrap());
    let key = ObjectKey::of(object.as_ref());
    for (version, is_newest) in [("6", false), ("5", true)] {
        let seen = Arc::default();
        let context = context(api(version, &seen), world(), noon());
        let report = Report {
            status: object.status.clone().unwrap_or_default(),
            changed: false,
            acts: vec![pin(), pin()],
            wake: None,
        };
        let done = consumer::apply(&context, &key, &object, report).await;
        let seen = seen.lock().unwrap().clone();
        match is_newest {
            // Once is enough for all that is done in one look.
            true => assert_eq!(seen, [Method::GET, Method::PATCH, Method::PATCH]),
            false => {
                assert!(failure::is_overtaken(&done.unwrap_err()));
                assert_eq!(seen, [Method::GET]);
            }
        }
    }
}
