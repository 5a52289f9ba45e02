//! Deliveries: what goes out, after the gates were asked, and what makes it so.
//!
//! What comes in: an object that delivers, all that it depends on as it is, and an instant. What goes
//! out: its status, what is to be done to other objects, and when to look again.
//!
//! It uses [`gate`](crate::gate), [`gatekeeper`](crate::gatekeeper), [`flux`](crate::flux),
//! [`verdict`](crate::verdict), [`revision`](crate::revision), [`time`](crate::time) and [`text`](crate::text).

pub mod gated_source;
