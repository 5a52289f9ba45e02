//! Calendars at https addresses, through the whole controller.

use anyhow::{Result, ensure};
use sluice_crds::State;
use sluice_crds::gatekeeper::CalendarStatus;

use super::{ALWAYS, CHRISTMAS, PAST, calendar};
use crate::answers::Server;
use crate::stage::{Stage, at, message};

/// A stage with a gate `uk` that is closed during the events of the server's calendar, whose
/// authority is in a Secret.
async fn scene(server: &Server) -> Result<Stage> {
    let stage = Stage::new("addresses", "2026-12-24T12:00:00Z").await?;
    let authority = server.authority.replace('\n', "\n    ");
    let objects = format!(
        "
apiVersion: v1
kind: Secret
metadata: {{name: authority}}
stringData:
  ca.crt: |
    {authority}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {{name: uk}}
spec:
  schedule:
    closed:
      - name: holidays
        calendar: {{url: '{}', interval: 1h, certSecretRef: {{name: authority}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {{name: uk}}
spec: {{gatekeepers: [{{name: uk}}]}}
",
        server.url("/secret-4711/holidays.ics")
    );
    stage.apply(&objects).await?;
    Ok(stage)
}

#[tokio::test]
async fn a_gate_follows_a_calendar_at_an_address_as_long_as_that_is_good() -> Result<()> {
    let server = Server::start(calendar(CHRISTMAS)).await?;
    let stage = scene(&server).await?;
    let _controller = stage.start_with_egress().await?;
    let open = stage.says("uk", State::Open, "NoClosedWindow").await?;
    assert_eq!(open.upcoming[0].at.0, at("2026-12-25T00:00:00Z"));
    let was_read = |calendar: &CalendarStatus| calendar.events == Some(1);
    let read = stage.reports("uk", "one event", was_read).await?;
    assert_eq!((read.error, server.times()), (None, 1));

    // At the interval, a tenth more or less.
    server.says(calendar(ALWAYS));
    stage.set("2026-12-24T12:53:59Z");
    stage.settle().await?;
    stage.says("uk", State::Open, "NoClosedWindow").await?;
    stage.set("2026-12-24T13:06:00Z");
    stage.says("uk", State::Closed, "ClosedWindow").await?;
    server.says(calendar(PAST));
    stage.set("2026-12-24T14:12:00Z");
    stage.says("uk", State::Open, "NoClosedWindow").await?;
    assert_eq!(server.times(), 3);

    // Good for three intervals after it was read last.
    drop(server);
    stage.set("2026-12-24T17:11:59Z");
    stage.settle().await?;
    stage.says("uk", State::Open, "NoClosedWindow").await?;
    stage.set("2026-12-24T17:12:00Z");
    let closed = stage
        .says("uk", State::Closed, "EvidenceUnavailable")
        .await?;
    let told = message(&closed);
    ensure!(
        told.contains("https://127.0.0.1: connection refused") && !told.contains("4711"),
        "{told}"
    );
    Ok(())
}

#[tokio::test]
async fn loopback_is_out_of_reach_unless_a_flag_opens_it() -> Result<()> {
    let server = Server::start(calendar(PAST)).await?;
    let stage = scene(&server).await?;
    let _controller = stage.start().await?;
    let words = "https://127.0.0.1: refused: it is a loopback address; the controller's flag \
                 --egress-allow opens it";
    stage.refuses("uk", words).await?;
    assert_eq!(server.times(), 0);
    Ok(())
}
