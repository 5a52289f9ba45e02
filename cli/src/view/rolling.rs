//! A Rollout of a cluster with its workloads.

use anyhow::Result;
use jiff::Timestamp;
use sluice_core::delivery::rollout::{View, view};
use sluice_crds::Rollout;

use crate::cluster::{self, Connection, Watched};
use crate::instant::Zone;

/// A Rollout as it is shown.
pub(crate) struct Rolling {
    pub(crate) view: View,
    /// The zone in which the windows around it are written.
    pub(crate) zone: Zone,
    pub(crate) now: Timestamp,
}

/// The Rollout of that name in the connection's namespace. What it is shown from is watched, if somebody wants
/// to look again.
///
/// # Errors
/// There is none of that name; anything that keeps us from reading it.
pub(crate) async fn rolling(
    connection: &Connection,
    name: &str,
    watched: Option<&mut Watched>,
) -> Result<Rolling> {
    let object: Rollout = cluster::existing(connection, name).await?;
    if let Some(watched) = watched {
        watched.workloads(connection, &object);
    }
    let workloads = cluster::workloads(connection, &object).await;
    Ok(Rolling {
        view: view(&object, &workloads),
        zone: cluster::zone(connection, false).await,
        now: connection.present().await.now.at,
    })
}
