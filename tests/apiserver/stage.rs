//! The stage of the tests here, to which each subject adds the words that it alone needs.

use std::ops::Deref;

use anyhow::Result;
use sluice_tests::Cluster;
use sluice_tests::controller::InProcess;
use sluice_tests::stage;

pub use sluice_tests::stage::{DEADLINE, LAST, OFFICE_HOURS, at, gate, message, soon};

/// A namespace of one's own and a clock to set.
pub struct Stage(stage::Stage);

impl Deref for Stage {
    type Target = stage::Stage;

    fn deref(&self) -> &stage::Stage {
        &self.0
    }
}

impl Stage {
    /// See [`stage::Stage::new`].
    pub async fn new(word: &str, now: &str) -> Result<Self> {
        Ok(Self(stage::Stage::new(word, now).await?))
    }

    /// See [`stage::Stage::open`].
    pub async fn open(word: &str, now: &str) -> Result<(Self, InProcess)> {
        let (stage, controller) = stage::Stage::open(word, now).await?;
        Ok((Self(stage), controller))
    }

    /// See [`stage::Stage::installed`].
    pub async fn installed(word: &str, now: &str) -> Result<Self> {
        Ok(Self(stage::Stage::installed(word, now).await?))
    }

    /// See [`stage::Stage::on`].
    pub async fn on(cluster: &Cluster, word: &str, now: &str) -> Result<Self> {
        Ok(Self(stage::Stage::on(cluster, word, now).await?))
    }
}
