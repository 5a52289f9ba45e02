//! The answers of Prometheus' query API (`/api/v1/query`), and of all who speak like it.
//!
//! Of what they say nothing is repeated but the number, and the few words for errors that the API
//! has: an address may be anybody's, and its replies somebody's secret.

use serde::Deserialize;
use serde_json::Value as Json;
use sluice_core::metric::Answer;

use crate::egress::{Reply, shown};
use crate::polling::Miss;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    status: Status,
    data: Option<Data>,
    error_type: Option<String>,
    #[serde(default)]
    warnings: Vec<Json>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Status {
    Success,
    Error,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: Json,
}

/// The statuses with which the API answers, and not something before it.
pub(super) fn has_body(status: u16) -> bool {
    matches!(status, 200 | 400 | 422 | 503)
}

/// What a reply to a query comes to. `as_somebody`: credentials were sent.
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
            Status::Error => Err(failed(status, envelope.error_type.as_deref(), at)),
        },
        (200, Err(_)) => Err(Miss::broken(at(
            "what it answers is not the query API of Prometheus; correct address".to_owned(),
        ))),
        (_, Ok(envelope)) => Err(failed(status, envelope.error_type.as_deref(), at)),
        (429 | 500..=599, Err(_)) => Err(Miss::passing(at(format!("status {status}")))),
        (_, Err(_)) => Err(Miss::lasting(at(format!("status {status}")))),
    }
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
    let warnings = envelope.warnings.len();
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
    match (result_type.as_str(), result) {
        ("scalar", sample) => number(&sample),
        ("vector", Json::Array(samples)) => match samples.as_slice() {
            [] => Ok(Answer::NoData),
            [sample] if sample.get("histogram").is_some() => Err(
                "the query comes to a histogram; write one that comes to a number, such as \
                 histogram_quantile(...)"
                    .to_owned(),
            ),
            [sample] => number(&sample["value"]),
            samples => Ok(Answer::TooMany(samples.len())),
        },
        ("matrix", _) => Err(
            "the query comes to the values of a range; write one that comes to a single value, \
             such as avg_over_time(...)"
                .to_owned(),
        ),
        ("string", _) => {
            Err("the query comes to a text; write one that comes to a number".to_owned())
        }
        _ => Err("it answers with a result of an unknown type".to_owned()),
    }
}

/// The number in `[instant, "number"]`.
fn number(sample: &Json) -> Result<Answer, String> {
    let text = sample.get(1).and_then(Json::as_str);
    text.and_then(Answer::of)
        .ok_or_else(|| "it answers with a sample that is no number".to_owned())
}
