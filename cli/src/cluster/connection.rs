//! The way to the API server, and how long a request may take.

use std::fmt::Debug;

use anyhow::{Context, Result, anyhow};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::NamespaceResourceScope;
use kube::{Client, Config, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sluice_core::Now;
use sluice_core::offline::simulate::Key;
use sluice_core::time::clock::Trust;

use super::fault::{Cannot, explain};
use crate::arguments::Globals;
use crate::{clock, instant};

/// Who owns what we write. kustomize-controller takes away what belongs to a manager whose name
/// starts with `kubectl`.
const FIELD_MANAGER: &str = "sluice-cli";

/// A way to the API server.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// The namespace that is meant where none is said.
    pub(crate) namespace: String,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Requests that are answered at once.
    Requests,
    /// Watches too, on which nothing may come for a long time.
    Watches,
}

/// Opens the way that `globals` describe.
///
/// # Errors
/// A kubeconfig that cannot be read or used. The API server is not asked yet.
pub(crate) async fn connect(globals: &Globals, r#use: Use) -> Result<Connection> {
    // Fails only where one is installed already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut config = config(globals).await?;
    if let Some(user) = &globals.as_user {
        config.auth_info.impersonate = Some(user.clone());
        config.auth_info.impersonate_groups =
            (!globals.as_group.is_empty()).then(|| globals.as_group.clone());
    }
    let timeout = instant::parse_timeout(&globals.request_timeout);
    let timeout = timeout.context("--request-timeout")?;
    config.connect_timeout = timeout.or(config.connect_timeout);
    if r#use == Use::Requests {
        config.read_timeout = timeout;
        config.write_timeout = timeout;
    }
    // kube would send what is answered with 429, 503 or 504 up to 15 times more, for minutes. Who asks
    // hears of it at once; what waits for something tries again by itself.
    config.default_retry = false;
    let own = || config.default_namespace.clone();
    let namespace = globals.namespace.clone().unwrap_or_else(own);
    let client = Client::try_from(config).map_err(|error| explain(error, "use the kubeconfig"))?;
    Ok(Connection { client, namespace })
}

async fn config(globals: &Globals) -> Result<Config> {
    let options = KubeConfigOptions {
        context: globals.context.clone(),
        cluster: globals.cluster.clone(),
        user: globals.user.clone(),
    };
    if let Some(path) = &globals.kubeconfig {
        let cannot = || format!("cannot use the kubeconfig {}", path.display());
        let kubeconfig = Kubeconfig::read_from(path).with_context(cannot)?;
        return Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .with_context(cannot);
    }
    match Config::from_kubeconfig(&options).await {
        Ok(config) => Ok(config),
        Err(error) if std::env::var_os("KUBECONFIG").is_some() => {
            Err(error).context("cannot use the kubeconfig of $KUBECONFIG")
        }
        Err(error) => match Config::incluster() {
            Ok(config) => Ok(config),
            Err(_) => Err(anyhow!(
                "there is no cluster to ask: {error}; give --kubeconfig, or set KUBECONFIG"
            )),
        },
    }
}

/// A person or a program, as the API server knows them: the admission policies want that very
/// name.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
}

/// The present instant, and how it compares with the API server's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Present {
    /// By the clock of this machine.
    pub(crate) now: Now,
    /// By the clock of the API server, as far as that is certain.
    pub(crate) there: Timestamp,
}

/// How we change something.
pub(crate) fn patch() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// How we create something.
pub(crate) fn post() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// Changes annotations: those that are null go.
///
/// # Errors
/// We cannot `what`, and why.
pub(crate) async fn annotate<K>(
    api: &Api<K>,
    name: &str,
    annotations: &Value,
    what: &str,
) -> Result<()>
where
    K: Clone + Debug + DeserializeOwned,
{
    let merged = json!({ "metadata": { "annotations": annotations } });
    let patched = api.patch(name, &patch(), &Patch::Merge(merged)).await;
    patched.map(drop).cannot(what)
}

impl Connection {
    /// The objects of one kind in a namespace, or in all of them.
    pub(crate) fn api<K>(&self, namespace: Option<&str>) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => self.all(),
        }
    }

    /// The objects of one kind in the connection's namespace.
    pub(crate) fn here<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        self.api(Some(&self.namespace))
    }

    /// All objects of one kind.
    pub(crate) fn all<K: Resource<DynamicType = ()>>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }

    /// Something of that name in the connection's namespace.
    pub(crate) fn key(&self, name: &str) -> Key {
        Key {
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }

    /// The connection's namespace, unless `everywhere` is meant.
    pub(crate) fn area(&self, everywhere: bool) -> Option<&str> {
        (!everywhere).then_some(&self.namespace)
    }

    /// Who the API server takes us for.
    pub(crate) async fn who(&self) -> Result<User> {
        let api: Api<SelfSubjectReview> = self.all();
        let review = SelfSubjectReview::default();
        let review = api.create(&PostParams::default(), &review).await;
        let review = review.cannot("ask the API server who you are")?;
        let user = review.status.and_then(|status| status.user_info);
        let user = user.and_then(|user| Some((user.username?, user.groups)));
        let (name, groups) = user.context(
            "the API server does not say who you are; update it, or write the object yourself",
        )?;
        Ok(User {
            name,
            groups: groups.unwrap_or_default(),
        })
    }

    /// What time it is. A clock that cannot be compared is taken to be right.
    pub(crate) async fn present(&self) -> Present {
        let difference = self.difference().await.unwrap_or(SignedDuration::ZERO);
        let at = clock::now();
        Present {
            now: Now {
                at,
                trust: Trust::from_difference(difference),
            },
            there: at.saturating_sub(difference).unwrap_or(at),
        }
    }

    /// Our clock less the API server's, as far as it is certain: its `Date` was true at some time
    /// while we waited, and stands for the whole second that it starts.
    pub(crate) async fn difference(&self) -> Option<SignedDuration> {
        let request = http::Request::get("/version").body(Body::empty()).ok()?;
        let before = clock::now();
        let response = self.client.send(request).await.ok()?;
        let date = response.headers().get(http::header::DATE)?.to_str().ok()?;
        let theirs = DateTimeParser::new().parse_timestamp(date).ok()?;
        let least = before.duration_since(theirs) - SignedDuration::from_secs(1);
        let most = clock::now().duration_since(theirs);
        Some(SignedDuration::ZERO.max(least).min(most))
    }
}
