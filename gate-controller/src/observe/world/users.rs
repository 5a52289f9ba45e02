//! Which objects name which others, such as gates their gatekeepers.

use std::hash::Hash;

use hashbrown::{HashMap, HashSet};

use crate::cluster::key::ObjectKey;

/// Which objects name which others, both ways.
pub(super) struct Users<U = ObjectKey, N = ObjectKey> {
    users: HashMap<N, HashSet<U>>,
    named: HashMap<U, Box<[N]>>,
}

impl<U, N> Default for Users<U, N> {
    fn default() -> Self {
        Self {
            users: HashMap::new(),
            named: HashMap::new(),
        }
    }
}

impl<U: Clone + Eq + Hash, N: Clone + Ord + Hash> Users<U, N> {
    /// From now on `user` names these.
    pub(super) fn set(&mut self, user: &U, mut named: Vec<N>) {
        named.sort_unstable();
        named.dedup();
        if self.named.get(user).map(AsRef::as_ref).unwrap_or_default() == named {
            return;
        }
        for former in self.named.remove(user).into_iter().flatten() {
            if let Some(users) = self.users.get_mut(&former) {
                users.remove(user);
                if users.is_empty() {
                    self.users.remove(&former);
                }
            }
        }
        for name in &named {
            let users = self.users.entry(name.clone()).or_default();
            users.insert(user.clone());
        }
        if !named.is_empty() {
            self.named.insert(user.clone(), named.into());
        }
    }

    /// Those that name it.
    pub(super) fn of(&self, named: &N) -> Vec<U> {
        let users = self.users.get(named);
        users.into_iter().flatten().cloned().collect()
    }

    /// Whether any names it.
    pub(super) fn any(&self, named: &N) -> bool {
        self.users.contains_key(named)
    }
}
