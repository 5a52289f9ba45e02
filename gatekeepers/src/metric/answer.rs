//! The answers of Prometheus' query API (`/api/v1/query`), and of all who speak like it.
//!
//! Only the number, and the few words that the API has for errors, are repeated from these answers: an
//! address may belong to anybody, and its replies may be somebody's secret.

use sluice_core::gatekeeper::metric::Answer;
use sluice_egress::{Reply, shown};

use crate::polling::Miss;

use envelope::{Data, Envelope, Status, Word};

mod envelope;
#[cfg(test)]
mod tests;

/// The statuses with which the API itself answers, and not a proxy before it.
pub(super) fn has_body(status: u16) -> bool {
    matches!(status, 200 | 400 | 422 | 503)
}

/// What a reply to a query means. `as_somebody`: credentials were sent.
pub(super) fn read(reply: &Reply, url: &str, as_somebody: bool) -> Result<Answer, Miss> {
    let at = |what: String| format!("{}: {what}", shown(url));
    let status = reply.status;
    let refused = match (status, as_somebody) {
        (401 | 403, false) => Some("name a Secret with credentials in secretRef"),
        (401 | 403, true) => Some("correct the credentials in the Secret of secretRef"),
        (300..=399, _) => Some("redirects are not followed, write the address that they lead to"),
        _ => None,
    };
    if let Some(remedy) = refused {
        return Err(Miss::lasting(at(format!("status {status}; {remedy}"))));
    }
    match (status, serde_json::from_slice::<Envelope>(&reply.body)) {
        (200, Ok(envelope)) => match envelope.status {
            Status::Success => succeeded(envelope, url).map_err(|why| Miss::broken(at(why))),
            Status::Error => Err(failed(status, error_type(&envelope), at)),
        },
        (200, Err(_)) => Err(Miss::broken(at(
            "what it answers is not the query API of Prometheus; correct address".to_owned(),
        ))),
        (_, Ok(envelope)) => Err(failed(status, error_type(&envelope), at)),
        (429 | 500..=599, Err(_)) => Err(Miss::passing(at(format!("status {status}")))),
        (_, Err(_)) => Err(Miss::lasting(at(format!("status {status}")))),
    }
}

fn error_type(envelope: &Envelope) -> Option<&str> {
    envelope.error_type.as_ref()?.text()
}

/// The errors of the API by their types; other words than those are not repeated.
fn failed(status: u16, error_type: Option<&str>, at: impl Fn(String) -> String) -> Miss {
    match error_type {
        Some("bad_data") => Miss::broken(at("it refuses the query; correct query".to_owned())),
        Some("execution") => {
            Miss::broken(at("it cannot execute the query; correct query".to_owned()))
        }
        Some("timeout") => Miss::passing(at("the query took too long".to_owned())),
        Some("canceled" | "internal" | "unavailable") => {
            Miss::passing(at("it cannot answer at present".to_owned()))
        }
        Some(_) | None => Miss::lasting(at(format!("status {status}, and no reason"))),
    }
}

fn succeeded(envelope: Envelope, url: &str) -> Result<Answer, String> {
    let warnings = envelope.warnings.0;
    if warnings > 0 {
        tracing::debug!(
            address = shown(url),
            warnings,
            "an answer comes with warnings"
        );
    }
    let Some(Data {
        result_type,
        result,
    }) = envelope.data
    else {
        return Err("it answers without data".to_owned());
    };
    match (result_type.text(), result.count) {
        (Some("scalar"), _) => number(result.into_pair()),
        (Some("vector"), Some(0)) => Ok(Answer::NoData),
        (Some("vector"), Some(1)) => match result.into_sample() {
            Some(sample) if sample.has_histogram => Err(
                "the query returns a histogram; write one that returns a number, such as \
                 histogram_quantile(...)"
                    .to_owned(),
            ),
            sample => number(sample.and_then(|sample| sample.value)),
        },
        (Some("vector"), Some(samples)) => Ok(Answer::TooMany(samples)),
        (Some("matrix"), _) => Err(
            "the query returns the values of a range; write one that returns a single value, \
             such as avg_over_time(...)"
                .to_owned(),
        ),
        (Some("string"), _) => {
            Err("the query returns a text; write one that returns a number".to_owned())
        }
        (_, _) => Err("it answers with a result of an unknown type".to_owned()),
    }
}

/// The number that a text says.
fn number(text: Option<Word>) -> Result<Answer, String> {
    let number = text.and_then(|text| Answer::of(text.text()?));
    number.ok_or_else(|| "it answers with a sample that is not a number".to_owned())
}
