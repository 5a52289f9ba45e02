//! A cluster to work on, no matter who runs it.
//!
//! What comes in: a kubeconfig. What goes out: clients, as the file's own user or as another; and what
//! another cluster has to know of this one.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::prelude::{BASE64_STANDARD, Engine};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::TempPath;

/// A cluster, known by its kubeconfig.
#[derive(Clone, Debug)]
pub struct Cluster {
    kubeconfig: PathBuf,
    /// Where files for single users go.
    scratch: PathBuf,
}

impl Cluster {
    /// The cluster of the current context in `kubeconfig`: a path, or a list of paths as in the
    /// environment variable `KUBECONFIG`.
    #[must_use]
    pub fn at(kubeconfig: impl Into<PathBuf>) -> Self {
        Self::with_scratch(kubeconfig.into(), env::temp_dir())
    }

    /// The same, with a folder for the files that [`Self::kubeconfig_for`] makes: there are
    /// credentials in them.
    #[must_use]
    pub fn with_scratch(kubeconfig: PathBuf, scratch: PathBuf) -> Self {
        Self {
            kubeconfig,
            scratch,
        }
    }

    /// The path that it was made with.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The address of its API server, and the name of the context that leads there.
    ///
    /// # Errors
    ///
    /// If the kubeconfig cannot be read or used.
    pub async fn address(&self) -> Result<(String, String)> {
        let kubeconfig = self.read()?;
        let context = kubeconfig.current_context.clone().unwrap_or_default();
        let config = configure(kubeconfig).await?;
        Ok((config.cluster_url.to_string(), context))
    }

    /// A new client as the current user of the kubeconfig.
    ///
    /// Its connections live on the calling runtime and die with it: every `#[tokio::test]` has a
    /// runtime of its own, so every test asks for a client of its own.
    ///
    /// # Errors
    ///
    /// If the kubeconfig cannot be read or used.
    pub async fn client(&self) -> Result<Client> {
        connect(self.read()?).await
    }

    /// A new client that acts as `user`: through the context of that name if the kubeconfig has
    /// one, else by impersonation, without groups.
    ///
    /// # Errors
    ///
    /// If the kubeconfig cannot be read or used.
    pub async fn client_for(&self, user: &str) -> Result<Client> {
        connect(self.read_for(user)?).await
    }

    /// A new client of the one who has this bearer token.
    ///
    /// # Errors
    ///
    /// If the kubeconfig cannot be read or used.
    pub async fn client_of(&self, token: &str) -> Result<Client> {
        let mut config = self.read()?;
        for user in &mut config.auth_infos {
            user.auth_info = Some(AuthInfo {
                token: Some(token.to_owned().into()),
                ..AuthInfo::default()
            });
        }
        connect(config).await
    }

    /// A kubeconfig file with which programs act as `user`, as [`Self::client_for`] does. It is
    /// deleted on drop.
    ///
    /// # Errors
    ///
    /// If the kubeconfig cannot be read, or the file cannot be written.
    pub fn kubeconfig_for(&self, user: &str) -> Result<TempPath> {
        let text = serde_saphyr::to_string(&self.read_for(user)?)?;
        let file = tempfile::Builder::new()
            .prefix("sluice-kubeconfig-")
            .tempfile_in(&self.scratch)?;
        std::fs::write(file.path(), text)?;
        Ok(file.into_temp_path())
    }

    /// The address of its API server, as the kubeconfig has it.
    ///
    /// # Errors
    ///
    /// If the kubeconfig cannot be read, or has none.
    pub fn server(&self) -> Result<String> {
        let server = first(&self.read()?)?.server;
        server.context("its kubeconfig has no server")
    }

    /// A Secret by which pipelines on another cluster see this one: a kubeconfig with everything inline, for
    /// the owner of `token`. `server` is an address of this cluster.
    ///
    /// # Errors
    ///
    /// If the kubeconfig cannot be read, or names no authority in a file.
    pub fn secret(&self, name: &str, server: &str, token: &str) -> Result<Value> {
        let authority = first(&self.read()?)?.certificate_authority;
        let authority = std::fs::read(authority.context("its kubeconfig names no authority")?)?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "c", "cluster": {
                "server": server, "certificate-authority-data": BASE64_STANDARD.encode(authority),
            }}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        });
        Ok(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": {"value": kubeconfig.to_string()},
        }))
    }

    fn read(&self) -> Result<Kubeconfig> {
        let files = env::split_paths(&self.kubeconfig).filter(|path| !path.as_os_str().is_empty());
        files
            .map(Kubeconfig::read_from)
            .try_fold(Kubeconfig::default(), |merged, next| merged.merge(next?))
            .with_context(|| format!("cannot use the kubeconfig {}", self.kubeconfig.display()))
    }

    fn read_for(&self, user: &str) -> Result<Kubeconfig> {
        let config = self.read()?;
        act_as(config, user)
            .with_context(|| format!("cannot use the kubeconfig {}", self.kubeconfig.display()))
    }
}

