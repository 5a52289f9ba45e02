//! The real Flux on a local control plane, and what it fetches from.
//!
//! What comes in: a cluster. What goes out: source-, kustomize-, helm- and notification-controller,
//! each a process that a test can stop, kill and start again, with the artifact store in a folder
//! that a test can wipe; and the places that Flux fetches from, which a test fills: [`Git`],
//! [`Registry`], [`Charts`], [`Bucket`]. What Flux tells arrives in an [`Inbox`].
//!
//! They behave as Flux does by default, except that they retry sooner, that ExternalArtifacts are
//! allowed, and that nobody elects a leader.

mod archive;
mod bucket;
mod charts;
mod controller;
mod git;
mod inbox;
mod registry;
mod world;

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use futures::future::join_all;
use kube::ResourceExt;
use serde_json::json;
use tokio::sync::Mutex;

use crate::apply::{self, Applier};
use crate::cluster::Cluster;
use crate::control_plane::Workspace;
use crate::namespace::TEST_LABEL;
use crate::ports::free_port;
use crate::progress::Progress;
use crate::tools;

pub use bucket::Bucket;
pub use charts::Charts;
pub use controller::Controller;
pub use git::{BRANCH, Git};
pub use inbox::Inbox;
pub use registry::{Pushed, Registry};
pub use world::{World, world};

use controller::{Flags, PortTaken};

/// The folder in `control-plane/` that pins the controllers.
const MODULE: &str = "flux";

/// Where Flux believes to run, and where it would look for what belongs to itself.
const NAMESPACE: &str = "flux-system";

/// What lets the controllers do everything.
const BINDING: &str = "sluice-test-flux";

/// How often a start is tried when other processes took ports that were free a moment ago.
const ATTEMPTS: usize = 3;

/// The four controllers.
const CONTROLLERS: [&str; 4] = [
    "source-controller",
    "kustomize-controller",
    "helm-controller",
    "notification-controller",
];

/// The programs of Flux, and the definitions of its kinds.
#[derive(Clone, Debug)]
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Finds them in the cache, or builds them there: eight minutes on two cores, the first time.
    ///
    /// # Errors
    ///
    /// See [`tools::ensure`].
    pub fn ensure(progress: &dyn Progress) -> Result<Self> {
        let folder = tools::ensure(MODULE, progress)?;
        Ok(Self { folder })
    }

    /// Defines the kinds of Flux in `cluster`, without anybody who would work on them. They are marked
    /// as a test's. Who asks again in this process finds them there.
    ///
    /// # Errors
    ///
    /// If they cannot be read, or the API server refuses them.
    pub async fn define(&self, cluster: &Cluster) -> Result<()> {
        static DEFINED: Mutex<BTreeSet<PathBuf>> = Mutex::const_new(BTreeSet::new());
        let mut defined = DEFINED.lock().await;
        if defined.contains(cluster.kubeconfig()) {
            return Ok(());
        }
        let mut documents = Vec::new();
        for controller in CONTROLLERS {
            documents.extend(apply::read(&self.definitions(controller))?);
        }
        for document in &mut documents {
            let labels = document.object.labels_mut();
            labels.insert(TEST_LABEL.to_owned(), "true".to_owned());
        }
        let applier = Applier::new(cluster.client().await?);
        applier.documents(documents).await?;
        defined.insert(cluster.kubeconfig().to_owned());
        Ok(())
    }

    /// The program of a controller.
    fn program(&self, controller: &str) -> PathBuf {
        self.folder.join(controller)
    }

    /// The folder of the CustomResourceDefinitions that a controller serves.
    fn definitions(&self, controller: &str) -> PathBuf {
        self.folder.join(format!("{controller}.kept"))
    }
}

/// Which namespaces Flux watches.
#[derive(Clone, Copy, Debug)]
pub enum Reach<'a> {
    /// All of them.
    Cluster,
    /// This one.
    Namespace(&'a str),
}

/// The controllers of Flux, running. Dropped, they are killed.
pub struct Flux {
    /// Fetches, and keeps what it has fetched.
    pub source: Controller,
    /// Applies Kustomizations.
    pub kustomize: Controller,
    /// Installs HelmReleases.
    pub helm: Controller,
    /// Tells others.
    pub notification: Controller,
    addresses: Addresses,
    // The last to go.
    folder: Workspace,
}

/// Where others reach what the controllers serve.
#[derive(Clone, Copy)]
struct Addresses {
    store: SocketAddr,
    events: SocketAddr,
    receiver: SocketAddr,
}

impl Flux {
    /// Defines the kinds of Flux in `cluster`, starts the controllers, and waits until they are
    /// ready. Each is a user of its own who may do everything, named as its service account would
    /// be.
    ///
    /// # Errors
    ///
    /// If a controller ends or is not ready in time: the error has the last lines of its log.
    pub async fn start(programs: &Programs, cluster: &Cluster, reach: Reach<'_>) -> Result<Self> {
        prepare(programs, cluster, reach).await?;
        for _ in 0..ATTEMPTS {
            let flux = Self::assemble(programs, cluster, reach)?;
            match flux.start_all().await {
                Err(error) if error.is::<PortTaken>() => {}
                Err(error) => return Err(error),
                Ok(()) => return Ok(flux),
            }
        }
        bail!("other processes took free ports that Flux was given, {ATTEMPTS} times")
    }

