//! `metric`: a value that Prometheus measures.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CertificateReference, SecretReference};
use crate::values::{Duration, Setting, with_days};

/// Admits while the value of a query is within a range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.secretRef) || self.address.startsWith('https://')")
        .message("secretRef: secrets are sent over https only; write an https address")
        .field_path(".secretRef"),
    validation = Rule::new("!has(self.certSecretRef) || self.address.startsWith('https://')")
        .message("certSecretRef: belongs to an https address; remove it")
        .field_path(".certSecretRef"),
    validation = Rule::new(with_days("duration(self.interval) >= duration('5s') && duration(self.interval) <= duration('24h')"))
        .message("interval: must be between 5s and 24h")
        .field_path(".interval"),
    validation = Rule::new(with_days("duration(self.timeout) > duration('0s') && duration(self.timeout) <= duration('10s')"))
        .message("timeout: must be longer than zero and at most 10s")
        .field_path(".timeout"),
    validation = Rule::new(with_days("!has(self.__for__) || (duration(self.__for__) > duration('0s') && duration(self.__for__) <= duration('168h'))"))
        .message("for: must be longer than zero and at most 168h")
        .field_path(".for")
)]
pub struct Metric {
    /// The address of Prometheus, or of anything else with its query API, without `/api/v1/query`.
    #[schemars(length(max = 2048), regex(pattern = r"^https?://[^\s@?#]+$"))]
    pub address: String,

    /// A query (PromQL) whose result is one value: a scalar, or a vector of one sample.
    #[schemars(length(min = 1, max = 4096))]
    pub query: String,

    /// The range that the value has to be in, in the unit of the query.
    pub range: Range,

    /// How often the query is evaluated. A result stays good for three intervals.
    #[serde(default = "default_interval")]
    pub interval: Duration,

    /// How long one answer may take; never longer than the interval.
    #[serde(default = "default_timeout")]
    pub timeout: Duration,

    /// For how long without a break the value must have been within the range. A query that fails does
    /// not end this time while the last value is still good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#for: Option<Duration>,

    /// What it means if the query has no result (no sample, or not a number): `open`, a value within the
    /// range; `closed`, a value outside it.
    #[serde(default)]
    pub on_no_data: Setting,

    /// A Secret in the gatekeeper's namespace with the keys `username` and `password`, or with the
    /// key `token`, which is sent as a bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,

    /// A Secret in the gatekeeper's namespace with the key `ca.crt`: the CA certificates to trust
    /// in addition to the public authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<CertificateReference>,
}

fn default_interval() -> Duration {
    Duration::from("1m")
}

fn default_timeout() -> Duration {
    Duration::from("10s")
}

/// The range of a value: at least `min`, at most `max`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.min) || has(self.max)")
        .message("a range without limits admits everything; write min, max or both"),
    validation = Rule::new("!has(self.min) || !has(self.max) || self.min <= self.max")
        .message("min: must not be above max")
        .field_path(".min")
)]
pub struct Range {
    /// The least that is admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,

    /// The most that is admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// A value as it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricStatus {
    /// The value, as Prometheus writes it. None: the query had no result, or several values, or was not
    /// answered yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,

    /// The range that it was compared with, such as `min 0.99, max 1`.
    pub range: String,

    /// When the query was last answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Time>,

    /// Since when the value has been within the range without a break.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_since: Option<Time>,

    /// Why there is no newer answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
