//! Which GitRepositoryAccesses open the same repository.
//!
//! What comes in: for each access, what names its repository, made once when its watch brings it. What goes out:
//! all that open the same one. Whatever others write about other repositories costs nobody anything here.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::RwLock;

use crate::cluster::key::ObjectKey;

/// Which accesses open the same repository, both ways.
#[derive(Default)]
pub(super) struct Openers(RwLock<Index>);

#[derive(Default)]
struct Index {
    /// What each access opens.
    opens: HashMap<ObjectKey, Arc<str>>,
    by: HashMap<Arc<str>, Arc<BTreeSet<ObjectKey>>>,
}

impl Openers {
    /// From now on an access opens this repository. None: nothing that could be named.
    pub(super) fn set(&self, access: &ObjectKey, repository: Option<&str>) {
        let mut index = self.0.write();
        let index = &mut *index;
        let before = index.opens.get(access).cloned();
        if before.as_deref() == repository {
            return;
        }
        if let Some(before) = before {
            index.leave(access, &before);
        }
        if let Some(repository) = repository {
            let known = index.by.get_key_value(repository).map(|(it, _)| it);
            let repository = known.map_or_else(|| repository.into(), Arc::clone);
            let all = index.by.entry(Arc::clone(&repository)).or_default();
            Arc::make_mut(all).insert(access.clone());
            index.opens.insert(access.clone(), repository);
        }
    }

    /// Those that open the same repository, this one among them whatever it opens.
    pub(super) fn beside(&self, access: &ObjectKey) -> Arc<BTreeSet<ObjectKey>> {
        let index = self.0.read();
        let opened = index.opens.get(access);
        let all = opened.and_then(|repository| index.by.get(repository));
        all.map_or_else(|| Arc::new([access.clone()].into()), Arc::clone)
    }
}

impl Index {
    fn leave(&mut self, access: &ObjectKey, repository: &str) {
        self.opens.remove(access);
        let Some(all) = self.by.get_mut(repository) else {
            return;
        };
        Arc::make_mut(all).remove(access);
        if all.is_empty() {
            self.by.remove(repository);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::key::KeyRef;

    fn access(name: &str) -> ObjectKey {
        let namespace = "apps";
        KeyRef { namespace, name }.into()
    }

    fn beside(openers: &Openers, name: &str) -> Vec<String> {
        let all = openers.beside(&access(name));
        all.iter().map(|it| it.name.to_string()).collect()
    }

    #[test]
    fn accesses_are_beside_each_other_as_long_as_they_open_the_same() {
        let openers = Openers::default();
        assert_eq!(beside(&openers, "a"), ["a"]);
        for name in ["a", "b"] {
            openers.set(&access(name), Some("git.example.com/acme/shop"));
        }
        openers.set(&access("c"), Some("git.example.com/acme/other"));
        assert_eq!(beside(&openers, "a"), ["a", "b"]);
        assert_eq!(beside(&openers, "c"), ["c"]);
        openers.set(&access("b"), Some("git.example.com/acme/other"));
        assert_eq!(beside(&openers, "a"), ["a"]);
        assert_eq!(beside(&openers, "b"), ["b", "c"]);
        // An address that is none opens nothing.
        openers.set(&access("b"), None);
        assert_eq!(beside(&openers, "c"), ["c"]);
        for name in ["a", "b", "c"] {
            openers.set(&access(name), None);
        }
        let index = openers.0.read();
        assert_eq!((index.opens.len(), index.by.len()), (0, 0));
    }

    /// Each look takes what there is, and copies nothing.
    #[test]
    fn what_others_open_is_not_gone_through() {
        let openers = Openers::default();
        for n in 0..1_000 {
            let name = format!("other-{n}");
            openers.set(&access(&name), Some("git.example.com/acme/other"));
        }
        openers.set(&access("mine"), Some("git.example.com/acme/shop"));
        assert_eq!(beside(&openers, "mine"), ["mine"]);
        let first = openers.beside(&access("other-1"));
        assert!(Arc::ptr_eq(&first, &openers.beside(&access("other-2"))));
    }
}
