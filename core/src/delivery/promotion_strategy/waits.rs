//! Why something waits, in a word and a sentence.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sluice_crds::promotion_strategy::Wait;

use super::checks::Check;
use super::words;
use crate::text::words::clean;
use crate::time::stamp::time;

/// A wait.
pub(super) fn wait(reason: &str, message: impl Into<String>) -> Wait {
    Wait {
        reason: reason.to_owned(),
        message: clean(&message.into(), words::LONGEST),
        next: None,
    }
}

/// The forge wants to be asked later.
pub(super) fn throttled(why: &str, until: Option<Time>) -> Wait {
    let message = format!("its pull request waits for the forge: {why}");
    Wait {
        next: until,
        ..wait("ForgeThrottled", message)
    }
}

pub(super) fn pending() -> Wait {
    wait("ForgePending", "the repository is being read")
}

/// The first check that does not pass; one that has failed before one that is not known yet.
pub(super) fn first_failing(checks: &[Check], branch: &str) -> Option<Wait> {
    let open = || checks.iter().filter(|check| !check.passes());
    let failed = open().find(|check| check.reason == "CheckFailed");
    let check = failed.or_else(|| open().next())?;
    let said = check.message.as_deref().unwrap_or("no more is said");
    let message = format!(
        "{branch}: {} is {}: {said}",
        check.key,
        check.phase.as_str()
    );
    Some(Wait {
        next: check.next.map(time),
        ..wait(check.reason, message)
    })
}

/// When time alone may change one of these.
pub(super) fn next(waits: &[Wait]) -> Option<Timestamp> {
    let next = waits.iter().filter_map(|wait| wait.next.as_ref());
    next.map(|next| next.0).min()
}
