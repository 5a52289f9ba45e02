//! Copies of artifacts whose gated source went while no controller was there.

use std::fs;

use anyhow::{Result, ensure};
use jiff::ToSpan;
use sluice_tests::poll;

use super::scene::Scene;
use crate::stage::DEADLINE;

/// What `abc` comes to by sha256 (FIPS 180-2, appendix B.1).
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// Nobody asks for Flux's objects where there is no gated source. Copies that nobody needs go all the
/// same, a minute after that is known.
#[tokio::test]
async fn copies_that_belong_to_nobody_go() -> Result<()> {
    let scene = Scene::new("leftovers").await?;
    let stage = &scene.stage;
    let folder = tempfile::tempdir()?;
    let namespace = stage.namespace();
    let copies = folder.path().join(format!("gatedsource/{namespace}/gone"));
    fs::create_dir_all(&copies)?;
    let copy = copies.join(format!("sha256-{ABC}.tar.gz"));
    fs::write(&copy, "abc")?;
    let mut settings = stage.settings();
    settings.storage_path = Some(folder.path().to_owned());
    settings.storage_addr = "127.0.0.1:0".parse().map_err(anyhow::Error::msg)?;
    let _controller = stage.start_with(settings).await?;
    poll(DEADLINE, "the copy to go", async || {
        // From whenever it became known, a minute passes.
        stage.clock().set(stage.now() + 2.minutes());
        ensure!(!copy.exists(), "it is there");
        Ok(())
    })
    .await
}