    fn assemble(programs: &Programs, cluster: &Cluster, reach: Reach<'_>) -> Result<Self> {
        let folder = Workspace::create()?;
        fs::create_dir(store(&folder))?;
        fs::create_dir(folder.path().join("scratch"))?;
        let addresses = Addresses {
            store: free_address()?,
            events: free_address()?,
            receiver: free_address()?,
        };
        let controller = |name: &'static str, flags: Flags| {
            let kubeconfig = cluster.kubeconfig_for(&user(name))?;
            let program = programs.program(name);
            let (health, scratch) = (free_address()?, folder.path().join("scratch"));
            let controller =
                Controller::new(name, program, kubeconfig, reach, flags, health, scratch);
            Ok::<_, anyhow::Error>(controller)
        };
        let [source, kustomize, helm, notification] = CONTROLLERS;
        Ok(Self {
            source: controller(source, source_flags(&store(&folder), addresses))?,
            kustomize: controller(kustomize, kustomize_flags(addresses))?,
            helm: controller(helm, helm_flags(addresses))?,
            notification: controller(notification, notification_flags(addresses))?,
            addresses,
            folder,
        })
    }

    async fn start_all(&self) -> Result<()> {
        let (notification, source, kustomize, helm) = tokio::join!(
            self.notification.start(),
            self.source.start(),
            self.kustomize.start(),
            self.helm.start(),
        );
        notification.and(source).and(kustomize).and(helm)
    }

    /// The folder of source-controller's artifacts.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        store(&self.folder)
    }

    /// The address that source-controller serves its artifacts at, as artifacts' URLs have it.
    #[must_use]
    pub fn store_address(&self) -> SocketAddr {
        self.addresses.store
    }

    /// Where notification-controller takes events: `--events-addr` of other controllers.
    #[must_use]
    pub fn events_url(&self) -> String {
        events_url(self.addresses)
    }

    /// Where notification-controller is called for Receivers: what stands before their paths.
    #[must_use]
    pub fn receiver_url(&self) -> String {
        format!("http://{}", self.addresses.receiver)
    }

    /// Removes every artifact, as a disk that is lost does. source-controller runs on, and knows
    /// nothing of it.
    ///
    /// # Errors
    ///
    /// If something cannot be removed.
    pub fn wipe(&self) -> Result<()> {
        let store = self.store();
        for entry in fs::read_dir(&store).context("no artifact store")? {
            let path = entry?.path();
            if path.is_dir() {
                fs::remove_dir_all(path)?;
            } else {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// What replacing source-controller's pod does: it is killed, and another one starts with an
    /// empty store.
    ///
    /// # Errors
    ///
    /// If it does not start again.
    pub async fn replace_source(&self) -> Result<()> {
        self.source.kill().await?;
        self.wipe()?;
        self.source.start().await
    }

    /// What each controller does, for errors.
    pub async fn state(&self) -> String {
        let states = self.controllers().map(Controller::state);
        join_all(states).await.join("\n")
    }

    /// The four of them.
    #[must_use]
    pub fn controllers(&self) -> [&Controller; 4] {
        [
            &self.source,
            &self.kustomize,
            &self.helm,
            &self.notification,
        ]
    }
}

/// The user name of a controller.
fn user(controller: &str) -> String {
    format!("system:serviceaccount:{NAMESPACE}:{controller}")
}

fn store(folder: &Workspace) -> PathBuf {
    folder.path().join("artifacts")
}

fn events_url(addresses: Addresses) -> String {
    format!("http://{}/", addresses.events)
}

fn free_address() -> Result<SocketAddr> {
    Ok((Ipv4Addr::LOCALHOST, free_port()?).into())
}

/// Defines the kinds, and lets the controllers do everything. Whatever is made is marked as a test's.
async fn prepare(programs: &Programs, cluster: &Cluster, reach: Reach<'_>) -> Result<()> {
    programs.define(cluster).await?;
    let applier = Applier::new(cluster.client().await?);
    let group = "rbac.authorization.k8s.io";
    let labels = json!({TEST_LABEL: "true"});
    let subject = |name: &&str| json!({"apiGroup": group, "kind": "User", "name": user(name)});
    let binding = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": {"name": BINDING, "labels": labels},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": CONTROLLERS.iter().map(subject).collect::<Vec<_>>(),
    });
    applier.text(&binding.to_string()).await?;
    if let Reach::Cluster = reach {
        let metadata = json!({"name": NAMESPACE, "labels": labels});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        applier.text(&namespace.to_string()).await?;
    }
    Ok(())
}

fn source_flags(store: &Path, addresses: Addresses) -> Flags {
    Flags::sooner()
        .with("storage-path", store.display())
        .with("storage-addr", addresses.store)
        .with("storage-adv-addr", addresses.store)
        .with("events-addr", events_url(addresses))
        .with("requeue-dependency", "1s")
        .with("concurrent", 4)
        .listening_on(addresses.store)
}

fn kustomize_flags(addresses: Addresses) -> Flags {
    Flags::sooner()
        .with("events-addr", events_url(addresses))
        .with("requeue-dependency", "1s")
        .with("feature-gates", "ExternalArtifact=true")
        // While source-controller is away: each further try waits for seconds.
        .with("http-retry", 1)
}

fn helm_flags(addresses: Addresses) -> Flags {
    kustomize_flags(addresses).with("graceful-shutdown-timeout", "5s")
}

fn notification_flags(addresses: Addresses) -> Flags {
    Flags::sooner()
        .with("events-addr", addresses.events)
        .with("receiverAddr", addresses.receiver)
        .listening_on(addresses.events)
}