/// The first cluster of a kubeconfig: those of local control planes have one.
fn first(kubeconfig: &Kubeconfig) -> Result<kube::config::Cluster> {
    let named = kubeconfig.clusters.first();
    let cluster = named.and_then(|named| named.cluster.clone());
    cluster.context("the kubeconfig has no cluster")
}

/// Makes `user` the one who speaks.
fn act_as(mut config: Kubeconfig, user: &str) -> Result<Kubeconfig> {
    if config.contexts.iter().any(|context| context.name == user) {
        config.current_context = Some(user.to_owned());
        return Ok(config);
    }
    let current = config.current_context.as_deref();
    let context = config
        .contexts
        .iter()
        .find(|named| Some(named.name.as_str()) == current);
    let speaker = context
        .and_then(|named| named.context.as_ref()?.user.clone())
        .context("it has no current context with a user")?;
    let credentials = config
        .auth_infos
        .iter_mut()
        .find(|named| named.name == speaker);
    let credentials = credentials
        .and_then(|named| named.auth_info.as_mut())
        .with_context(|| format!("it has no user {speaker:?}"))?;
    credentials.impersonate = Some(user.to_owned());
    Ok(config)
}

async fn connect(kubeconfig: Kubeconfig) -> Result<Client> {
    Ok(Client::try_from(configure(kubeconfig).await?)?)
}

async fn configure(kubeconfig: Kubeconfig) -> Result<Config> {
    let options = KubeConfigOptions::default();
    Ok(Config::from_custom_kubeconfig(kubeconfig, &options).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "
current-context: here
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: root, user: {token: secret}}, {name: alice, user: {token: other}}]
contexts:
- {name: here, context: {cluster: c, user: root}}
- {name: alice, context: {cluster: c, user: alice}}
";

    #[tokio::test]
    async fn the_address_is_that_of_the_current_context() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, CONFIG).unwrap();
        let (address, context) = Cluster::at(path).address().await.unwrap();
        assert_eq!(
            (address.as_str(), context.as_str()),
            ("https://127.0.0.1:1/", "here")
        );
    }

    #[test]
    fn what_another_cluster_has_to_know_is_inline() {
        let folder = tempfile::tempdir().unwrap();
        let (path, authority) = (
            folder.path().join("kubeconfig"),
            folder.path().join("ca.crt"),
        );
        std::fs::write(&authority, "PEM").unwrap();
        let place = format!("certificate-authority: {}, server", authority.display());
        std::fs::write(&path, CONFIG.replace("server", &place)).unwrap();
        let cluster = Cluster::at(path);
        let server = cluster.server().unwrap();
        assert_eq!(server, "https://127.0.0.1:1");
        let secret = cluster.secret("there", &server, "of reader").unwrap();
        let text = secret["stringData"]["value"].as_str().unwrap();
        let config = Kubeconfig::from_yaml(text).unwrap();
        let told = first(&config).unwrap();
        assert_eq!(told.server, Some(server));
        assert_eq!(told.certificate_authority_data.as_deref(), Some("UEVN"));
    }

    #[test]
    fn a_user_with_a_context_speaks_for_themselves() {
        let config = act_as(Kubeconfig::from_yaml(CONFIG).unwrap(), "alice").unwrap();
        assert_eq!(config.current_context.as_deref(), Some("alice"));
    }

    #[test]
    fn any_other_user_is_impersonated() {
        let config = act_as(Kubeconfig::from_yaml(CONFIG).unwrap(), "bob").unwrap();
        let root = config.auth_infos[0].auth_info.as_ref().unwrap();
        assert_eq!(root.impersonate.as_deref(), Some("bob"));
        assert_eq!(config.current_context.as_deref(), Some("here"));
    }

    #[test]
    fn a_kubeconfig_without_a_current_context_says_so() {
        let error = act_as(Kubeconfig::default(), "bob").unwrap_err();
        assert!(error.to_string().contains("no current context"));
    }
}
