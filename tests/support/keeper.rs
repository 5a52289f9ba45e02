//! The controller as a process that is killed at one of its requests, and what comes after it.
//!
//! What comes in: the request. What goes out: a process that has been killed there while nothing of it went on,
//! and then the same one started again, or a second replica that leads in its place; and what the server took
//! from all of them.

use std::path::Path;

use anyhow::{Context, Result};
use http::Method;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use serde_json::json;
use tempfile::TempPath;

use crate::controller::Process;
use crate::proxy::{Fault, Proxy};
use crate::writes::Writes;

/// What comes after the kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The same replica, started again.
    Restart,
    /// Another one, which has been there all the time.
    Standby,
}

/// A leader that is not given up by itself, however slow the machine is.
const PATIENT: [&str; 4] = [
    "--enable-leader-election",
    "--leader-election-lease-duration=60s",
    "--leader-election-renew-deadline=50s",
    "--leader-election-retry-period=500ms",
];

/// A request of the controller, by what is in its path and its body.
#[derive(Clone)]
pub struct Point {
    fault: Fault,
    method: Method,
    part: &'static str,
    body: &'static str,
}

/// The process is killed before this request arrives.
#[must_use]
pub fn before(method: Method, part: &'static str, body: &'static str) -> Point {
    let fault = Fault::StopBefore;
    Point {
        fault,
        method,
        part,
        body,
    }
}

/// The process is killed when this request was carried out, and does not get to know that.
#[must_use]
pub fn after(method: Method, part: &'static str, body: &'static str) -> Point {
    Point {
        fault: Fault::StopAfter,
        ..before(method, part, body)
    }
}

/// The replicas of a namespace.
pub struct Keeper {
    next: Next,
    namespace: String,
    own: Client,
    /// From the replica that is killed to the API server.
    line: Proxy,
    /// From the one that goes on.
    second: Proxy,
    flags: Vec<String>,
    replicas: Vec<Process>,
    /// They read them when they start.
    kubeconfigs: [TempPath; 2],
}

impl Keeper {
    /// Nothing runs yet. `own`: to the API server, with all rights.
    ///
    /// # Errors
    ///
    /// If there is no free port.
    pub async fn new(own: Client, namespace: &str, next: Next) -> Result<Self> {
        let line = Proxy::start(own.clone()).await?;
        let second = Proxy::start(own.clone()).await?;
        let mut flags = vec!["--egress-allow=127.0.0.0/8".to_owned()];
        if next == Next::Standby {
            flags.extend(PATIENT.map(str::to_owned));
        }
        Ok(Self {
            next,
            namespace: namespace.to_owned(),
            own,
            kubeconfigs: [line.kubeconfig()?, second.kubeconfig()?],
            line,
            second,
            flags,
            replicas: Vec::new(),
        })
    }

    /// The line of the first replica. Lines to other servers have to be beside it.
    #[must_use]
    pub fn line(&self) -> &Proxy {
        &self.line
    }

    /// How many requests of all replicas the API server has carried out with this method, whose path or query
    /// has `part` in it and whose body has `body`.
    #[must_use]
    pub fn carried_out(&self, method: &Method, part: &str, body: &str) -> usize {
        let lines = [&self.line, &self.second].into_iter();
        lines.map(|line| line.carried_out(method, part, body)).sum()
    }

    /// Starts the replicas, with one more flag.
    ///
    /// # Errors
    ///
    /// If they do not start.
    pub async fn start(&mut self, flag: Option<String>) -> Result<()> {
        self.flags.extend(flag);
        let [own, others] = &self.kubeconfigs;
        let first = self.replica(own, "one").await?;
        first.has_synced().await?;
        if self.next == Next::Standby {
            first.leads(true).await?;
            let second = self.replica(others, "two").await?;
            second.has_synced().await?;
            self.replicas = vec![first, second];
        } else {
            self.replicas = vec![first];
        }
        Ok(())
    }

    async fn replica(&self, kubeconfig: &Path, name: &str) -> Result<Process> {
        let flags: Vec<_> = self.flags.iter().map(String::as_str).collect();
        Process::start(kubeconfig, &self.namespace, name, &flags).await
    }

    /// Has the first replica killed at a request that comes by this line.
    pub fn dies_at(line: &Proxy, point: &Point) {
        let Point {
            fault,
            method,
            part,
            body,
        } = point.clone();
        line.order_for(fault, method, (part, body), 1);
    }

    /// Waits until it is killed. Nobody leads then.
    ///
    /// # Errors
    ///
    /// If the request does not come.
    pub async fn dead(&mut self) -> Result<()> {
        self.line.stands_still().await?;
        self.replicas.remove(0).kill().await?;
        self.line.cut();
        Ok(())
    }

    /// What comes next.
    ///
    /// # Errors
    ///
    /// If nobody goes on.
    pub async fn goes_on(&mut self) -> Result<()> {
        match self.next {
            Next::Restart => {
                let again = self.replica(&self.kubeconfigs[1], "one").await?;
                self.replicas.push(again);
                Ok(())
            }
            Next::Standby => {
                // The end of the Lease would do the same, after a minute.
                let leases: Api<Lease> = Api::namespaced(self.own.clone(), &self.namespace);
                let nobody = json!({"spec": {"holderIdentity": null}});
                leases.merge("gate-controller", &nobody).await?;
                let second = self.replicas.first().context("there is no second one")?;
                second.leads(true).await
            }
        }
    }
}
