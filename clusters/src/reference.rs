//! From a `clusterRef` to the Secret that has the kubeconfig: a pure rule.
//!
//! A Secret is named by itself. The Secret of a Cluster of Cluster API is `<name>-kubeconfig`, and the
//! Cluster is not read. A GitopsCluster names its Secret in `secretRef`, or a Cluster in
//! `capiClusterRef`. All of them are in the namespace of the reference.
//!
//! It uses [`wanted`](crate::wanted) and [`sight`](crate::sight).

use std::sync::Arc;

use serde_json::Value;
use sluice_egress::secrets::is_object_name;

use crate::sight::Unknown;
use crate::wanted::{Cluster, Kind, SecretKey};

/// The annotation of a Secret that names the namespaces which may use it, with commas between them. Its
/// own namespace always may.
pub const ALLOWED_NAMESPACES: &str = "sluice.dev/allowed-namespaces";

/// What a `clusterRef` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// A Secret with a kubeconfig.
    Secret,
    /// A Cluster of Cluster API.
    Cluster,
    /// A GitopsCluster.
    GitopsCluster,
}

impl ReferenceKind {
    /// The word, as the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            ReferenceKind::Secret => "Secret",
            ReferenceKind::Cluster => "Cluster",
            ReferenceKind::GitopsCluster => "GitopsCluster",
        }
    }

    /// Its group. Its version is not looked at.
    fn group(self) -> &'static str {
        match self {
            ReferenceKind::Secret => "",
            ReferenceKind::Cluster => "cluster.x-k8s.io",
            ReferenceKind::GitopsCluster => "gitops.weave.works",
        }
    }
}

/// A `clusterRef`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// What it names.
    pub kind: ReferenceKind,
    /// Its name.
    pub name: String,
    /// Its namespace. None: that of the object with the reference.
    pub namespace: Option<String>,
    /// Its group and version. None: those of the kind.
    pub api_version: Option<String>,
}

impl Reference {
    /// The kind of GitopsClusters, which are watched on our own cluster.
    pub fn gitops_clusters() -> Kind {
        let kind = ReferenceKind::GitopsCluster;
        Kind {
            group: kind.group().to_owned(),
            kind: kind.as_str().to_owned(),
        }
    }

    /// The namespace of what is named by an object in the namespace `own`.
    pub fn namespace<'a>(&'a self, own: &'a str) -> &'a str {
        self.namespace.as_deref().unwrap_or(own)
    }

    /// The cluster that an object in the namespace `own` names. `gitops` gives the GitopsCluster as it is
    /// known, and is asked only if the reference names one.
    ///
    /// # Errors
    /// The reference cannot be right, or what it names is not known, not there or not ready.
    pub fn cluster(
        &self,
        own: &str,
        gitops: impl FnOnce() -> Result<Option<Value>, Unknown>,
    ) -> Result<Cluster, Unknown> {
        self.check()?;
        let name = match self.kind {
            ReferenceKind::Secret => self.name.clone(),
            ReferenceKind::Cluster => of_capi(&self.name),
            ReferenceKind::GitopsCluster => {
                let named = || format!("GitopsCluster {}/{}", self.namespace(own), self.name);
                let object = gitops()?.ok_or_else(|| Unknown::NoCluster(named()))?;
                // What its status says is for its own namespace.
                let is_own = self.namespace(own) == own;
                of_gitops(&object, &named(), is_own)?
            }
        };
        let namespace = self.namespace(own).to_owned();
        Ok(Cluster::Remote(Arc::new(SecretKey { namespace, name })))
    }

