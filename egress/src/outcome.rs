//! What came of a request, in words that fit a status: outcomes, never replies.

use std::error::Error;
use std::io;
use std::time::Duration;

use reqwest::Url;
use rustls::{CertificateError, OtherError};

use crate::address::Class;

/// Why nothing was read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    /// The address is something else.
    #[error("it is not an https address; write one that starts with https://")]
    NotHttps,
    /// The address is something else, where http is allowed too.
    #[error("it is not an http or https address; write one that starts with https:// or http://")]
    NotHttp,
    /// A secret would be sent where others can read it.
    #[error("secrets are sent over https only; write an https address")]
    SecretOverHttp,
    /// The address holds credentials, which do not belong into a spec.
    #[error("it names a user; remove what stands before @")]
    NamesAUser,
    /// A header that the caller has given.
    #[error("the header `{0}` cannot be sent")]
    Header(String),
    /// The name or the address leads to a destination that the rules refuse.
    #[error("refused: it is {0}; the controller's flag --egress-allow opens it")]
    Refused(Class),
    /// The operator's list does not contain it.
    #[error("refused: the controller's flag --egress-only does not list it")]
    NotListed,
    /// The name has no address.
    #[error("its name cannot be resolved")]
    Unresolved,
    /// The API server's name has no address, so that no address can be distinguished from it.
    #[error(
        "refused: the API server's own name cannot be resolved, so that it cannot be ruled out"
    )]
    ApiServerUnresolved,
    /// The API server has not reported yet where it listens, so that no address can be distinguished from
    /// it.
    #[error(
        "refused: the API server does not answer where it listens, so that it cannot be ruled out"
    )]
    ApiServerUntold,
    /// Nobody listens there.
    #[error("connection refused")]
    ConnectionRefused,
    /// It could not be connected to for another reason.
    #[error("it cannot be connected to")]
    NoConnection,
    /// The certificate has expired, or is not valid yet.
    #[error("its certificate has expired or is not valid yet")]
    CertificateExpired,
    /// The certificate is for another name.
    #[error("its certificate is for another name")]
    CertificateForAnother,
    /// The certificate is from an authority that is not trusted.
    #[error(
        "its certificate is not trusted; put the certificate of its authority under `ca.crt` into a Secret: that of certSecretRef for a gatekeeper, that of secretRef for a hook or a forge"
    )]
    CertificateNotTrusted,
    /// The certificate is from none of the authorities that were named.
    #[error(
        "its certificate is signed neither by one in `ca.crt` of the Secret that is named nor by a public authority; put the certificate of the authority that signed it there"
    )]
    CertificateNotSigned,
    /// The certificate is an authority's own, which a server may not use.
    #[error(
        "it shows the certificate of an authority (CA:TRUE) as its own, which is not accepted even if `ca.crt` has it; give the server a certificate that the authority has signed, or a self-signed one with basicConstraints CA:FALSE"
    )]
    CertificateOfAuthority,
    /// TLS failed for another reason.
    #[error("it does not agree on TLS")]
    Tls,
    /// Too many others ask for the same namespace or host.
    #[error("there was no turn to send it in time")]
    NoTurn,
    /// It took too long.
    #[error("timed out after {}s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The reply's status is not 200.
    #[error("status {code}{remark}", code = .0, remark = remark(*.0))]
    Status(u16),
    /// The reply is longer than so many bytes.
    #[error("the reply is longer than {}", size(*.0))]
    TooLong(usize),
    /// The reply was cut off, or is not HTTP.
    #[error("the reply broke off or is not HTTP")]
    Broken,
    /// The authorities are no certificates.
    #[error("`ca.crt` holds no certificate; write certificates in PEM")]
    NoCertificate,
    /// The TLS library refuses its own defaults.
    #[error("TLS cannot be set up")]
    Setup,
}

impl EgressError {
    /// The same where authorities were named: naming them once more would not help.
    pub(super) fn with_authorities(self) -> Self {
        match self {
            EgressError::CertificateNotTrusted => EgressError::CertificateNotSigned,
            other => other,
        }
    }

    /// Whether the same request a moment later may have another outcome.
    pub fn may_pass(&self) -> bool {
        match self {
            EgressError::Unresolved
            | EgressError::ApiServerUnresolved
            | EgressError::ApiServerUntold
            | EgressError::ConnectionRefused
            | EgressError::NoConnection
            | EgressError::Tls
            | EgressError::NoTurn
            | EgressError::TimedOut(_)
            | EgressError::Broken => true,
            EgressError::NotHttps
            | EgressError::NotHttp
            | EgressError::SecretOverHttp
            | EgressError::NamesAUser
            | EgressError::Header(_)
            | EgressError::Refused(_)
            | EgressError::NotListed
            | EgressError::CertificateExpired
            | EgressError::CertificateForAnother
            | EgressError::CertificateNotTrusted
            | EgressError::CertificateNotSigned
            | EgressError::CertificateOfAuthority
            | EgressError::Status(_)
            | EgressError::TooLong(_)
            | EgressError::NoCertificate
            | EgressError::Setup => false,
        }
    }
}

fn remark(status: u16) -> &'static str {
    match status {
        300..=399 => "; redirects are not followed, write the address that they lead to",
        _ => "",
    }
}

fn size(bytes: usize) -> String {
    if bytes > 0 && bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{bytes} bytes")
    }
}

/// What a message may say of an address: its host. The rest may be as good as a password.
pub fn shown(url: &str) -> String {
    match Url::parse(url) {
        Ok(url) => format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default()),
        Err(_) => "the address".to_owned(),
    }
}

/// The outcome that `error` means. That it took too long is not covered here: the one limit of time is
/// kept around the whole request.
pub fn of(error: &reqwest::Error) -> EgressError {
    match of_connection(error) {
        Some(outcome) => outcome,
        None if error.is_connect() => EgressError::NoConnection,
        None => EgressError::Broken,
    }
}

/// The outcome that an error of any client means, if one of its causes says what has happened to the
/// connection.
pub fn of_connection(error: &(dyn Error + 'static)) -> Option<EgressError> {
    if let Some(own) = find::<EgressError>(error) {
        return Some(own.clone());
    }
    if let Some(tls) = find::<rustls::Error>(error) {
        return Some(of_tls(tls));
    }
    let refused = find::<io::Error>(error).map(io::Error::kind);
    (refused == Some(io::ErrorKind::ConnectionRefused)).then_some(EgressError::ConnectionRefused)
}

fn of_tls(error: &rustls::Error) -> EgressError {
    match error {
        rustls::Error::InvalidCertificate(error) => match error {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => EgressError::CertificateExpired,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                EgressError::CertificateForAnother
            }
            CertificateError::Other(other) if is_authority(other) => {
                EgressError::CertificateOfAuthority
            }
            _ => EgressError::CertificateNotTrusted,
        },
        _ => EgressError::Tls,
    }
}

/// Whether the certificate is refused because it is an authority's. The error is of a crate below the TLS
/// library, which passes it on unchanged.
fn is_authority(error: &OtherError) -> bool {
    error.0.to_string().contains("CaUsedAsEndEntity")
}

/// The first `T` among an error and its causes. An `io::Error` that wraps another error does not
/// give it as its cause, but the cause of that.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = match error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}
