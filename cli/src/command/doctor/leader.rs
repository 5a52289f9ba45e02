//! Whether a controller runs, and leads.

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use sluice_core::offline::simulate::Key;

use super::finding::Finding;
use crate::cluster::{self, Connection, Controller};
use crate::instant::age;

const CONTROLLER: &str = "controller";
const LEADER: &str = "leader";

pub(super) async fn examine(connection: &Connection, controllers: &[Controller]) -> Vec<Finding> {
    if controllers.is_empty() {
        let remedy = "install the chart: helm install gate-controller charts/gate-controller \
                      --namespace sluice-system --create-namespace";
        let found = "no controller is installed";
        return vec![Finding::failed(CONTROLLER, found, remedy)];
    }
    let mut findings = Vec::new();
    for controller in controllers {
        let Controller {
            namespace,
            name,
            ready,
            ..
        } = controller;
        findings.push(match ready {
            1.. => Finding::ok(CONTROLLER, format!("{}; {ready} ready", controller.line())),
            _ => Finding::failed(
                CONTROLLER,
                format!("{}; no pod of it is ready", controller.line()),
                format!(
                    "see kubectl describe deployment {name} --namespace {namespace}, and its logs"
                ),
            ),
        });
        let now = connection.present().await.there;
        findings.push(match lease(connection, controller).await {
            Ok(lease) => judged(controller, lease.as_ref(), now),
            Err(error) => Finding::unknown(LEADER, &error),
        });
    }
    findings
}

/// The Lease of a controller. None: there is none, or it needs none. Those of other shards are theirs.
pub(super) async fn lease(
    connection: &Connection,
    controller: &Controller,
) -> Result<Option<Lease>> {
    if !controller.elects() {
        return Ok(None);
    }
    let key = Key {
        namespace: controller.namespace.clone(),
        name: controller.lease(),
    };
    cluster::find(connection, &key).await
}

fn judged(controller: &Controller, lease: Option<&Lease>, now: Timestamp) -> Finding {
    let Controller {
        namespace, name, ..
    } = controller;
    if !controller.elects() {
        let alone = format!("{namespace}/{name} runs alone, without a Lease");
        return Finding::ok(LEADER, alone);
    }
    match lease {
        Some(lease) => of_lease(controller, lease, now),
        None => {
            let lease = controller.lease();
            let found = format!("there is no Lease {lease} in {namespace}: nobody has ever led");
            Finding::failed(LEADER, found, logs(controller))
        }
    }
}

fn of_lease(controller: &Controller, lease: &Lease, now: Timestamp) -> Finding {
    let name = lease.name_any();
    let spec = lease.spec.clone().unwrap_or_default();
    let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
    let (Some(holder), Some(renewed)) = (holder, spec.renew_time) else {
        let found = format!("nobody holds the Lease {name}");
        return Finding::failed(LEADER, found, logs(controller));
    };
    let length = SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or_default().into());
    let ago = age(renewed.0, now);
    if now.duration_since(renewed.0) <= length {
        let found = format!("{holder} holds the Lease {name}, renewed {ago} ago");
        return Finding::ok(LEADER, found);
    }
    let found = format!("{holder} held the Lease {name}, and was last heard of {ago} ago");
    Finding::failed(LEADER, found, logs(controller))
}

fn logs(controller: &Controller) -> String {
    let Controller {
        namespace, name, ..
    } = controller;
    format!("see why no pod takes it: kubectl logs deployment/{name} --namespace {namespace}")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Health;
    use super::*;

    const SELECTOR: &str = "--watch-label-selector=sharding.fluxcd.io/key=shard1";

    #[test]
    fn a_controller_is_judged_by_the_lease_of_its_shard() {
        let now = crate::clock::now();
        let elects = "--enable-leader-election";
        let whole = Controller::started("sluice-system", "gate-controller", &[elects]);
        let shard = Controller::started("sluice-system", "shard1", &[elects, SELECTOR]);
        assert_eq!(whole.lease(), "gate-controller");
        assert_eq!(shard.lease(), "gate-controller-73fdc1be");

        let nobody = judged(&shard, None, now);
        assert_eq!(nobody.health, Health::Failed);
        let expected = "there is no Lease gate-controller-73fdc1be in sluice-system";
        assert!(nobody.found.starts_with(expected), "{}", nobody.found);
        let alone = Controller::started("sluice-system", "gate-controller", &[SELECTOR]);
        assert_eq!(judged(&alone, None, now).health, Health::Ok);
    }
}
