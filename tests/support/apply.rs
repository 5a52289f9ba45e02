//! Applying YAML of any kind, as `kubectl apply --server-side` does.
//!
//! What comes in: files, folders or text. What goes out: the objects as the API server has
//! stored them. Kinds are looked up on the server, and a kind whose CustomResourceDefinition has
//! just been applied is waited for.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::Condition;
use kube::{Client, ResourceExt};
use parking_lot::Mutex;

use crate::poll::DEADLINE;
use crate::poll::poll;

/// The field manager, unless another is asked for.
const FIELD_MANAGER: &str = "sluice-apply";

/// Applies objects with server-side apply, taking over fields that others own.
#[derive(Clone)]
pub struct Applier {
    client: Client,
    namespace: String,
    manager: String,
    served: Served,
}

/// Where the kinds are that have been looked up.
type Served = Arc<Mutex<HashMap<GroupVersionKind, (ApiResource, Scope)>>>;

/// An object and where it was read, for errors.
#[derive(Clone, Debug)]
pub struct Document {
    /// A path, or a word for text that came from no file.
    pub origin: String,
    /// The object as written.
    pub object: DynamicObject,
}

impl Applier {
    /// Applies as field manager `sluice-apply`, in the namespace `default` unless an object
    /// names another.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            namespace: "default".to_owned(),
            manager: FIELD_MANAGER.to_owned(),
            served: Served::default(),
        }
    }

    /// The namespace of objects that name none.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    /// The field manager to apply as.
    #[must_use]
    pub fn as_manager(mut self, manager: &str) -> Self {
        manager.clone_into(&mut self.manager);
        self
    }

    /// Applies a file, or every `.yaml` file in a folder and the folders in it.
    ///
    /// # Errors
    ///
    /// See [`Applier::documents`] and [`read`].
    pub async fn path(&self, path: &Path) -> Result<Vec<DynamicObject>> {
        self.documents(read(path)?).await
    }

    /// Applies the documents of a YAML text.
    ///
    /// # Errors
    ///
    /// See [`Applier::documents`] and [`parse`].
    pub async fn text(&self, yaml: &str) -> Result<Vec<DynamicObject>> {
        self.documents(parse(yaml, "text")?).await
    }

    /// Applies objects in their order, except that definitions of kinds and namespaces come
    /// first. Returns what the API server has stored, in the order in which it was applied.
    ///
    /// # Errors
    ///
    /// With the object and where it was read: if its kind is not served, or the API server
    /// refuses it. What came before it stays applied.
    pub async fn documents(&self, mut documents: Vec<Document>) -> Result<Vec<DynamicObject>> {
        documents.sort_by_key(|document| !comes_first(document));
        let mut applied = Vec::with_capacity(documents.len());
        for document in &documents {
            let stored = self.apply(&document.object).await;
            let name = document.object.name_any();
            applied.push(stored.with_context(|| {
                format!(
                    "{}: cannot apply {} {name}",
                    document.origin,
                    kind(&document.object)
                )
            })?);
        }
        Ok(applied)
    }

    async fn apply(&self, object: &DynamicObject) -> Result<DynamicObject> {
        let api = self.api(object).await?;
        let parameters = PatchParams::apply(&self.manager).force();
        let name = object.name_any();
        let stored = api.patch(&name, &parameters, &Patch::Apply(object)).await;
        let stored = stored.map_err(in_few_words)?;
        if kind(object) == "CustomResourceDefinition" {
            self.wait_until_established(&name).await?;
        }
        Ok(stored)
    }

    async fn api(&self, object: &DynamicObject) -> Result<Api<DynamicObject>> {
        let types = object
            .types
            .as_ref()
            .context("it has no apiVersion and kind")?;
        let gvk = GroupVersionKind::try_from(types)?;
        let (resource, scope) = self.served(gvk).await?;
        let namespace = object.namespace().unwrap_or_else(|| self.namespace.clone());
        Ok(match scope {
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), &namespace, &resource),
        })
    }

    /// Where a kind is. It is looked up once.
    async fn served(&self, gvk: GroupVersionKind) -> Result<(ApiResource, Scope)> {
        if let Some(known) = self.served.lock().get(&gvk) {
            return Ok(known.clone());
        }
        // Discovery lags a little behind a definition that has been established.
        let (resource, capabilities) = match discovery::pinned_kind(&self.client, &gvk).await {
            Ok(found) => found,
            Err(_) => {
                poll(
                    Duration::from_secs(5),
                    "the kind to be served",
                    async || discovery::pinned_kind(&self.client, &gvk).await,
                )
                .await?
            }
        };
        let found = (resource, capabilities.scope);
        self.served.lock().insert(gvk, found.clone());
        Ok(found)
    }

    async fn wait_until_established(&self, name: &str) -> Result<()> {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        poll(DEADLINE, "the definition to be established", async || {
            let definition = api.get(name).await?;
            let established = is_crd_established().matches_object(Some(&definition));
            let conditions = definition.status.and_then(|status| status.conditions);
            ensure!(established, "its conditions are {conditions:?}");
            Ok(())
        })
        .await
    }
}

