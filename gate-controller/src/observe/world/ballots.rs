//! Approvals, by the gatekeeper or the pipeline that they are for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::RwLock;
use sluice_core::gatekeeper::approval::Ballot;
use sluice_crds::Approval;

use crate::cluster::key::{KeyRef, ObjectKey};
use crate::observe::cache::{Change, Seen};

/// What is wrong with objects, by their names.
type Faults = BTreeMap<Arc<str>, Arc<str>>;

/// Approvals by their names.
type Named = BTreeMap<Arc<str>, Arc<Approval>>;

/// The approvals for each gatekeeper. A reader that counts some of them keeps them as they were.
#[derive(Default)]
pub(super) struct Ballots {
    of: RwLock<HashMap<ObjectKey, Arc<Ballot>>>,
    /// Those on promotions, by pipeline and by their own name.
    on: RwLock<HashMap<ObjectKey, Named>>,
    /// Those of each namespace that this version cannot read, by name, and why.
    unreadable: RwLock<HashMap<Arc<str>, Faults>>,
}

impl Ballots {
    /// The approvals for a gatekeeper.
    pub(super) fn of(&self, gatekeeper: KeyRef<'_>) -> Arc<Ballot> {
        let all = self.of.read();
        all.get(&gatekeeper).cloned().unwrap_or_default()
    }

    /// The approvals of a pipeline's promotions.
    pub(super) fn on(&self, pipeline: &ObjectKey) -> Vec<Arc<Approval>> {
        let all = self.on.read();
        let of = all.get(pipeline).into_iter().flatten();
        of.map(|(_, approval)| Arc::clone(approval)).collect()
    }

    /// What is wrong with an approval in a namespace that this version cannot read, if there is
    /// one.
    pub(super) fn unreadable_in(&self, namespace: &str) -> Option<Arc<str>> {
        let all = self.unreadable.read();
        all.get(namespace)?.values().next().cloned()
    }

    /// Notes whether this version can read an approval. Returns whether that has changed.
    pub(super) fn note_readable(&self, change: &Change<'_, Approval>) -> bool {
        let ObjectKey { namespace, name } = change.key;
        let why = match change.now {
            Some(Seen::Unreadable(why)) => Some(Arc::<str>::from(format!(
                "this version cannot read the Approval {name}, which may be a rejection: {why}; \
                 delete it, or upgrade gate-controller"
            ))),
            Some(Seen::Object(_)) | None => None,
        };
        let mut all = self.unreadable.write();
        if why.is_none() && !all.contains_key(namespace) {
            return false;
        }
        let here = all.entry(Arc::clone(namespace)).or_default();
        let before = match &why {
            Some(why) => here.insert(Arc::clone(name), Arc::clone(why)),
            None => here.remove(name),
        };
        if here.is_empty() {
            all.remove(namespace);
        }
        before != why
    }

    /// Notes an approval as it was, and as it is. Returns the gatekeepers that it was for and is for: an
    /// Approval never changes, but another one may have been created with its name. One on a promotion is
    /// for none.
    pub(super) fn note(&self, change: &Change<'_, Approval>) -> BTreeSet<ObjectKey> {
        let before = change.before.and_then(Seen::object);
        let now = change.now.and_then(Seen::object);
        let gatekeeper = |approval: &Arc<Approval>| {
            let named = approval.spec.gatekeeper_ref.as_ref()?;
            Some(ObjectKey {
                namespace: Arc::clone(&change.key.namespace),
                name: named.name.as_str().into(),
            })
        };
        let version = |approval: &Arc<Approval>| approval.metadata.resource_version.clone();
        if before.is_some() && before.map(version) == now.map(version) {
            return BTreeSet::new();
        }
        self.note_promotion(change.key, before, now);
        let (was_for, is_for) = (before.and_then(gatekeeper), now.and_then(gatekeeper));
        let mut all = self.of.write();
        if let (Some(gatekeeper), Some(approval)) = (&was_for, before)
            && let Some(ballot) = all.get_mut(gatekeeper)
        {
            Arc::make_mut(ballot).remove(approval);
            if ballot.is_empty() {
                all.remove(gatekeeper);
            }
        }
        if let (Some(gatekeeper), Some(approval)) = (&is_for, now) {
            let ballot = all.entry(gatekeeper.clone()).or_default();
            Arc::make_mut(ballot).insert(Arc::clone(approval));
        }
        drop(all);
        was_for.into_iter().chain(is_for).collect()
    }

