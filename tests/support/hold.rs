//! Holds a control plane until its standard input ends, for the tests that kill it.
//!
//! What comes in: nothing. What goes out: on standard output one line of JSON with `folder` and
//! `port`, once the API server is ready.

use std::io::{Read, Write};
use std::process::ExitCode;

use anyhow::Result;
use sluice_tests::progress::Stderr;
use sluice_tests::{Binaries, ControlPlane, Options};

#[tokio::main]
async fn main() -> ExitCode {
    match hold().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn hold() -> Result<()> {
    let binaries = Binaries::ensure(&Stderr::new())?;
    let options = Options::default().with_housekeeping();
    let plane = ControlPlane::start(&binaries, options).await?;
    let place = serde_json::json!({"folder": plane.folder(), "port": plane.port()});
    writeln!(std::io::stdout(), "{place}")?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
