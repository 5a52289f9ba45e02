//! Instants as statuses have them: in whole seconds.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// As statuses have instants: in whole seconds, so that what was written reads as it was meant.
pub(crate) fn time(at: Timestamp) -> Time {
    Time(whole_second(at))
}

/// The second that `at` is in.
pub(crate) fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
