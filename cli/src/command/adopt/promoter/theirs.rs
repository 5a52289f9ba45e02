//! The objects of GitOps Promoter, as they were written.

use std::fmt;

use serde_json::Value;

use crate::converted::{self, Notes};

/// What is adopted.
pub(super) const GROUP: &str = "promoter.argoproj.io";

/// One of its objects.
#[derive(Debug)]
pub(super) struct Theirs {
    pub(super) kind: String,
    /// Empty for those of the whole cluster.
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) value: Value,
}

impl Theirs {
    pub(super) fn spec(&self) -> &Value {
        &self.value["spec"]
    }

    pub(super) fn notes(&self) -> Notes {
        Notes::new(&self.kind, &self.namespace, &self.name)
    }

    /// Whether it is for that strategy.
    pub(super) fn is_about(&self, strategy: &Self) -> bool {
        self.namespace == strategy.namespace && self.names("promotionStrategyRef") == strategy.name
    }

    /// Whether a controller of GitOps Promoter has made it.
    pub(super) fn is_made(&self) -> bool {
        let owners = self.value["metadata"]["ownerReferences"].as_array();
        let mut owners = owners.into_iter().flatten();
        owners.any(|owner| converted::is_of(owner, GROUP))
    }

    /// The name of another object in a field.
    pub(super) fn names(&self, field: &str) -> &str {
        self.spec()[field]["name"].as_str().unwrap_or_default()
    }
}

impl fmt::Display for Theirs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            namespace,
            name,
            value: _,
        } = self;
        match namespace.as_str() {
            "" => write!(f, "{kind} {name}"),
            namespace => write!(f, "{kind} {namespace}/{name}"),
        }
    }
}

/// All that there are, in the order in which they are written.
#[derive(Debug)]
pub(super) struct Found(Vec<Theirs>);

impl Found {
    /// Those that name no namespace are in `namespace`.
    pub(super) fn of(objects: Vec<(String, Value)>, namespace: &str) -> Self {
        let objects = objects.into_iter().map(|(_, value)| value);
        let theirs = objects.filter(|value| converted::is_of(value, GROUP));
        Self(theirs.map(|value| read(value, namespace)).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Theirs> {
        self.0.iter()
    }

    pub(super) fn kind(&self, kind: &str) -> impl Iterator<Item = &Theirs> {
        self.0.iter().filter(move |it| it.kind == kind)
    }

    pub(super) fn find(&self, kind: &str, namespace: &str, name: &str) -> Option<&Theirs> {
        self.kind(kind)
            .find(|it| it.namespace == namespace && it.name == name)
    }
}

fn read(value: Value, namespace: &str) -> Theirs {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, metadata) = (text(&value["kind"]), &value["metadata"]);
    let namespace = match (kind.as_str(), metadata["namespace"].as_str()) {
        ("ClusterScmProvider", _) => "",
        (_, Some(own)) => own,
        (_, None) => namespace,
    };
    Theirs {
        namespace: namespace.to_owned(),
        name: text(&metadata["name"]),
        kind,
        value,
    }
}
