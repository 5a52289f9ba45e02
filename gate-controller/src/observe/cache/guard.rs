//! Objects as the API server has them, which may be more than this version can read.
//!
//! As kube's `DeserializeGuard`, but from the text itself. That one makes a tree of each object
//! first and clones every part of it: of ten thousand objects, that took most of the time of a list
//! and left the memory between them in pieces.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// An object, or why it cannot be read.
#[derive(Clone, Debug)]
pub struct Guard<K>(pub Result<K, Unreadable>);

/// What can be said of an object that cannot be read.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// What is wrong with it.
    pub why: String,
    /// Its metadata.
    pub metadata: ObjectMeta,
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Guard<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Named {
            metadata: ObjectMeta,
        }
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let unreadable = match serde_json::from_str(text.get()) {
            Ok(object) => return Ok(Self(Ok(object))),
            Err(why) => why.to_string(),
        };
        let Named { metadata } = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self(Err(Unreadable {
            why: unreadable,
            metadata,
        })))
    }
}

impl<K: Resource> Resource for Guard<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(kind)
    }

    fn group(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::group(kind)
    }

    fn version(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::version(kind)
    }

    fn plural(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(kind)
    }

    fn meta(&self) -> &ObjectMeta {
        match &self.0 {
            Ok(object) => object.meta(),
            Err(unreadable) => &unreadable.metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match &mut self.0 {
            Ok(object) => object.meta_mut(),
            Err(unreadable) => &mut unreadable.metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;
    use kube::core::{ObjectList, WatchEvent};
    use sluice_crds::Gate;

    use super::*;

    const GOOD: &str = r#"{"metadata": {"name": "good"}, "spec": {}}"#;
    const BAD: &str = r#"{"metadata": {"name": "bad"}, "spec": {"gatekeepers": 5}}"#;

    fn names(gates: &[Guard<Gate>]) -> Vec<(String, bool)> {
        let names = gates.iter().map(|gate| (gate.name_any(), gate.0.is_ok()));
        names.collect()
    }

    #[test]
    fn what_cannot_be_read_hides_nothing_else() {
        let list = format!(r#"{{"metadata": {{}}, "items": [{BAD}, {GOOD}]}}"#);
        let list: ObjectList<Guard<Gate>> = serde_json::from_str(&list).unwrap();
        let expected = [("bad".to_owned(), false), ("good".to_owned(), true)];
        assert_eq!(names(&list.items), expected);
        let why = list.items[0].0.as_ref().unwrap_err().why.as_str();
        assert!(why.contains("invalid type: integer `5`"), "{why}");
    }

    #[test]
    fn what_a_watch_brings_is_read_too() {
        for (object, is_readable) in [(GOOD, true), (BAD, false)] {
            let line = format!(r#"{{"type": "MODIFIED", "object": {object}}}"#);
            let event: WatchEvent<Guard<Gate>> = serde_json::from_str(&line).unwrap();
            let WatchEvent::Modified(gate) = event else {
                panic!("{event:?}");
            };
            assert_eq!(gate.0.is_ok(), is_readable);
        }
    }

    #[test]
    fn what_has_no_name_is_no_object() {
        let nameless = serde_json::from_str::<Guard<Gate>>("[]").unwrap_err();
        assert!(
            nameless.to_string().contains("invalid length"),
            "{nameless}"
        );
    }
}
