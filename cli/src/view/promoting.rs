//! Pipelines of a cluster with the votes on their promotions.

use std::sync::Arc;

use anyhow::Result;
use jiff::Timestamp;
use kube::api::{Api, ListParams};
use sluice_core::delivery::pipeline::{View, view};
use sluice_crds::{Approval, Pipeline};

use crate::cluster::{self, Connection};
use crate::instant::Zone;

/// Pipelines as they are shown.
pub(crate) struct Promoting {
    /// What needs people most is the first.
    pub(crate) views: Vec<View>,
    /// The zone in which the windows around them are written.
    pub(crate) zone: Zone,
    pub(crate) now: Timestamp,
    /// What could not be seen.
    pub(crate) notes: Vec<String>,
}

/// The pipeline of that name in the connection's namespace, or all there, or all everywhere.
///
/// # Errors
/// There is none of that name; anything that keeps us from reading pipelines.
pub(crate) async fn promoting(
    connection: &Connection,
    name: Option<&str>,
    everywhere: bool,
) -> Result<Promoting> {
    let everywhere = everywhere && name.is_none();
    let area = connection.area(everywhere);
    let objects: Vec<Pipeline> = match name {
        Some(name) => vec![cluster::existing(connection, name).await?],
        None => cluster::list(&connection.api(area), ListParams::default()).await?,
    };
    let mut notes = Vec::new();
    let approvals: Api<Approval> = connection.api(area);
    let votes = match cluster::list(&approvals, ListParams::default()).await {
        Ok(votes) => votes.into_iter().map(Arc::new).collect(),
        Err(error) => {
            notes.push(format!("{error:#}; no votes are shown"));
            Vec::new()
        }
    };
    let mut views: Vec<View> = objects.iter().map(|it| view(it, &votes)).collect();
    views.sort_by(|a, b| (a.needs, &a.namespace, &a.name).cmp(&(b.needs, &b.namespace, &b.name)));
    Ok(Promoting {
        views,
        zone: cluster::zone(connection, everywhere).await,
        now: connection.present().await.now.at,
        notes,
    })
}
