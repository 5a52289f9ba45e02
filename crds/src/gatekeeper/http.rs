//! `http`: an HTTP address that is queried.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CertificateReference, SecretReference};
use crate::values::{Duration, with_days};

/// Admits while an address answers as expected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.secretRef) || self.url.startsWith('https://')")
        .message("secretRef: secrets are sent over https only; write an https address")
        .field_path(".secretRef"),
    validation = Rule::new("!has(self.certSecretRef) || self.url.startsWith('https://')")
        .message("certSecretRef: belongs to an https address; remove it")
        .field_path(".certSecretRef"),
    validation = Rule::new(with_days("duration(self.interval) >= duration('5s') && duration(self.interval) <= duration('24h')"))
        .message("interval: must be between 5s and 24h")
        .field_path(".interval"),
    validation = Rule::new(with_days("duration(self.timeout) > duration('0s') && duration(self.timeout) <= duration('10s')"))
        .message("timeout: must be longer than zero and at most 10s")
        .field_path(".timeout")
)]
pub struct Http {
    /// The address. The request is a GET; redirects are not followed.
    #[schemars(length(max = 2048), regex(pattern = r"^https?://[^\s@]+$"))]
    pub url: String,

    /// The statuses that admit, each from 100 to 599.
    #[serde(default = "default_statuses")]
    #[schemars(length(min = 1, max = 16), inner(range(min = 100, max = 599)))]
    pub expected_statuses: Vec<i32>,

    /// An expression (CEL) over `status`, a number, and `body`, the answer's JSON, that has to be
    /// true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub expression: Option<String>,

    /// How often the address is asked. An answer stays good for three intervals.
    #[serde(default = "default_interval")]
    pub interval: Duration,

    /// How long one answer may take; never longer than the interval.
    #[serde(default = "default_timeout")]
    pub timeout: Duration,

    /// How many more times it is asked, each a moment later, if it does not answer. A status that is not
    /// expected is an answer.
    #[serde(default = "default_retries")]
    #[schemars(range(min = 0, max = 5))]
    pub retries: i32,

    /// A Secret in the gatekeeper's namespace with the keys `username` and `password`, or with the
    /// key `token`, which is sent as a bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,

    /// A Secret in the gatekeeper's namespace with the key `ca.crt`: the CA certificates to trust
    /// in addition to the public authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<CertificateReference>,
}

fn default_statuses() -> Vec<i32> {
    vec![200]
}

fn default_interval() -> Duration {
    Duration::from("1m")
}

fn default_timeout() -> Duration {
    Duration::from("10s")
}

fn default_retries() -> i32 {
    2
}

/// An answer. Of its body only one thing is reported: whether it was as expected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpStatus {
    /// The status of the answer. None: nobody has answered yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,

    /// Whether its body satisfies the expression. None: there is no expression, or the status was
    /// not expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub satisfied: Option<bool>,

    /// When it was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Time>,

    /// Why there is no newer answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
