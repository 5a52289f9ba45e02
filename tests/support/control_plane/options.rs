//! What a control plane is asked to be.
//!
//! What comes in: the caller's wishes. What goes out: the flags of the servers.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};

/// How a [`super::ControlPlane`] is started. The default has no users but `admin`, and no
/// controllers.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Users besides `admin`.
    pub users: Vec<User>,
    /// The controllers that kube-controller-manager runs, by name; `*` for its own choice. If
    /// there are none it is not started, and a deleted namespace stays `Terminating`.
    pub controllers: Vec<String>,
    /// How long the API server keeps Events; its own default (1 h) if none.
    pub event_ttl: Option<Duration>,
    /// More flags of kube-apiserver, as `--min-request-timeout=1`.
    pub api_server_flags: Vec<String>,
}

impl Options {
    /// The controllers that clean up and that cost little: no workloads run.
    #[must_use]
    pub fn with_housekeeping(mut self) -> Self {
        const HOUSEKEEPING: [&str; 6] = [
            "garbage-collector-controller",
            "namespace-controller",
            "root-ca-certificate-publisher-controller",
            "serviceaccount-controller",
            "serviceaccount-token-controller",
            "validatingadmissionpolicy-status-controller",
        ];
        self.controllers.extend(HOUSEKEEPING.map(str::to_owned));
        self
    }

    /// The controllers of Deployments, ReplicaSets and StatefulSets. Their pods start only where somebody
    /// stands in for a node: see [`crate::workloads`].
    #[must_use]
    pub fn with_workloads(mut self) -> Self {
        const WORKLOADS: [&str; 3] = [
            "deployment-controller",
            "replicaset-controller",
            "statefulset-controller",
        ];
        self.controllers.extend(WORKLOADS.map(str::to_owned));
        self
    }

    /// Adds users without groups, by name. RBAC grants them nothing until somebody does.
    #[must_use]
    pub fn with_users(mut self, names: &[&str]) -> Self {
        self.users.extend(names.iter().copied().map(User::new));
        self
    }
}

/// Somebody who may talk to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's name, which is also the name of the context in the kubeconfig.
    pub name: String,
    /// The bearer token. A secret: other users of this machine can reach loopback too.
    pub token: String,
    /// Groups, besides `system:authenticated`.
    pub groups: Vec<String>,
}

impl User {
    /// A user without groups, with a token that nobody can guess.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            token: format!("{:016x}{:016x}", random(), random()),
            groups: Vec::new(),
        }
    }

    /// May do everything.
    pub(super) fn admin() -> Self {
        Self {
            groups: vec!["system:masters".to_owned()],
            ..Self::new("admin")
        }
    }
}

/// 64 bits from the keys that the system gave the standard library for its hash maps: enough for
/// the token of a server on loopback, and no reason for another dependency.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The text of a token file: `token,name,uid,"group,group"`.
pub(super) fn token_file(users: &[User]) -> Result<String> {
    let mut text = String::new();
    for (index, user) in users.iter().enumerate() {
        let groups = user.groups.join(",");
        for part in [&user.name, &user.token] {
            ensure!(
                !part.is_empty() && !part.contains([',', '"', '\n', '\r']),
                "user {:?}: name and token must not be empty, nor hold commas, quotes or line ends",
                user.name,
            );
        }
        ensure!(
            !groups.contains(['"', '\n', '\r']),
            "user {:?}: groups must not hold quotes or line ends",
            user.name,
        );
        ensure!(
            users[..index].iter().all(|other| other.name != user.name),
            "user {:?} is there twice",
            user.name,
        );
        text.push_str(&format!(
            "{},{},{},\"{groups}\"\n",
            user.token, user.name, user.name
        ));
    }
    Ok(text)
}

/// The flags of etcd. It listens on sockets in `folder`: a port of it could be taken by another.
pub(super) fn etcd_flags(folder: &Path) -> Vec<String> {
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls={}", etcd_url(folder)),
        // A name, not a path, is asked for here: a socket in the working directory.
        "--listen-peer-urls=unix://etcd-peer:1".to_owned(),
        // Never used, but a listen address without one is refused.
        "--advertise-client-urls=http://localhost:2379".to_owned(),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

fn etcd_url(folder: &Path) -> String {
    format!("unix://{}", folder.join("etcd.sock").display())
}

/// Where the API server looks for its certificate and its key.
pub(super) const CERTIFICATE: &str = "certificates/apiserver.crt";
pub(super) const KEY: &str = "certificates/apiserver.key";
/// The file of the users' tokens.
pub(super) const TOKENS: &str = "tokens.csv";

/// The flags of kube-apiserver.
pub(super) fn api_server_flags(folder: &Path, port: u16, options: &Options) -> Vec<String> {
    let key = folder.join(KEY);
    let mut flags = vec![
        format!("--etcd-servers={}", etcd_url(folder)),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        // Else it looks for the machine's address in the routes, and fails without a network.
        "--advertise-address=127.0.0.1".to_owned(),
        // Nor is there anything to announce to pods.
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--cert-dir={}", folder.join("certificates").display()),
        // One serves both.
        format!("--service-account-key-file={}", key.display()),
        format!("--service-account-signing-key-file={}", key.display()),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        format!("--token-auth-file={}", folder.join(TOKENS).display()),
        "--authorization-mode=RBAC".to_owned(),
    ];
    if let Some(ttl) = options.event_ttl {
        flags.push(format!("--event-ttl={}s", ttl.as_secs()));
    }
    flags.extend_from_slice(&options.api_server_flags);
    flags
}

/// The flags of kube-controller-manager.
pub(super) fn controller_manager_flags(
    folder: &Path,
    kubeconfig: &Path,
    options: &Options,
) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--controllers={}", options.controllers.join(",")),
        format!("--root-ca-file={}", folder.join(CERTIFICATE).display()),
        format!(
            "--service-account-private-key-file={}",
            folder.join(KEY).display()
        ),
        "--leader-elect=false".to_owned(),
        // By itself it leaves room for others: 20 requests a second, for which many workloads wait.
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
        // Nobody asks it anything.
        "--secure-port=0".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_become_lines_of_the_token_file() {
        let user = |name: &str, groups: &[&str]| User {
            name: name.to_owned(),
            token: format!("secret-of-{name}"),
            groups: groups.iter().copied().map(str::to_owned).collect(),
        };
        let users = [user("alice", &["dev", "on call"]), user("bob", &[])];
        assert_eq!(
            token_file(&users).unwrap(),
            "secret-of-alice,alice,alice,\"dev,on call\"\nsecret-of-bob,bob,bob,\"\"\n"
        );
    }

    #[test]
    fn tokens_differ() {
        let (one, two) = (User::new("alice").token, User::new("alice").token);
        assert_ne!(one, two);
        assert_eq!(one.len(), 32);
    }

    #[test]
    fn users_that_would_break_the_file_are_refused() {
        for users in [
            vec![User::new("al,ice")],
            vec![User::new("")],
            vec![User {
                groups: vec!["\"".to_owned()],
                ..User::new("alice")
            }],
            vec![User::new("alice"), User::new("alice")],
        ] {
            assert!(token_file(&users).is_err(), "{users:?}");
        }
    }
}
