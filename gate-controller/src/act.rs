//! What the controller does about what it has observed: statuses, annotations and the children of gated
//! sources are written here, and nowhere else.
//!
//! What comes in: changes, and instants that have become due. What goes out: writes to the API server.
//!
//! ```text
//!  change ──▶ waker ──▶ queue ──▶ worker ──▶ reconcile: gather, decide, apply ──▶ API server
//!                         ▲                     │
//!                         └── look again at ────┘
//! ```
//!
//! Only objects of this controller's [`shard`] are written, and only while this replica leads. It may use
//! every room but `serve` and `controller`.

pub(crate) mod claim;
pub(crate) mod errands;
pub mod forges;
pub mod queue;
pub mod reconcile;
pub mod shard;
pub(crate) mod waker;
pub(crate) mod worker;
