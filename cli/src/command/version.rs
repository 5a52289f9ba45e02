//! `kubectl gate version`

use anyhow::Result;

use crate::outcome::Outcome;
use crate::output;

pub(super) fn run() -> Result<Outcome> {
    output::line(format_args!("kubectl-gate {}", env!("CARGO_PKG_VERSION")))?;
    Ok(Outcome::Yes)
}
