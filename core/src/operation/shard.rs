//! Shards: each controller writes to one part of the objects.
//!
//! What comes in: the selector that a controller was started with. What goes out: the names of its
//! shard, for the controllers and for the people who run them.

use sha2::{Digest, Sha256};

/// The name of the Lease by which the replicas of a shard agree on a leader. Each shard has its own.
/// None: there is only one shard, with all objects.
pub fn lease(selector: Option<&str>) -> String {
    match selector {
        None => "gate-controller".to_owned(),
        Some(selector) => {
            let digest = Sha256::digest(selector);
            let first = digest.iter().take(4);
            let short: String = first.map(|byte| format!("{byte:02x}")).collect();
            format!("gate-controller-{short}")
        }
    }
}
