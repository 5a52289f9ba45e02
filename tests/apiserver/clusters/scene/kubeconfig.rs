//! The way to the second server by a line that speaks TLS itself.

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use sluice_tests::Applier;
use sluice_tests::proxy::Proxy;

use super::{SECRET, Scene};

impl Scene {
    /// A client of the second server that has no credentials.
    pub async fn nobody(&self) -> Result<Client> {
        let mut kubeconfig = Kubeconfig::read_from(self.second.kubeconfig())?;
        for user in &mut kubeconfig.auth_infos {
            user.auth_info = Some(AuthInfo::default());
        }
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    /// Writes the Secret of a line, which has an authority of its own.
    pub async fn put_kubeconfig_by(&self, line: &Proxy, token: &str) -> Result<()> {
        let mut secret = self.second.secret(SECRET, line.url(), token)?;
        let value = &mut secret["stringData"]["value"];
        let mut kubeconfig: Value = serde_json::from_str(value.as_str().context("no text")?)?;
        let authority = STANDARD.encode(line.authority());
        kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"] = authority.into();
        *value = kubeconfig.to_string().into();
        let applier = Applier::new(self.own.clone()).in_namespace(self.home.name());
        applier.text(&secret.to_string()).await?;
        Ok(())
    }
}
