//! What went wrong at the API server, in one line that says what to do.

use std::fmt;

use anyhow::{Error, Result, anyhow};
use kube::core::Status;

/// What the API server has answered, if it has.
pub(super) fn status(error: &kube::Error) -> Option<&Status> {
    match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

/// The code of what the API server has answered: 404.
pub(crate) fn code(error: &kube::Error) -> Option<u16> {
    status(error).map(|status| status.code)
}

/// The API server does not know the kind. `said` is its message.
fn knows_no_kind(said: &str) -> bool {
    said.contains("could not find the requested resource") || said == "404 page not found"
}

/// Whether the API server does not know the kind that it was asked for.
pub(super) fn is_unknown_kind(error: &kube::Error) -> bool {
    let answered = status(error).filter(|status| status.code == 404);
    answered.is_some_and(|status| knows_no_kind(status.message.trim()))
}

/// Answers of the API server, with what we cannot do without them.
pub(crate) trait Cannot<T> {
    /// An error of one line: we cannot `what` (such as `read the gate production`), and why.
    fn cannot(self, what: impl fmt::Display) -> Result<T>;
}

impl<T> Cannot<T> for Result<T, kube::Error> {
    fn cannot(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| explain(error, what))
    }
}

/// There was no answer, or none that holds for long: worth another try.
#[derive(Debug)]
struct Passing(String);

impl fmt::Display for Passing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Passing {}

/// Whether it may be otherwise at the next try.
pub(crate) fn is_passing(error: &Error) -> bool {
    error.downcast_ref::<Passing>().is_some()
}

/// Why we cannot `what`.
pub(super) fn explain(error: kube::Error, what: impl fmt::Display) -> Error {
    let Some(status) = status(&error) else {
        return match error {
            kube::Error::Service(_) | kube::Error::HyperError(_) => Error::new(Passing(format!(
                "cannot {what}: the API server does not answer: {}; check the kubeconfig and the network",
                root(&error)
            ))),
            other => anyhow!("cannot {what}: {other}"),
        };
    };
    let silent = format!("the API server answers with status {}", status.code);
    let said = match status.message.trim() {
        "" => silent.as_str(),
        said => said,
    };
    match status.code {
        401 => anyhow!(
            "cannot {what}: the API server does not know who you are; renew the credentials of the kubeconfig"
        ),
        403 => anyhow!("cannot {what}: the API server refuses it: {said}"),
        404 if knows_no_kind(said) => anyhow!(
            "cannot {what}: the API server does not know the kinds of sluice.dev; install their CustomResourceDefinitions"
        ),
        429 | 500.. => Error::new(Passing(format!("cannot {what}: {said}"))),
        _ => anyhow!("cannot {what}: {said}"),
    }
}

/// The innermost cause, which is the one that says something.
fn root(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn api(code: u16, message: &str) -> kube::Error {
        let status = Status {
            code,
            message: message.to_owned(),
            ..Status::default()
        };
        kube::Error::Api(Box::new(status))
    }

    #[rstest]
    #[case(
        404,
        "the server could not find the requested resource",
        "install their CustomResourceDefinitions"
    )]
    #[case(
        404,
        "gates.sluice.dev \"a\" not found",
        "cannot read it: gates.sluice.dev \"a\" not found"
    )]
    #[case(401, "Unauthorized", "renew the credentials")]
    #[case(403, "no rights", "the API server refuses it: no rights")]
    #[case(503, "", "cannot read it: the API server answers with status 503")]
    fn answers_become_one_line(#[case] code: u16, #[case] message: &str, #[case] expected: &str) {
        let error = explain(api(code, message), "read it").to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }

    #[test]
    fn what_may_be_otherwise_soon_is_worth_another_try() {
        let gone = kube::Error::Service("connection refused".into());
        assert!(is_passing(&explain(gone, "read it")));
        for (code, passing) in [(429, true), (503, true), (403, false), (404, false)] {
            assert_eq!(
                is_passing(&explain(api(code, "no"), "read it")),
                passing,
                "{code}"
            );
        }
    }
}
