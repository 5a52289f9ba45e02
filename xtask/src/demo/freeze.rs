//! The change freeze that both stories of promotion have: a gate before prod that is closed.

use anyhow::Result;
use jiff::{RoundMode, SignedDuration, Unit, Zoned, ZonedRound};

use super::stage::Stage;
use super::story;

/// The gate of prod.
pub(super) const GATE: &str = "go-live";
/// The zone that the freeze is written in, as in the other examples.
const ZONE: &str = "Europe/London";
/// How long it lasts.
const FREEZE: SignedDuration = SignedDuration::from_hours(4);

/// Makes the gate. The freeze is from full hour to full hour, by the clocks on the wall, and it is on.
pub(super) async fn begin(stage: &Stage) -> Result<()> {
    let hours = ZonedRound::new()
        .smallest(Unit::Hour)
        .mode(RoundMode::Floor);
    let from = story::now().in_tz(ZONE)?.round(hours)?;
    let wall = |at: &Zoned| at.strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let yaml = include_str!("freeze.yaml")
        .replace("FROM", &wall(&from))
        .replace("UNTIL", &wall(&(&from + FREEZE)));
    stage.apply(&yaml, "freeze.yaml").await
}
