//! Instants as statuses have them: in whole seconds.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// An instant in whole seconds, as statuses have it, so that it is the same after it is written and
/// read.
pub(crate) fn time(at: Timestamp) -> Time {
    Time(whole_second(at))
}

/// The second that `at` is in.
pub(crate) fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
