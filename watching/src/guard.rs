//! Objects as the API server has them, which may be more than this version can read.
//!
//! As kube's `DeserializeGuard`, but from the text itself. kube's guard first makes a tree of each object
//! and clones every part of it: with ten thousand objects, that took most of the time of a list and
//! fragmented the memory.

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
    /// Which object it is, and of which version: no more of its metadata.
    pub metadata: ObjectMeta,
}

/// The name by which `serde_json` knows a text within a text: where it reads a value that may be
/// anything, it would read the text of this field instead.
const RAW: &str = "$serde_json::private::RawValue";

/// What is read of every object, even if it also has times that only Go can read, or fields that are
/// nested too deeply to be read.
#[derive(Deserialize)]
struct Named {
    metadata: Names,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Names {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
}

impl From<Names> for ObjectMeta {
    fn from(names: Names) -> Self {
        Self {
            name: names.name,
            namespace: names.namespace,
            uid: names.uid,
            resource_version: names.resource_version,
            ..Self::default()
        }
    }
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Guard<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let why = match text.get().contains(RAW) {
            true => format!("it has a field `{RAW}`"),
            false => match serde_json::from_str(text.get()) {
                Ok(object) => return Ok(Self(Ok(object))),
                Err(why) => why.to_string(),
            },
        };
        let named: Named = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let metadata = named.metadata.into();
        Ok(Self(Err(Unreadable { why, metadata })))
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
    use rstest::rstest;
    use sluice_crds::Gate;

    use super::*;

    const GOOD: &str = r#"{"metadata": {"name": "good", "resourceVersion": "3"}, "spec": {}}"#;

    fn bad(metadata: &str, spec: &str) -> String {
        format!(
            r#"{{"metadata": {{"name": "bad", "resourceVersion": "7"{metadata}}}, "spec": {{{spec}}}}}"#
        )
    }

    /// `depth` objects, one in the other.
    fn nested(depth: usize) -> String {
        r#"{"f:a": "#.repeat(depth) + "{}" + &"}".repeat(depth)
    }

    #[rstest]
    #[case::a_spec(bad("", r#""gatekeepers": 5"#), "invalid type: integer `5`")]
    #[case::a_time(
        bad(r#", "managedFields": [{"time": "9999-12-31T23:59:59Z"}]"#, ""),
        "overflowed"
    )]
    #[case::depth(
        bad(&format!(r#", "managedFields": [{{"fieldsV1": {}}}]"#, nested(200)), ""),
        "recursion limit exceeded"
    )]
    #[case::a_text_in_the_text(bad("", &format!(r#""a": {{"{RAW}": "{{}}"}}"#)), "it has a field")]
    fn what_cannot_be_read_hides_nothing_else(#[case] bad: String, #[case] why: &str) {
        let list = format!(r#"{{"metadata": {{}}, "items": [{bad}, {GOOD}]}}"#);
        let list: ObjectList<Guard<Gate>> = serde_json::from_str(&list).unwrap();
        let names: Vec<_> = list.items.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["bad", "good"]);
        let said = list.items[0].0.as_ref().unwrap_err();
        assert!(said.why.contains(why), "{}", said.why);
        assert!(list.items[1].0.is_ok());

        for kind in ["ADDED", "MODIFIED", "DELETED"] {
            let line = format!(r#"{{"type": "{kind}", "object": {bad}}}"#);
            let event: WatchEvent<Guard<Gate>> = serde_json::from_str(&line).unwrap();
            let (WatchEvent::Added(gate) | WatchEvent::Modified(gate) | WatchEvent::Deleted(gate)) =
                event
            else {
                panic!("{event:?}");
            };
            assert!(gate.0.is_err());
            assert_eq!(gate.resource_version().as_deref(), Some("7"));
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
