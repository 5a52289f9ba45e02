//! A kind that only tests know: all that a new consumer of gates needs here, and nothing more. Beside this
//! file it has a line in the table of kinds, a line in `look`, and a cache.

use std::sync::{Arc, Mutex};

use http::Method;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sluice_core::gate::set;
use sluice_crds::{Gate, GatedSource, Subject};

use crate::act::reconcile::gated_source::tests::{api, context, world};
use crate::act::reconcile::write::Writer;
use crate::act::reconcile::{Context, Outcome, Reconciled, consumer_interests, look, status};
use crate::cluster::key::{Cluster, KeyRef, ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::lease::Leadership;
use crate::observe::cache::{Cache, Change, Seen};
use crate::observe::clock::{Jumps, SetClock};
use crate::observe::world::World;
use crate::observe::world::tests::probe::{Probe, ProbeStatus};
use crate::tell::definitions::Defines;

impl Defines for Probe {
    fn spec(&self) -> &impl Serialize {
        &self.spec
    }

    fn observed(&self) -> Option<i64> {
        self.status.as_ref()?.observed_generation
    }
}

impl Reconciled for Probe {
    const KIND: Kind = Kind::Probe;
    const MANAGER: &'static str = "gate-controller-probes";

    fn cache(world: &World) -> &Cache<Self> {
        &world.probes
    }

    fn interests(&self, key: &ObjectKey) -> Vec<Work> {
        consumer_interests(key, &self.spec.gates.refs)
    }

    fn may_matter(_: &Change<'_, Self>) -> bool {
        false
    }

    async fn look(
        context: &Context,
        key: &ObjectKey,
        object: Arc<Self>,
        at: Timestamp,
    ) -> Result<Outcome, kube::Error> {
        let subject = Subject {
            kind: "Probe".to_owned(),
            namespace: key.namespace.to_string(),
            name: Some(key.name.to_string()),
            environment: None,
            action: "probe".to_owned(),
            step: None,
            revision: None,
        };
        let world = context.world.as_ref();
        let gates = set::gather(world, Some(&object.spec.gates), &subject, at);
        let decision = gates.decide(subject, world.now(at));
        let status = ProbeStatus {
            observed_generation: object.metadata.generation,
            passes: decision.allowed,
        };
        if object.status.as_ref() != Some(&status) {
            status::write(context, object.as_ref(), status).await?;
        }
        Ok(Outcome::Wake(decision.next.map(|next| next.0)))
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey {
        namespace: "apps".into(),
        name: name.into(),
    }
}

/// Has an object of ours be there.
fn hold<K: Reconciled + DeserializeOwned>(context: &Context, spec: &Value) {
    let key = key("app");
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": K::KIND.as_str(), "spec": spec,
        "metadata": { "namespace": "apps", "name": "app", "resourceVersion": "5", "generation": 1 },
    });
    let object: Arc<K> = Arc::new(serde_json::from_value(object).unwrap());
    let work = Work::own(K::KIND, key.clone());
    context.world.note(&work, object.interests(&key));
    K::cache(&context.world).hold(&key, Some(Seen::Object(object)));
}

fn noon() -> Timestamp {
    "2026-11-20T12:00:00Z".parse().unwrap()
}

/// A gate, a gated source and a probe behind it, and an API server that notes what is asked of it.
fn scene(seen: &Arc<Mutex<Vec<Method>>>) -> Context {
    let context = context(api("5", seen), world(), Arc::new(SetClock::new(noon())));
    let gates = json!({ "refs": [{ "name": "app" }] });
    let source = json!({ "kind": "GitRepository", "name": "upstream" });
    hold::<Gate>(&context, &json!({ "default": "open" }));
    hold::<GatedSource>(&context, &json!({ "sourceRef": source, "gates": gates }));
    hold::<Probe>(&context, &json!({ "gates": gates }));
    context
}

fn probe() -> Work {
    Work::own(Kind::Probe, key("app"))
}

#[tokio::test]
async fn a_new_consumer_is_woken_by_whatever_wakes_the_others() {
    let context = scene(&Arc::default());
    let policy = KeyRef {
        namespace: "",
        name: "freeze",
    };
    let namespace = KeyRef {
        namespace: "",
        name: "apps",
    };
    for what in [
        Work::own(Kind::Gate, key("app")),
        Work::own(Kind::GatePolicy, policy.into()),
        Work::own(Kind::Namespace, namespace.into()),
    ] {
        context.waker.concerned(&what);
        for expected in [Work::own(Kind::GatedSource, key("app")), probe()] {
            let work = context.waker.queue.next(context.clock.as_ref()).await;
            assert_eq!(work, expected, "{what}");
            context.waker.queue.done(&work);
        }
    }
    let unknown = Work::own(Kind::Gate, key("other"));
    assert_eq!(context.world.concerned(&unknown), [].into());
}

#[tokio::test]
async fn a_new_consumer_writes_as_the_others_do() {
    let seen = Arc::default();
    let mut context = scene(&seen);
    let requests = || seen.lock().unwrap().len();
    let passes = |context: &Context| {
        let seen = context.world.probes.get(key("app").borrowed()).unwrap();
        let probe = seen.object().unwrap();
        let version = probe.metadata.resource_version.clone();
        (version, probe.status.as_ref().is_some_and(|it| it.passes))
    };
    look(&context, &probe()).await.unwrap();
    // The cache knows at once, and another look does not write the same again.
    assert_eq!(passes(&context), (Some("10".to_owned()), true));
    look(&context, &probe()).await.unwrap();
    assert_eq!(requests(), 1);
    // A replica that has lost the lead writes nothing, even in the middle of a look.
    hold::<Gate>(&context, &json!({ "default": "closed" }));
    let jumps = Arc::new(Jumps::new(Arc::clone(&context.clock)));
    context.leadership = Leadership::new(jumps).1;
    assert!(look(&context, &probe()).await.is_err());
    assert_eq!((requests(), passes(&context).1), (1, true));
}

#[tokio::test]
async fn nothing_on_another_cluster_is_looked_at_or_written_to() {
    let seen = Arc::default();
    let context = scene(&seen);
    let there = Work {
        cluster: Cluster::Named(Arc::new("prod-eu".into())),
        ..probe()
    };
    let outcome = look(&context, &there).await.unwrap();
    assert!(matches!(outcome, Outcome::NotOurs), "{outcome:?}");
    let writer = Writer {
        context: &context,
        work: there,
        manager: Probe::MANAGER,
    };
    assert!(writer.delete(&ObjectMeta::default()).await.is_err());
    assert_eq!(seen.lock().unwrap().len(), 0);
}
