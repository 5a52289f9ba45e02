//! Names to addresses, and the guard between the two.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::Rules;
use super::outcome::EgressError;

/// Looks names up.
pub trait Names: Send + Sync + 'static {
    /// The addresses of `host`.
    ///
    /// # Errors
    /// It has none, or nobody answers.
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Looks names up as every other program of this system does.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNames;

impl Names for SystemNames {
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 443)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Lets through only addresses that the rules allow. The connection is made to what it lets
/// through, so that a name that resolves otherwise a moment later gains nothing.
#[derive(Clone)]
pub(super) struct Guard {
    rules: Arc<Rules>,
    names: Arc<dyn Names>,
}

impl Guard {
    pub(super) fn new(rules: Rules, names: Arc<dyn Names>) -> Self {
        Self {
            rules: Arc::new(rules),
            names,
        }
    }

    /// Checks an address that is connected to without a look-up.
    pub(super) async fn check(&self, address: IpAddr) -> Result<(), EgressError> {
        let api_server = self.api_server().await?;
        match self.rules.refuse(address, &api_server) {
            Some(class) => Err(EgressError::Refused(class)),
            None => Ok(()),
        }
    }

    /// The addresses of `host` that are allowed, at least one.
    async fn allowed(&self, host: &str) -> Result<Vec<IpAddr>, EgressError> {
        let found = self
            .names
            .lookup(host)
            .await
            .map_err(|_| EgressError::Unresolved)?;
        let api_server = self.api_server().await?;
        let mut refused = None;
        let mut allowed = Vec::with_capacity(found.len());
        for address in found {
            match self.rules.refuse(address, &api_server) {
                None => allowed.push(address),
                Some(class) => {
                    tracing::debug!(host, %address, "refused: {class}");
                    refused = refused.or(Some(class));
                }
            }
        }
        match (allowed.is_empty(), refused) {
            (false, _) => Ok(allowed),
            (true, Some(class)) => Err(EgressError::Refused(class)),
            (true, None) => Err(EgressError::Unresolved),
        }
    }

    /// The addresses of the API server, looked up each time where it is known by name. If they
    /// cannot be told, nothing can be told apart from them.
    async fn api_server(&self) -> Result<Vec<IpAddr>, EgressError> {
        let mut addresses = Vec::new();
        for host in &self.rules.api_server {
            match host.trim_matches(['[', ']']).parse() {
                Ok(address) => addresses.push(address),
                Err(_) => {
                    let found = self.names.lookup(host).await;
                    addresses.extend(found.map_err(|_| EgressError::ApiServerUnresolved)?);
                }
            }
        }
        Ok(addresses)
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let allowed = guard.allowed(name.as_str()).await?;
            // Port 0: the port of the address that was asked for.
            let sockets = allowed
                .into_iter()
                .map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(sockets) as Addrs)
        })
    }
}
