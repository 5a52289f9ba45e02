//! The one way out of the cluster, to addresses that users write into objects.
//!
//! What comes in: a [`Request`]. What goes out: the status, the headers and the body of the reply, or an
//! [`EgressError`] that names the outcome and shows nothing of the reply. A request that only reads may
//! reach the server twice ([`Egress::ask`], [`Egress::get`]); a request that changes something is sent
//! [`Once`] ([`Egress::send`]); a body that is too long for memory is a [`Download`]. No other crate of
//! ours is used.
//!
//! Addresses are https. A caller may be allowed to ask over http, but never with a secret.
//!
//! Everybody who may write a Gatekeeper may name an address, and the controller connects to it from its
//! own network: also to private addresses, because Prometheus is at one. So these users learn of every
//! server that the controller can reach whether it answers, with which status, and what an expression
//! says of the body. The [`address`] rules say what is never connected to. They are checked on the
//! addresses that are connected to, after the name was resolved. An operator who wants to list everything
//! that may be asked does so there ([`Rules::only`]), or by a NetworkPolicy. Redirects are not followed,
//! and no proxy is taken from the environment: it would resolve names itself, and bypass the rules. The
//! authorities are Mozilla's, compiled in: an image without a single file works, and all replicas trust
//! the same ones.

pub mod address;
mod destination;
mod download;
mod endpoints;
mod names;
mod outcome;
pub mod places;
mod request;
pub mod secrets;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;
mod trust;
mod turns;
mod way_out;

pub use address::{Class, Rules};
pub use destination::Destination;
pub use download::{Bounds, Download};
pub use endpoints::Endpoints;
pub use names::{Names, SystemNames};
pub use outcome::{EgressError, of as outcome, of_connection, shown};
pub use request::{
    Body, Content, Credentials, Method, Once, Repeatable, Reply, Request, Schemes, Sent, Sieve,
};
pub use trust::config as tls;
pub use turns::Limits;
pub use way_out::Egress;
