//! Shards: controllers that write to a part of the objects each.
//!
//! What comes in: the selector that a controller was started with. What goes out: what its shard is
//! known by, to the controllers and to those who look after them.

use sha2::{Digest, Sha256};

/// The name of the Lease by which the replicas of a shard agree on a leader: each shard has its own.
/// None: there is one shard of everything.
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
