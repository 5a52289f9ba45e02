//! Which GitRepositoryAccesses open the same repository.
//!
//! What comes in: for each access, what names its repository, made once when its watch brings it, and whether it has
//! ever read that. What goes out: all that open the same one, and those of them that have read it. Whatever others
//! write about other repositories costs nobody anything here, nor what they write without a right to read.

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
    by: HashMap<Arc<str>, Opened>,
    /// The accesses that have read theirs.
    readers: BTreeSet<ObjectKey>,
}

/// The accesses that open a repository.
#[derive(Default)]
struct Opened {
    all: Arc<BTreeSet<ObjectKey>>,
    readers: Arc<BTreeSet<ObjectKey>>,
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
        let Some(repository) = repository else {
            index.readers.remove(access);
            return;
        };
        let known = index.by.get_key_value(repository).map(|(it, _)| it);
        let repository = known.map_or_else(|| repository.into(), Arc::clone);
        let opened = index.by.entry(Arc::clone(&repository)).or_default();
        Arc::make_mut(&mut opened.all).insert(access.clone());
        if index.readers.contains(access) {
            Arc::make_mut(&mut opened.readers).insert(access.clone());
        }
        index.opens.insert(access.clone(), repository);
    }

    /// An access has read what it opens. That stays so until it is gone.
    pub(super) fn note_read(&self, access: &ObjectKey) {
        if self.0.read().readers.contains(access) {
            return;
        }
        let mut index = self.0.write();
        let index = &mut *index;
        index.readers.insert(access.clone());
        let opened = index.opens.get(access);
        if let Some(opened) = opened.and_then(|repository| index.by.get_mut(repository)) {
            Arc::make_mut(&mut opened.readers).insert(access.clone());
        }
    }

    /// Those that open the same repository and have read it, and this one whatever it opens.
    pub(super) fn readers(&self, access: &ObjectKey) -> Arc<BTreeSet<ObjectKey>> {
        let index = self.0.read();
        let opened = index.opens.get(access);
        let opened = opened.and_then(|repository| index.by.get(repository));
        let mut readers = opened.map(|it| Arc::clone(&it.readers)).unwrap_or_default();
        if !readers.contains(access) {
            Arc::make_mut(&mut readers).insert(access.clone());
        }
        readers
    }

    /// Those that open the same repository, this one among them whatever it opens.
    pub(super) fn beside(&self, access: &ObjectKey) -> Arc<BTreeSet<ObjectKey>> {
        let index = self.0.read();
        let opened = index.opens.get(access);
        let opened = opened.and_then(|repository| index.by.get(repository));
        let all = opened.map(|it| Arc::clone(&it.all));
        all.unwrap_or_else(|| Arc::new([access.clone()].into()))
    }
}

impl Index {
    fn leave(&mut self, access: &ObjectKey, repository: &str) {
        self.opens.remove(access);
        let Some(opened) = self.by.get_mut(repository) else {
            return;
        };
        Arc::make_mut(&mut opened.readers).remove(access);
        Arc::make_mut(&mut opened.all).remove(access);
        if opened.all.is_empty() {
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
        assert!(index.readers.is_empty());
    }

    /// Everybody can make any number of accesses with anybody's address.
    #[test]
    fn those_that_have_read_nothing_are_not_gone_through() {
        let openers = Openers::default();
        let readers = |name| {
            let all = openers.readers(&access(name));
            let names = all.iter().map(|it| it.name.to_string());
            names.collect::<Vec<_>>()
        };
        // It may be known before what it opens is.
        openers.note_read(&access("early"));
        for name in ["early", "mine", "forged-1", "forged-2"] {
            openers.set(&access(name), Some("git.example.com/acme/shop"));
        }
        assert_eq!(readers("mine"), ["early", "mine"]);
        openers.note_read(&access("mine"));
        assert_eq!(readers("forged-1"), ["early", "forged-1", "mine"]);
        let first = openers.readers(&access("mine"));
        assert!(Arc::ptr_eq(&first, &openers.readers(&access("early"))));
        // Another one of its name has read nothing.
        openers.set(&access("early"), None);
        openers.set(&access("early"), Some("git.example.com/acme/shop"));
        assert_eq!(readers("mine"), ["mine"]);
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
