//! Approvals, by the gatekeeper that they are for.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;
use sluice_crds::Approval;

use crate::cache::{Change, Seen};
use crate::key::{KeyRef, ObjectKey};

/// The approvals for one gatekeeper. Replaced as a whole, so that whoever counts them holds still.
type Ballot = Arc<[Arc<Approval>]>;

/// The approvals for each gatekeeper.
#[derive(Default)]
pub(super) struct Ballots(RwLock<HashMap<ObjectKey, Ballot>>);

impl Ballots {
    /// The approvals for a gatekeeper.
    pub(super) fn of(&self, gatekeeper: KeyRef<'_>) -> Ballot {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(&gatekeeper).cloned().unwrap_or_default()
    }

    /// Notes an approval as it was, and as it is. Returns the gatekeepers that it was and is for:
    /// an Approval never changes, but another one may have taken its name.
    pub(super) fn note(&self, change: &Change<'_, Approval>) -> BTreeSet<ObjectKey> {
        let before = change.before.and_then(Seen::object);
        let now = change.now.and_then(Seen::object);
        let gatekeeper = |approval: &Arc<Approval>| ObjectKey {
            namespace: Arc::clone(&change.key.namespace),
            name: approval.spec.gatekeeper_ref.name.as_str().into(),
        };
        let version = |approval: &Arc<Approval>| approval.metadata.resource_version.clone();
        if before.is_some() && before.map(version) == now.map(version) {
            return BTreeSet::new();
        }
        let (was_for, is_for) = (before.map(gatekeeper), now.map(gatekeeper));
        if let Some(gatekeeper) = &was_for {
            self.set(gatekeeper, &change.key.name, None);
        }
        if let Some(gatekeeper) = &is_for {
            self.set(gatekeeper, &change.key.name, now);
        }
        was_for.into_iter().chain(is_for).collect()
    }

    /// Puts an approval in the place of the one of its name.
    fn set(&self, gatekeeper: &ObjectKey, name: &str, approval: Option<&Arc<Approval>>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let ballot = all.get(gatekeeper).cloned().unwrap_or_default();
        let others = ballot
            .iter()
            .filter(|known| known.metadata.name.as_deref() != Some(name));
        let ballot: Ballot = others.chain(approval).cloned().collect();
        if ballot.is_empty() {
            all.remove(gatekeeper);
        } else {
            all.insert(gatekeeper.clone(), ballot);
        }
    }
}
