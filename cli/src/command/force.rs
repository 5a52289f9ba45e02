//! `kubectl gate open` and `kubectl gate close`

use anyhow::{Context, Result, bail};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::Api;
use serde_json::{Value, json};
use sluice_core::gate::{self, Identity, Terms, force};
use sluice_core::text::words;
use sluice_core::time::duration;
use sluice_core::time::span::later;
use sluice_core::verdict::status::REQUESTED_AT;
use sluice_crds::gate::annotations;
use sluice_crds::{Gate, Setting};

use crate::arguments::{Globals, gate_name};
use crate::cluster::{self, Use};
use crate::outcome::Outcome;
use crate::output::{say, warn};
use crate::{clock, instant};

mod confirm;

use confirm::{Answer, Written};

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 the gate is forced, or the controller has not answered yet; \
                  1 the force is written, but not accepted; 2 it cannot be written."
)]
pub(crate) struct Force {
    /// The gate
    #[arg(value_name = "NAME")]
    name: String,

    /// Why you force the gate: everybody who looks at the gate sees it
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// How long the force lasts, such as 90m
    #[arg(long = "for", value_name = "DURATION", conflicts_with = "until")]
    duration: Option<String>,

    /// When the force ends: RFC 3339, such as 2026-11-20T18:00:00Z
    #[arg(long, value_name = "INSTANT")]
    until: Option<String>,

    /// How long to wait until the controller accepts the force, such as 30s; 0 does not wait
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    timeout: String,
}

/// When a force ends, as the arguments say it.
#[derive(Clone, Copy, Debug)]
enum End {
    At(Timestamp),
    After(SignedDuration),
    /// As the gate's spec says.
    Window,
}

impl Force {
    pub(super) async fn run(&self, globals: &Globals, state: Setting) -> Result<Outcome> {
        let name = gate_name(&self.name)?;
        if self.reason.trim().is_empty() {
            bail!("--reason: it is empty; say why, such as a ticket's number");
        }
        let end = self.end()?;
        let patience = instant::parse_timeout(&self.timeout).context("--timeout")?;

        let connection = cluster::connect(globals, Use::Requests).await?;
        let api: Api<Gate> = connection.here();
        let gate = cluster::read(&api, &name).await?;
        // By the clock that everybody else goes by.
        let now = connection.present().await.there;
        let written = Written {
            state,
            until: end.of(&gate, now)?,
            reason: self.reason.trim().to_owned(),
            by: connection.who().await?.name,
            asked: clock::now().to_string(),
        };
        write(&api, &name, &written).await?;
        let answer = match patience {
            Some(patience) => written.confirmed(&api, &name, patience).await,
            None => Answer::None,
        };
        let outcome = report(&name, &written, &answer)?;
        if answer == Answer::None && patience.is_some() {
            warn(format_args!(
                "no controller has answered within {}, and none may be running; ask again with kubectl gate why {name}",
                self.timeout
            ));
        }
        let before = force::read(&gate, Identity::Trusted, now);
        if let Some(before) = before.in_effect(now) {
            say!("in place of: {before}")?;
        }
        Ok(outcome)
    }

    fn end(&self) -> Result<End> {
        Ok(match (&self.until, &self.duration) {
            (Some(until), _) => End::At(instant::parse(until, None).context("--until")?),
            (None, Some(length)) => End::After(instant::parse_duration(length).context("--for")?),
            (None, None) => End::Window,
        })
    }
}

impl End {
    /// The instant, if the gate allows it.
    fn of(self, gate: &Gate, now: Timestamp) -> Result<Timestamp> {
        let Ok(terms) = gate::check(gate) else {
            let name = gate.name_any();
            bail!(
                "the spec of the gate {name} is refused, so no force counts; fix it first (kubectl gate why {name})"
            );
        };
        let after = |length| later(now, length);
        let until = match self {
            Self::At(until) => until,
            Self::After(length) => after(length),
            Self::Window => after(terms.window),
        };
        check_end(until, now, terms)
    }
}

/// Reports whether the controller accepted it.
fn report(name: &str, written: &Written, answer: &Answer) -> Result<Outcome> {
    let Written {
        state, reason, by, ..
    } = written;
    let until = words::instant_utc(written.until);
    let force = format!("forced {state} by {by} until {until}: {reason}");
    match answer {
        Answer::Accepted => say!("{name} is {force}")?,
        Answer::Refused(why) => say!("{name}: written, but not accepted: {why}")?,
        Answer::None => say!("{name}: written, not yet confirmed by the controller: {force}")?,
    }
    Ok(Outcome::yes_if(!matches!(answer, Answer::Refused(_))))
}

/// Writes the whole force: nothing is left of one before.
async fn write(api: &Api<Gate>, name: &str, written: &Written) -> Result<()> {
    let mut annotations = json!(written.annotations());
    annotations[REQUESTED_AT] = json!(written.asked);
    for gone in [
        annotations::FORCE_SEEN,
        annotations::RFC_OPEN,
        annotations::RFC_CLOSE,
    ] {
        annotations[gone] = Value::Null;
    }
    let verb = match written.state {
        Setting::Open => "open",
        Setting::Closed => "close",
    };
    let what = format!("force the gate {name} {verb}");
    cluster::annotate(api, name, &annotations, &what).await
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

#[cfg(test)]
mod tests {
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

    /// Ends are in whole seconds, and now hardly ever is.
    #[test]
    fn the_longest_length_is_not_too_long() {
        let now = "2026-11-20T18:00:00.5Z".parse().unwrap();
        let longest = SignedDuration::from_hours(24);
        let terms = Terms {
            window: longest,
            max_override: longest,
        };
        let until = check_end(now + longest, now, terms).unwrap();
        assert_eq!(until.to_string(), "2026-11-21T18:00:00Z");
    }
}
