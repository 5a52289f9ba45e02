//! `kubectl gate open` and `kubectl gate close`

use anyhow::{Context, Result, bail};
use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use sluice_core::gate::{self, Identity, Terms, force};
use sluice_core::{duration, words};
use sluice_crds::{Gate, Setting};

use crate::arguments::Globals;
use crate::cluster::{self, Connection, Use, explain};
use crate::instant;
use crate::outcome::Outcome;
use crate::output;

/// Who owns what we write. kustomize-controller takes away what belongs to a manager whose name
/// starts with `kubectl`.
pub(super) const FIELD_MANAGER: &str = "sluice-cli";

/// The annotations that force a gate.
pub(super) mod annotations {
    pub(crate) use sluice_crds::gate::annotations::*;

    /// All of them.
    pub(crate) const ALL: [&str; 7] = [
        FORCE,
        FORCE_UNTIL,
        FORCE_REASON,
        FORCE_BY,
        FORCE_SEEN,
        RFC_OPEN,
        RFC_CLOSE,
    ];
}

#[derive(Debug, Args)]
pub(crate) struct Force {
    /// The gate
    #[arg(value_name = "NAME")]
    name: String,

    /// Why, for everybody who looks at the gate
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// For how long, such as 90m
    #[arg(long = "for", value_name = "DURATION", conflicts_with = "until")]
    duration: Option<String>,

    /// Until when: RFC 3339, such as 2026-11-20T18:00:00Z
    #[arg(long, value_name = "INSTANT")]
    until: Option<String>,
}

impl Force {
    pub(super) async fn run(&self, globals: &Globals, state: Setting) -> Result<Outcome> {
        let name = cluster::gate_name(&self.name)?;
        if self.reason.trim().is_empty() {
            bail!("--reason: it is empty; say why, such as a ticket's number");
        }
        let duration = self.duration.as_deref().map(instant::parse_duration);
        let duration = duration.transpose().context("--for")?;
        let until = self
            .until
            .as_deref()
            .map(|until| instant::parse(until, None));
        let until = until.transpose().context("--until")?;

        let connection = cluster::connect(globals, Use::Requests).await?;
        let api: Api<Gate> = Api::namespaced(connection.client.clone(), &connection.namespace);
        let gate = api.get(&name).await;
        let gate = gate.map_err(|error| explain(error, &format!("read the gate {name}")))?;
        let Ok(terms) = gate::check(&gate) else {
            bail!(
                "the spec of the gate {name} is refused, so no force counts; mend it first (kubectl gate why {name})"
            );
        };
        // By the clock that everybody else goes by.
        let now = connection.present().await.there;
        let length = duration.unwrap_or(terms.window);
        let until = until.unwrap_or_else(|| now.saturating_add(length).unwrap_or(Timestamp::MAX));
        let until = check_end(until, now, terms)?;
        let by = who(&connection).await?;

        let before = force::read(&gate, Identity::Trusted, now);
        let patched = api
            .patch(
                &name,
                &parameters(),
                &Patch::Merge(self.patch(state, until, &by)),
            )
            .await;
        let verb = match state {
            Setting::Open => "open",
            Setting::Closed => "close",
        };
        patched.map_err(|error| explain(error, &format!("force the gate {name} {verb}")))?;
        output::line(format_args!(
            "{name} is forced {state} by {by} until {}: {}",
            words::instant_utc(until),
            self.reason.trim()
        ))?;
        if let Some(before) = before.in_effect(now) {
            output::line(format_args!(
                "in place of: forced {} by {} until {}: {}",
                before.state,
                before.by,
                words::instant_utc(before.until),
                before.reason
            ))?;
        }
        Ok(Outcome::Yes)
    }

    /// The whole force anew: whatever was there before is gone.
    fn patch(&self, state: Setting, until: Timestamp, by: &str) -> serde_json::Value {
        json!({ "metadata": { "annotations": {
            annotations::FORCE: state.to_string(),
            annotations::FORCE_UNTIL: until.to_string(),
            annotations::FORCE_REASON: self.reason.trim(),
            annotations::FORCE_BY: by,
            annotations::FORCE_SEEN: null,
            annotations::RFC_OPEN: null,
            annotations::RFC_CLOSE: null,
        } } })
    }
}

fn parameters() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// The end in whole seconds, if the gate allows it.
fn check_end(until: Timestamp, now: Timestamp, terms: Terms) -> Result<Timestamp> {
    let second = |seconds| Timestamp::from_second(seconds).unwrap_or(until);
    let too_long = |until: Timestamp| until.duration_since(now) > terms.max_override;
    let whole = second(until.as_second() + i64::from(until.subsec_nanosecond() > 0));
    // The longest force that is allowed stays allowed.
    let until = if too_long(whole) && !too_long(until) {
        second(until.as_second())
    } else {
        whole
    };
    if until <= now {
        bail!(
            "{} has passed; write a later end",
            words::instant_utc(until)
        );
    }
    if too_long(until) {
        bail!(
            "a force until {} would last {}, longer than the gate allows (spec.maxOverride); write an end at most {} ahead",
            words::instant_utc(until),
            duration::text(until.duration_since(now)),
            duration::text(terms.max_override)
        );
    }
    Ok(until)
}

/// Who the API server takes us for: the policy wants that very name.
async fn who(connection: &Connection) -> Result<String> {
    let api: Api<SelfSubjectReview> = Api::all(connection.client.clone());
    let review = api
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await;
    let review = review.map_err(|error| explain(error, "ask the API server who you are"))?;
    let user = review.status.and_then(|status| status.user_info?.username);
    user.context(
        "the API server does not say who you are; update it, or annotate the gate yourself",
    )
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("2026-11-20T18:30:00Z", None)]
    #[case("2026-11-20T20:00:00Z", None)]
    #[case(
        "2026-11-20T20:00:01Z",
        Some(
            "would last 2h1s, longer than the gate allows (spec.maxOverride); write an end at most 2h ahead"
        )
    )]
    #[case("2026-11-20T18:00:00Z", Some("has passed"))]
    fn an_end_must_lie_ahead_but_not_too_far(#[case] until: &str, #[case] refused: Option<&str>) {
        let now = "2026-11-20T18:00:00Z".parse().unwrap();
        let (window, max_override) = (SignedDuration::from_hours(1), SignedDuration::from_hours(2));
        let checked = check_end(
            until.parse().unwrap(),
            now,
            Terms {
                window,
                max_override,
            },
        );
        match refused {
            None => assert_eq!(checked.unwrap().to_string(), until),
            Some(expected) => {
                let error = checked.unwrap_err().to_string();
                assert!(error.contains(expected), "{error}");
            }
        }
    }
}
