//! Names to addresses, and the guard between the two.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::Rules;
use crate::endpoints::Endpoints;
use crate::outcome::EgressError;

/// Looks names up.
pub trait Names: Send + Sync + 'static {
    /// The addresses of `host`.
    ///
    /// # Errors
    /// It has none, or the look-up gets no answer.
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

/// Lets through only addresses that the rules allow. The connection is made to exactly these addresses,
/// so that a name that resolves differently a moment later gains nothing.
#[derive(Clone)]
pub(crate) struct Guard {
    rules: Arc<Rules>,
    names: Arc<dyn Names>,
    /// None: everything that is known of the API server is in the rules.
    endpoints: Option<Arc<Endpoints>>,
}

impl Guard {
    pub(crate) fn new(
        rules: Rules,
        names: Arc<dyn Names>,
        endpoints: Option<Arc<Endpoints>>,
    ) -> Self {
        Self {
            rules: Arc::new(rules),
            names,
            endpoints,
        }
    }

    /// Checks an address that is connected to without a look-up.
    pub(crate) async fn check(&self, address: IpAddr) -> Result<(), EgressError> {
        let api_server = self.api_server().await?;
        self.judge(&address.to_string(), address, &api_server)
    }

    /// Whether an address of `host` may be connected to.
    fn judge(&self, host: &str, address: IpAddr, api_server: &[IpAddr]) -> Result<(), EgressError> {
        match self.rules.refuse(address, api_server) {
            Some(class) => Err(EgressError::Refused(class)),
            None if !self.rules.lists(host, address) => Err(EgressError::NotListed),
            None => Ok(()),
        }
    }

    /// The addresses of `host` that are allowed, at least one.
    pub(crate) async fn allowed(&self, host: &str) -> Result<Vec<IpAddr>, EgressError> {
        let found = self
            .names
            .lookup(host)
            .await
            .map_err(|_| EgressError::Unresolved)?;
        let api_server = self.api_server().await?;
        let mut refused = None;
        let mut allowed = Vec::with_capacity(found.len());
        for address in found {
            match self.judge(host, address, &api_server) {
                Ok(()) => allowed.push(address),
                Err(why) => {
                    tracing::debug!(host, %address, "{why}");
                    refused = refused.or(Some(why));
                }
            }
        }
        match allowed.is_empty() {
            false => Ok(allowed),
            true => Err(refused.unwrap_or(EgressError::Unresolved)),
        }
    }

    /// The addresses of the API server, looked up each time if it is known by name. If they are not
    /// known, no address can be distinguished from them.
    async fn api_server(&self) -> Result<Vec<IpAddr>, EgressError> {
        let mut addresses = match &self.endpoints {
            Some(endpoints) => endpoints.addresses().await?,
            None => Vec::new(),
        };
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
