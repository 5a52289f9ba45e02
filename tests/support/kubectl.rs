//! kubectl, for what the docs have people type.

use std::path::PathBuf;

use anyhow::Result;

use crate::progress::Progress;
use crate::tools;

/// The program, and the folder in `control-plane/` that pins it.
const KUBECTL: &str = "kubectl";

/// Finds kubectl on the `PATH`, else in the cache, else builds it there: minutes, the first time.
///
/// # Errors
///
/// Where it has to be built: see [`tools::ensure`].
pub fn ensure(progress: &dyn Progress) -> Result<PathBuf> {
    match tools::on_path(KUBECTL) {
        Some(program) => Ok(program),
        None => Ok(tools::ensure(KUBECTL, progress)?.join(KUBECTL)),
    }
}
