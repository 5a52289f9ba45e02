//! What the failure of a list or a watch means.

use kube::core::Status;
use kube::runtime::watcher::Error;

/// Whether the failure ends by itself: the API server is away, or has too much to do. A refusal lasts
/// until somebody changes something.
pub fn passes(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 429 | 500..),
        kube::Error::HyperError(_) | kube::Error::Service(_) => true,
        _ => false,
    }
}

/// What the API server has answered, if it has refused a list or a watch.
pub fn refusal(error: &Error) -> Option<&Status> {
    match error {
        Error::InitialListFailed(kube::Error::Api(status))
        | Error::WatchStartFailed(kube::Error::Api(status))
        | Error::WatchFailed(kube::Error::Api(status))
        | Error::WatchError(status) => Some(status),
        Error::InitialListFailed(_)
        | Error::WatchStartFailed(_)
        | Error::WatchFailed(_)
        | Error::NoResourceVersion => None,
    }
}
