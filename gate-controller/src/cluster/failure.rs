//! What went wrong with the API server, in words that say what to do.

use kube::core::Status;
use kube::runtime::watcher;
pub use sluice_watching::passes;

/// What a failed watch means.
pub fn of_watch(error: &watcher::Error, plural: &str, group: &str) -> String {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => {
            of_status(status, "list and watch", plural, group)
        }
        watcher::Error::WatchError(status) => of_status(status, "watch", plural, group),
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => format!("cannot watch {plural}: {error}"),
        watcher::Error::NoResourceVersion => {
            format!("cannot watch {plural}: the API server does not support it")
        }
    }
}

/// What a failed request means.
pub fn of_request(error: &kube::Error, verb: &str, plural: &str, group: &str) -> String {
    match error {
        kube::Error::Api(status) => of_status(status, verb, plural, group),
        other => format!("cannot {verb} {plural}: {other}"),
    }
}

/// What to do about a missing right.
pub fn no_right(verb: &str, plural: &str, group: &str) -> String {
    format!("no right to; grant the verbs {verb} on {plural} in group `{group}`")
}

fn of_status(status: &Status, verb: &str, plural: &str, group: &str) -> String {
    // What was written to may be another kind than what is looked at.
    let other = status.details.as_ref();
    let other = other.filter(|it| it.group != group && !it.group.is_empty());
    let (verb, plural, group) = match other {
        Some(other) => (
            "get, create, patch and delete",
            other.kind.as_str(),
            other.group.as_str(),
        ),
        None => (verb, plural, group),
    };
    match status.code {
        403 => format!(
            "cannot {verb} {plural}: {} ({})",
            no_right(verb, plural, group),
            status.message
        ),
        404 if verb.contains("list") => not_installed(plural, group),
        _ => format!("cannot {verb} {plural}: {}", status.message),
    }
}

fn not_installed(plural: &str, group: &str) -> String {
    format!(
        "the CustomResourceDefinition {plural}.{group} is not installed; install the chart's CRDs. \
         Waiting for it"
    )
}

/// Whether the API server has refused a watch: it will refuse again, until somebody changes something.
pub fn is_refused(error: &watcher::Error) -> bool {
    matches!(
        error,
        watcher::Error::InitialListFailed(kube::Error::Api(status))
            | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            if matches!(status.code, 401 | 403 | 404)
    )
}

/// Whether the API server does not know the kind that was to be listed.
pub fn is_not_installed(error: &watcher::Error) -> bool {
    matches!(
        error,
        watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404
    )
}

/// Whether a watch only has to start again with a list: the API server no longer knows the version from
/// which it was to continue. That is part of how watches work, after a compaction or when a kind has just
/// been installed.
pub fn is_expired(error: &watcher::Error) -> bool {
    matches!(
        error,
        watcher::Error::WatchError(status)
            | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            if status.code == 410
    )
}

/// Whether the API server asks for patience with a list or a watch: it has much to do, or it is
/// still getting ready to serve a kind that was installed a moment ago.
pub fn is_busy(error: &watcher::Error) -> bool {
    matches!(
        error,
        watcher::Error::WatchError(status)
            | watcher::Error::InitialListFailed(kube::Error::Api(status))
            | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            if status.code == 429
    )
}

/// Whether the object that was written to is gone.
pub fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether the object that was written to has been replaced: by a later version, by another object of the
/// same name, or by none. The watch brings the new state.
pub fn is_overtaken(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Whether the API server has answered, and refuses: until somebody changes something, it will refuse
/// again. If it did not answer, it is not known what happened to the request; and if the object is gone
/// or was replaced, that is no refusal.
pub fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(_))
        && !passes(error)
        && !is_gone(error)
        && !is_overtaken(error)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn refused(code: u16, message: &str) -> kube::Error {
        kube::Error::Api(Status::failure(message, "").with_code(code).boxed())
    }

    #[rstest]
    #[case::no_right(403, false)]
    #[case::invalid(422, false)]
    #[case::too_many(429, true)]
    #[case::broken(500, true)]
    #[case::away(503, true)]
    fn some_failures_pass_by_themselves(#[case] code: u16, #[case] expected: bool) {
        assert_eq!(passes(&refused(code, "")), expected);
    }

    #[rstest]
    #[case::no_right(403, true)]
    #[case::invalid(422, true)]
    #[case::gone(404, false)]
    #[case::overtaken(409, false)]
    #[case::too_many(429, false)]
    #[case::broken(500, false)]
    fn what_is_refused_is_told_from_what_is_tried_again_at_once(
        #[case] code: u16,
        #[case] expected: bool,
    ) {
        assert_eq!(is_refusal(&refused(code, "")), expected);
    }

    #[rstest]
    #[case::expired(410, true)]
    #[case::refused(403, false)]
    #[case::away(503, false)]
    fn a_watch_of_too_old_a_version_begins_anew(#[case] code: u16, #[case] expected: bool) {
        let status = || Status::failure("too old resource version", "").with_code(code);
        assert_eq!(
            is_expired(&watcher::Error::WatchError(status().boxed())),
            expected
        );
        let start = watcher::Error::WatchStartFailed(refused(code, "Expired"));
        assert_eq!(is_expired(&start), expected);
    }

    #[rstest]
    #[case::getting_ready(429, true)]
    #[case::away(503, false)]
    #[case::refused(403, false)]
    fn an_api_server_may_ask_for_patience(#[case] code: u16, #[case] expected: bool) {
        let error = || refused(code, "storage is (re)initializing");
        assert_eq!(
            is_busy(&watcher::Error::InitialListFailed(error())),
            expected
        );
        assert_eq!(
            is_busy(&watcher::Error::WatchStartFailed(error())),
            expected
        );
    }

    #[test]
    fn a_missing_right_is_named() {
        let words = of_request(&refused(403, "no"), "patch", "gates/status", "sluice.dev");
        assert!(
            words.contains("grant the verbs patch on gates/status"),
            "{words}"
        );
    }
}
