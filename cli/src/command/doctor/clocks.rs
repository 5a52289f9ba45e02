//! Whether the clocks agree: this machine's, the controllers', and the API server's.

use anyhow::anyhow;
use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use sluice_core::time::clock::Trust;

use super::finding::Finding;
use super::leader;
use crate::cluster::{Connection, Controller};

const PART: &str = "clock";

/// That of this machine, by which `check` and `why` decide.
pub(super) async fn own(connection: &Connection) -> Finding {
    match connection.difference().await {
        Some(difference) => judged("this machine", difference),
        None => Finding::unknown(
            PART,
            &anyhow!("the API server does not say what time it is"),
        ),
    }
}

/// Those of the leaders, as far as a Lease tells: its holder writes the time by its own clock, and the
/// API server notes when that was written by its own.
pub(super) async fn of_controllers(
    connection: &Connection,
    controllers: &[Controller],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for controller in controllers {
        // That it cannot be read is said of the leader.
        let Ok(Some(lease)) = leader::lease(connection, controller).await else {
            continue;
        };
        let whose = format!("the leader of {}", lease.name_any());
        findings.extend(difference(&lease).map(|it| judged(&whose, it)));
    }
    findings
}

fn difference(lease: &Lease) -> Option<SignedDuration> {
    let renewed = lease.spec.as_ref()?.renew_time.as_ref()?.0;
    let written = lease.metadata.managed_fields.iter().flatten();
    let written = written
        .filter_map(|entry| Some(entry.time.as_ref()?.0))
        .max()?;
    Some(renewed.duration_since(written))
}

fn judged(whose: &str, difference: SignedDuration) -> Finding {
    match Trust::from_difference(difference) {
        Trust::Good => Finding::ok(PART, format!("{whose} and the API server agree")),
        Trust::Drifting(by) | Trust::Lost(by) => {
            let way = if by.is_negative() {
                "behind"
            } else {
                "ahead of"
            };
            let seconds = by.abs().as_secs();
            let found = format!("{whose} is {seconds}s {way} the API server");
            let remedy = "set the clock that is wrong, and keep it with NTP: above 30s nothing is \
                          open by time alone";
            Finding::failed(PART, found, remedy)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::finding::Health;
    use super::*;

    #[test]
    fn a_lease_tells_how_wrong_the_clock_of_its_holder_is() {
        let lease = |renewed: &str| {
            serde_json::from_value::<Lease>(json!({
                "metadata": {"name": "gate-controller", "managedFields": [
                    {"manager": "other", "time": "2026-11-20T11:00:00Z"},
                    {"manager": "gate-controller", "time": "2026-11-20T12:00:00Z"},
                ]},
                "spec": {"renewTime": renewed},
            }))
            .unwrap()
        };
        let health = |renewed| judged("it", difference(&lease(renewed)).unwrap()).health;
        assert_eq!(health("2026-11-20T12:00:00.900000Z"), Health::Ok);
        assert_eq!(health("2026-11-20T12:00:07.000000Z"), Health::Failed);
        assert_eq!(health("2026-11-20T11:59:20.000000Z"), Health::Failed);
    }
}