    fn check(&self) -> Result<(), Unknown> {
        let wrong = |why| Err(Unknown::Reference(why));
        let kind = self.kind.as_str();
        let version = self.api_version.as_deref();
        let group = version.map(|it| it.split_once('/').map_or("", |(group, _)| group));
        if group.is_some_and(|group| group != self.kind.group()) {
            let of = match self.kind.group() {
                "" => "v1".to_owned(),
                group => format!("a version of {group}"),
            };
            return wrong(format!(
                "clusterRef.apiVersion: a {kind} is not in that group; write {of}, or leave it out"
            ));
        }
        if !is_object_name(&self.name) {
            return wrong(format!(
                "clusterRef.name: no {kind} can have this name; write lower case letters, digits, `-` \
                 and `.`"
            ));
        }
        let namespace = self.namespace.as_deref();
        if namespace.is_some_and(|namespace| !is_object_name(namespace)) {
            return wrong(
                "clusterRef.namespace: no namespace can have this name; write lower case letters, \
                 digits and `-`"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

/// The Secret that Cluster API makes for a Cluster.
fn of_capi(cluster: &str) -> String {
    format!("{cluster}-kubeconfig")
}

/// The Secret that a GitopsCluster names. One that says nothing of being ready goes by the connection.
fn of_gitops(object: &Value, named: &str, is_own: bool) -> Result<String, Unknown> {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.find(|condition| condition["type"] == "Ready");
    if let Some(ready) = ready.filter(|ready| ready["status"] == "False") {
        let why = ready["message"].as_str();
        let why = why.filter(|why| is_own && !why.is_empty());
        let why = why.unwrap_or("its condition Ready is False");
        return Err(Unknown::NotReady(format!("{named} is not ready: {why}")));
    }
    let name = |field: &str| object["spec"][field]["name"].as_str();
    let secret = name("secretRef").map(str::to_owned);
    let secret = secret.or_else(|| name("capiClusterRef").map(of_capi));
    secret.filter(|name| is_object_name(name)).ok_or_else(|| {
        Unknown::Reference(format!(
            "{named} names no Secret; write spec.secretRef.name or spec.capiClusterRef.name"
        ))
    })
}

/// Whether the Secret `secret`, with this annotation [`ALLOWED_NAMESPACES`], may be used by objects in
/// the namespace `from`.
pub fn allows(secret: &SecretKey, annotation: Option<&str>, from: &str) -> bool {
    let mut listed = annotation.unwrap_or_default().split(',').map(str::trim);
    secret.namespace == from || (!from.is_empty() && listed.any(|namespace| namespace == from))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn reference(kind: ReferenceKind, namespace: Option<&str>) -> Reference {
        Reference {
            kind,
            name: "prod".to_owned(),
            namespace: namespace.map(str::to_owned),
            api_version: None,
        }
    }

    fn secret(namespace: &str, name: &str) -> Result<Cluster, Unknown> {
        Ok(Cluster::Remote(Arc::new(SecretKey {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })))
    }

    fn unasked() -> Result<Option<Value>, Unknown> {
        panic!("no GitopsCluster is needed")
    }

    #[rstest]
    #[case(ReferenceKind::Secret, None, "apps", "prod")]
    #[case(ReferenceKind::Secret, Some("fleet"), "fleet", "prod")]
    #[case(ReferenceKind::Cluster, None, "apps", "prod-kubeconfig")]
    #[case(ReferenceKind::Cluster, Some("fleet"), "fleet", "prod-kubeconfig")]
    fn a_secret_is_found_without_reading_anything(
        #[case] kind: ReferenceKind,
        #[case] namespace: Option<&str>,
        #[case] in_namespace: &str,
        #[case] name: &str,
    ) {
        let found = reference(kind, namespace).cluster("apps", unasked);
        assert_eq!(found, secret(in_namespace, name));
    }

    #[rstest]
    #[case(json!({"spec": {"secretRef": {"name": "eu"}}}), "eu")]
    #[case(json!({"spec": {"capiClusterRef": {"name": "eu"}}}), "eu-kubeconfig")]
    #[case(json!({"spec": {"secretRef": {"name": "a"}, "capiClusterRef": {"name": "b"}}}), "a")]
    #[case(json!({"spec": {"secretRef": {"name": "eu"}},
                  "status": {"conditions": [{"type": "Ready", "status": "True"}]}}), "eu")]
    #[case(json!({"spec": {"secretRef": {"name": "eu"}},
                  "status": {"conditions": [{"type": "ClusterConnectivity", "status": "False"}]}}), "eu")]
    fn a_gitops_cluster_names_its_secret(#[case] object: Value, #[case] name: &str) {
        let reference = reference(ReferenceKind::GitopsCluster, Some("fleet"));
        let found = reference.cluster("apps", || Ok(Some(object)));
        assert_eq!(found, secret("fleet", name));
    }

    #[rstest]
    #[case(
        Some(json!({"spec": {"secretRef": {"name": "eu"}},
                    "status": {"conditions": [{"type": "Ready", "status": "False", "message": "gone"}]}})),
        "GitopsCluster fleet/prod is not ready: gone"
    )]
    #[case(
        Some(json!({"spec": {"secretRef": {"name": "eu"}},
                    "status": {"conditions": [{"type": "Ready", "status": "False"}]}})),
        "GitopsCluster fleet/prod is not ready: its condition Ready is False"
    )]
    #[case(
        Some(json!({"spec": {}})),
        "GitopsCluster fleet/prod names no Secret; write spec.secretRef.name or \
         spec.capiClusterRef.name"
    )]
    #[case(
        Some(json!({"spec": {"secretRef": {"name": "../nodes"}}})),
        "GitopsCluster fleet/prod names no Secret; write spec.secretRef.name or \
         spec.capiClusterRef.name"
    )]
    #[case(
        None,
        "there is no GitopsCluster fleet/prod; create it, or write another clusterRef"
    )]
    fn a_gitops_cluster_that_is_of_no_use_is_told(
        #[case] object: Option<Value>,
        #[case] why: &str,
    ) {
        let reference = reference(ReferenceKind::GitopsCluster, Some("fleet"));
        let found = reference.cluster("fleet", || Ok(object)).unwrap_err();
        assert_eq!(found.to_string(), why);
    }

    #[test]
    fn what_a_gitops_cluster_says_is_for_its_own_namespace() {
        let ready = json!({"type": "Ready", "status": "False", "message": "token of alice"});
        let object = json!({"spec": {}, "status": {"conditions": [ready]}});
        let reference = reference(ReferenceKind::GitopsCluster, Some("fleet"));
        let found = reference.cluster("apps", || Ok(Some(object))).unwrap_err();
        let why = "GitopsCluster fleet/prod is not ready: its condition Ready is False";
        assert_eq!(found, Unknown::NotReady(why.to_owned()));
    }

    #[rstest]
    #[case(ReferenceKind::Secret, "v1", true)]
    #[case(ReferenceKind::Secret, "apps/v1", false)]
    #[case(ReferenceKind::Cluster, "cluster.x-k8s.io/v1beta2", true)]
    #[case(ReferenceKind::Cluster, "cluster.x-k8s.io/v9", true)]
    #[case(ReferenceKind::Cluster, "gitops.weave.works/v1alpha1", false)]
    #[case(ReferenceKind::Cluster, "v1", false)]
    fn of_an_api_version_the_group_counts(
        #[case] kind: ReferenceKind,
        #[case] api_version: &str,
        #[case] is_right: bool,
    ) {
        let mut reference = reference(kind, None);
        reference.api_version = Some(api_version.to_owned());
        let found = reference.cluster("apps", unasked);
        assert_eq!(found.is_ok(), is_right, "{found:?}");
    }

    #[rstest]
    #[case("a/../../nodes", None, "clusterRef.name")]
    #[case("", None, "clusterRef.name")]
    #[case("prod", Some("a/b"), "clusterRef.namespace")]
    fn names_that_cannot_be_are_refused(
        #[case] name: &str,
        #[case] namespace: Option<&str>,
        #[case] field: &str,
    ) {
        let mut reference = reference(ReferenceKind::Secret, namespace);
        reference.name = name.to_owned();
        let why = reference.cluster("apps", unasked).unwrap_err().to_string();
        assert!(why.starts_with(field), "{why}");
    }

    #[rstest]
    #[case(None, "fleet", true)]
    #[case(None, "apps", false)]
    #[case(Some(""), "apps", false)]
    #[case(Some("apps"), "apps", true)]
    #[case(Some("shop, apps"), "apps", true)]
    #[case(Some("apps-two"), "apps", false)]
    #[case(Some("*"), "apps", false)]
    #[case(Some(","), "", false)]
    fn a_secret_says_who_may_use_it(
        #[case] annotation: Option<&str>,
        #[case] from: &str,
        #[case] allowed: bool,
    ) {
        let key = SecretKey {
            namespace: "fleet".to_owned(),
            name: "prod".to_owned(),
        };
        assert_eq!(allows(&key, annotation, from), allowed);
    }
}