/// What the API server said, without the whole status that it came in.
fn in_few_words(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow!("{}", status.message),
        other => other.into(),
    }
}

fn kind(object: &DynamicObject) -> &str {
    object
        .types
        .as_ref()
        .map_or("an object", |types| &types.kind)
}

fn comes_first(document: &Document) -> bool {
    matches!(
        kind(&document.object),
        "CustomResourceDefinition" | "Namespace"
    )
}

/// Reads a file, or every `.yaml` and `.yml` file in a folder and the folders in it, in the order
/// of their paths.
///
/// # Errors
///
/// If something cannot be read, or see [`parse`].
pub fn read(path: &Path) -> Result<Vec<Document>> {
    let mut files = Vec::new();
    find(path, &mut files).with_context(|| format!("cannot read {}", path.display()))?;
    files.sort();
    let mut documents = Vec::new();
    for file in files {
        let origin = file.display().to_string();
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {origin}"))?;
        documents.extend(parse(&text, &origin)?);
    }
    Ok(documents)
}

fn find(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?.path();
        let yaml = entry
            .extension()
            .is_some_and(|end| end == "yaml" || end == "yml");
        if yaml || entry.is_dir() {
            find(&entry, files)?;
        }
    }
    Ok(())
}

/// Reads the objects of a YAML text; empty documents are skipped.
///
/// # Errors
///
/// With `origin` and the number of the document: if it is no YAML, or no object with
/// `apiVersion`, `kind` and `metadata.name`.
pub fn parse(yaml: &str, origin: &str) -> Result<Vec<Document>> {
    let values: Vec<serde_json::Value> =
        serde_saphyr::from_multiple(yaml).with_context(|| format!("{origin}: not YAML"))?;
    let mut documents = Vec::with_capacity(values.len());
    for (index, value) in values.into_iter().enumerate() {
        if value.is_null() {
            continue;
        }
        let number = index + 1;
        let object: DynamicObject = serde_json::from_value(value)
            .with_context(|| format!("{origin}: document {number} is no Kubernetes object"))?;
        if object.types.is_none() || object.metadata.name.is_none() {
            bail!("{origin}: document {number} needs apiVersion, kind and metadata.name");
        }
        documents.push(Document {
            origin: origin.to_owned(),
            object,
        });
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_one_by_one() {
        let yaml = "---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n\
                    data: {b: c}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: d}\n";
        let read = parse(yaml, "here").unwrap();
        let kinds: Vec<_> = read.iter().map(|document| kind(&document.object)).collect();
        assert_eq!(kinds, ["ConfigMap", "Namespace"]);
        assert_eq!(read[0].object.data["data"]["b"], "c");
        assert!(!comes_first(&read[0]) && comes_first(&read[1]));
    }

    #[test]
    fn errors_name_the_place() {
        for (yaml, expected) in [
            ("a: [", "here: not YAML"),
            ("- 1", "here: document 1 is no Kubernetes object"),
            (
                "apiVersion: v1\nkind: Pod\nmetadata: {}",
                "here: document 1 needs",
            ),
        ] {
            let error = parse(yaml, "here").unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn folders_are_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let yaml = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: '{name}'}}");
            fs::write(path, yaml).unwrap();
        };
        for name in ["b.yaml", "a/c.yml", "a/notes.txt"] {
            write(name);
        }
        let documents = read(folder.path()).unwrap();
        let names: Vec<_> = documents
            .iter()
            .map(|document| document.object.name_any())
            .collect();
        assert_eq!(names, ["a/c.yml", "b.yaml"]);
        assert!(read(Path::new("/nowhere")).is_err());
    }
}
