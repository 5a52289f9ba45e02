//! Shards: each controller writes to one part of the objects.
//!
//! What comes in: the selector that a controller was started with. What goes out: the names of its
//! shard, for the controllers and for the people who run them.

use sha2::{Digest, Sha256};

/// The name of the Lease by which the replicas of a shard agree on a leader. Each shard has its own.
/// Without a selector it has all objects, and without kinds, in any order, those of all kinds.
pub fn lease(selector: Option<&str>, kinds: &[impl AsRef<str>]) -> String {
    let mut kinds: Vec<&str> = kinds.iter().map(AsRef::as_ref).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let of = match (selector, kinds.is_empty()) {
        (None, true) => return "gate-controller".to_owned(),
        (Some(selector), true) => selector.to_owned(),
        (selector, false) => format!("{} kinds={}", selector.unwrap_or_default(), kinds.join(",")),
    };
    let digest = Sha256::digest(of);
    let first = digest.iter().take(4);
    let short: String = first.map(|byte| format!("{byte:02x}")).collect();
    format!("gate-controller-{short}")
}
