//! `revisions`: lists of what may, and may not, go out.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigMapKeyReference;

/// Admits the revisions that match `allow` or one of the lists in `allowFrom`, and neither `deny`
/// nor a list in `denyFrom`.
///
/// An entry is one of: a commit or digest, in full or its first 12 or more characters, with or
/// without its algorithm (`sha1:4f2a…`); a range of versions that starts with an operator
/// (`>=1.4.0, <2`, `^1.4`, `~1.4.2`); else a glob over the name of a branch or tag, the version, or
/// the whole revision (`release-*`, `1.4.?`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("[has(self.allow) && size(self.allow) > 0, has(self.allowFrom) && size(self.allowFrom) > 0, has(self.deny) && size(self.deny) > 0, has(self.denyFrom) && size(self.denyFrom) > 0].exists(given, given)")
        .message("revisions without a list say nothing; write at least one of allow, allowFrom, deny, denyFrom")
)]
pub struct Revisions {
    /// What may go out. If both `allow` and `allowFrom` are empty: everything that is not denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 256)))]
    pub allow: Vec<String>,

    /// Lists of what may go out: keys of ConfigMaps, with one entry in each line. What follows a `#` is
    /// a comment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub allow_from: Vec<ListSource>,

    /// What may not go out, even if it is allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 256)))]
    pub deny: Vec<String>,

    /// Lists of what may not go out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub deny_from: Vec<ListSource>,
}

impl Revisions {
    /// The ConfigMaps that its lists are read from: first what may go out, then what may not.
    pub fn config_map_refs(&self) -> impl Iterator<Item = &ConfigMapKeyReference> {
        let lists = self.allow_from.iter().chain(&self.deny_from);
        lists.map(|list| &list.config_map_ref)
    }
}

/// Where a list is read from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListSource {
    /// A key of a ConfigMap in the gatekeeper's namespace.
    pub config_map_ref: ConfigMapKeyReference,
}