    fn note_promotion(
        &self,
        key: &ObjectKey,
        before: Option<&Arc<Approval>>,
        now: Option<&Arc<Approval>>,
    ) {
        let pipeline = |approval: &Arc<Approval>| {
            let named = approval.spec.pipeline_ref.as_ref()?;
            Some(key.naming(None, &named.name))
        };
        let (was_on, is_on) = (before.and_then(pipeline), now.and_then(pipeline));
        if was_on.is_none() && is_on.is_none() {
            return;
        }
        let mut all = self.on.write();
        if let Some(pipeline) = was_on
            && let Some(of) = all.get_mut(&pipeline)
        {
            of.remove(&key.name);
            if of.is_empty() {
                all.remove(&pipeline);
            }
        }
        if let (Some(pipeline), Some(approval)) = (is_on, now) {
            let of = all.entry(pipeline).or_default();
            of.insert(Arc::clone(&key.name), Arc::clone(approval));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key() -> ObjectKey {
        ObjectKey {
            namespace: "apps".into(),
            name: "vote".into(),
        }
    }

    fn approval(gatekeeper: &str, version: &str) -> Seen<Approval> {
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Approval",
            "metadata": { "name": "vote", "namespace": "apps", "resourceVersion": version },
            "spec": {
                "gatekeeperRef": { "name": gatekeeper }, "revision": "main",
                "decision": "approve", "by": "alice",
            },
        });
        Seen::Object(Arc::new(serde_json::from_value(object).unwrap()))
    }

    fn count(ballots: &Ballots, gatekeeper: &str) -> usize {
        let (namespace, name) = ("apps", gatekeeper);
        ballots.of(KeyRef { namespace, name }).len()
    }

    #[test]
    fn a_ballot_follows_its_approvals_and_stays_the_same_for_those_who_count_it() {
        let (ballots, key) = (Ballots::default(), key());
        let note = |before: Option<&Seen<Approval>>, now: Option<&Seen<Approval>>| {
            let key = &key;
            ballots.note(&Change { key, before, now }).len()
        };
        let (first, other) = (approval("release", "1"), approval("other", "2"));
        assert_eq!(note(None, Some(&first)), 1);
        let (namespace, name) = ("apps", "release");
        let held = ballots.of(KeyRef { namespace, name });
        assert_eq!(note(Some(&first), Some(&first)), 0);
        // Another approval with the same name is for another gatekeeper.
        assert_eq!(note(Some(&first), Some(&other)), 2);
        let counts = || (count(&ballots, "release"), count(&ballots, "other"));
        assert_eq!((held.len(), counts()), (1, (0, 1)));
        assert_eq!(note(Some(&other), None), 1);
        assert_eq!(counts(), (0, 0));
    }

    #[test]
    fn those_on_promotions_are_found_by_their_pipeline() {
        let (ballots, key) = (Ballots::default(), key());
        let on = |pipeline: &str, version: &str| {
            let Seen::Object(object) = approval("release", version) else {
                panic!("it is an object")
            };
            let mut object = Arc::unwrap_or_clone(object);
            object.spec.gatekeeper_ref = None;
            let named = json!({"name": pipeline, "environment": "prod", "run": 1});
            object.spec.pipeline_ref = serde_json::from_value(named).unwrap();
            Seen::Object(Arc::new(object))
        };
        let note = |before: Option<&Seen<Approval>>, now: Option<&Seen<Approval>>| {
            let key = &key;
            ballots.note(&Change { key, before, now }).len()
        };
        let count = |pipeline: &str| ballots.on(&key.naming(None, pipeline)).len();
        let (podinfo, shop) = (on("podinfo", "1"), on("shop", "2"));
        assert_eq!(note(None, Some(&podinfo)), 0);
        assert_eq!((count("podinfo"), count("shop")), (1, 0));
        // It was created again, for another one.
        note(Some(&podinfo), Some(&shop));
        assert_eq!((count("podinfo"), count("shop")), (0, 1));
        note(Some(&shop), None);
        assert_eq!(count("shop"), 0);
        assert!(ballots.on.read().is_empty());
    }

    #[test]
    fn an_approval_that_cannot_be_read_is_told_until_it_is_gone() {
        let (ballots, key) = (Ballots::default(), key());
        let note = |now: Option<&Seen<Approval>>| {
            let (key, before) = (&key, None);
            ballots.note_readable(&Change { key, before, now })
        };
        assert!(!note(Some(&approval("release", "1"))));
        let odd = Seen::Unreadable("unknown variant `abstain`".into());
        assert!(note(Some(&odd)) && !note(Some(&odd)));
        let told = ballots.unreadable_in("apps").unwrap();
        assert_eq!(
            &*told,
            "this version cannot read the Approval vote, which may be a rejection: unknown variant \
             `abstain`; delete it, or upgrade gate-controller"
        );
        assert_eq!(ballots.unreadable_in("other"), None);
        assert!(note(None) && !note(None));
        assert_eq!(ballots.unreadable_in("apps"), None);
    }
}
