//! What a force must say.

use anyhow::{Context, Result};
use serde_json::Value;

use super::scene::{Annotations, Scene, force, refused};

fn with(key: &str, value: impl Into<Value>) -> Annotations {
    let mut annotations = force("carol");
    annotations.insert(format!("sluice.dev/{key}"), value.into());
    annotations
}

#[tokio::test]
async fn the_state_is_one_of_two_words() -> Result<()> {
    let scene = Scene::new().await?;
    for state in ["ajar", "", "Open", "true"] {
        let expected = format!(
            "metadata.annotations[sluice.dev/force]: \"{state}\" is neither open nor closed; \
             write one of them"
        );
        refused(
            scene.annotate("carol", &with("force", state)).await?,
            &expected,
        )?;
    }
    for state in ["open", "closed"] {
        scene.annotate("carol", &with("force", state)).await??;
    }
    Ok(())
}

#[tokio::test]
async fn the_reason_is_given() -> Result<()> {
    let scene = Scene::new().await?;
    for reason in [Value::Null, "".into(), " \t\n".into()] {
        refused(
            scene
                .annotate("carol", &with("force-reason", reason))
                .await?,
            "metadata.annotations[sluice.dev/force-reason]: must say why the gate is forced; \
             write a few words, such as a ticket's number",
        )?;
    }
    scene
        .annotate("carol", &with("force-reason", " Störung 4711\n"))
        .await??;
    Ok(())
}

#[tokio::test]
async fn the_end_is_an_instant() -> Result<()> {
    let scene = Scene::new().await?;
    for until in [
        "",
        "tomorrow",
        "1h",
        "2026-11-21",
        "2026-11-21T17:00:00",
        "2026-11-21 17:00:00Z",
        "2026-11-21t17:00:00z",
        "2026-11-21T17:00Z",
        "2026-11-21T24:00:00Z",
        "2026-11-21T17:00:60Z",
        "2026-13-01T17:00:00Z",
        "2026-11-31T17:00:00Z",
        "2026-02-29T17:00:00Z",
        "2100-02-29T17:00:00Z",
        "0000-01-01T00:00:00Z",
        "2026-11-21T17:00:00+25:00",
        "2026-11-21T17:00:00.Z",
        "2026-11-21T17:00:00Z ",
        "1795107600",
    ] {
        let expected = format!(
            "metadata.annotations[sluice.dev/force-until]: \"{until}\" is not an instant of RFC \
             3339; write one such as 2026-11-21T17:00:00Z, or leave it out for the gate's \
             spec.window"
        );
        refused(
            scene.annotate("carol", &with("force-until", until)).await?,
            &expected,
        )?;
    }
    for until in [
        "2026-11-21T17:00:00Z",
        "2026-11-30T23:59:59.999999999Z",
        "2028-02-29T17:00:00+05:30",
        "2000-02-29T00:00:00-11:00",
        "2026-12-31T23:59:59Z",
        "9999-12-31T23:59:59Z",
    ] {
        let answer = scene.annotate("carol", &with("force-until", until)).await?;
        answer.with_context(|| until.to_owned())?;
    }
    Ok(())
}

/// A message that repeats the value would be too long: the fixed one stands in.
#[tokio::test]
async fn a_huge_value_is_refused_like_any_other() -> Result<()> {
    let scene = Scene::new().await?;
    let huge = "9".repeat(200 * 1024);
    refused(
        scene
            .annotate("carol", &with("force-until", huge.as_str()))
            .await?,
        "metadata.annotations[sluice.dev/force-until]: is not an instant of RFC 3339",
    )?;
    refused(
        scene
            .annotate("carol", &with("force", huge.as_str()))
            .await?,
        "metadata.annotations[sluice.dev/force]: is neither open nor closed",
    )
}
