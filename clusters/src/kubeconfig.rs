//! From the data of a Secret to the way to a cluster: a pure rule.
//!
//! A kubeconfig may ask for more than to be read: it may name programs to run, files of this machine and
//! proxies. Users write these Secrets, and the controller uses them. So what is more than an https
//! address, an authority and static credentials is refused by its name. No message shows a value.
//!
//! No other room is used.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use k8s_openapi::ByteString;
use kube::config::{AuthInfo, Cluster, Context, Kubeconfig as File};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use secrecy::ExposeSecret;

/// The keys of a Secret that a kubeconfig is read from; the first that is there counts. Flux and Cluster
/// API write the first, some tools the others.
pub const KEYS: [&str; 3] = ["value", "value.yaml", "kubeconfig"];

/// The longest address, in bytes: paths are appended to it.
const LONGEST: usize = 2048;

/// A kubeconfig that can be used: where, whom to trust, and as whom.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    pub(crate) server: Uri,
    /// The name that the certificate is for, if it is not the host of the address.
    pub(crate) server_name: Option<String>,
    /// The certificates of the authorities, in DER: no other authority is trusted.
    pub(crate) authorities: Vec<Vec<u8>>,
    /// Credentials alone: nothing in it leads to a program or a file.
    pub(crate) user: AuthInfo,
}

/// What is wrong with a kubeconfig, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The Secret has none of the [`KEYS`].
    #[error("the Secret has no kubeconfig; write it under the key `value`")]
    NoKey,
    /// It cannot be read.
    #[error(
        "`{0}` is no kubeconfig; write what `kubectl config view --raw --minify --flatten` shows"
    )]
    Unreadable(&'static str),
    /// The client cannot be made from it.
    #[error("a client cannot be made from it; write it again with `kubectl config`")]
    Unusable,
    /// A field is wrong.
    #[error("{field}: {problem}; {remedy}")]
    Field {
        /// Its path.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
        /// What to write instead.
        remedy: &'static str,
    },
}

fn refuse<T>(
    field: &'static str,
    problem: &'static str,
    remedy: &'static str,
) -> Result<T, Refusal> {
    Err(Refusal::Field {
        field,
        problem,
        remedy,
    })
}

impl Kubeconfig {
    /// Reads the data of a Secret.
    ///
    /// # Errors
    /// There is no kubeconfig in it, or one that is not used.
    pub fn read(data: &BTreeMap<String, ByteString>) -> Result<Self, Refusal> {
        let found = KEYS.iter().find_map(|key| Some((*key, &data.get(*key)?.0)));
        let (key, bytes) = found.ok_or(Refusal::NoKey)?;
        let text = std::str::from_utf8(bytes).map_err(|_| Refusal::Unreadable(key))?;
        // What the parser says may have a part of the text in it.
        let file = File::from_yaml(text).map_err(|_| Refusal::Unreadable(key))?;
        let context = context(&file)?;
        let (cluster, user) = (cluster(&file, context)?, user(&file, context)?);
        check_cluster(cluster)?;
        check_user(user)?;
        Ok(Self {
            server: server(cluster)?,
            server_name: cluster.tls_server_name.clone().filter(|it| !it.is_empty()),
            authorities: authorities(cluster)?,
            user: user.clone(),
        })
    }

    /// Whether it leads to the same cluster: then what was read there still counts.
    pub fn leads_as(&self, other: &Self) -> bool {
        self.server == other.server
            && self.server_name == other.server_name
            && self.authorities == other.authorities
    }
}

fn context(file: &File) -> Result<&Context, Refusal> {
    const FIELD: &str = "current-context";
    let wanted = file.current_context.as_deref().filter(|it| !it.is_empty());
    let found = match (wanted, &file.contexts[..]) {
        (Some(name), contexts) => contexts.iter().find(|context| context.name == name),
        (None, [only]) => Some(only),
        (None, []) => return refuse("contexts", "there is none", "write one"),
        (None, _) => {
            return refuse(
                FIELD,
                "there are several contexts, and none of them is the current one",
                "write the name of one, or leave only one context",
            );
        }
    };
    let found = found.and_then(|named| named.context.as_ref());
    found.map_or_else(
        || {
            refuse(
                FIELD,
                "there is no such context",
                "write the name of one that is there",
            )
        },
        Ok,
    )
}

fn cluster<'a>(file: &'a File, context: &Context) -> Result<&'a Cluster, Refusal> {
    let mut clusters = file.clusters.iter();
    let found = clusters.find(|cluster| cluster.name == context.cluster);
    let found = found.and_then(|named| named.cluster.as_ref());
    found.map_or_else(
        || {
            refuse(
                "contexts[].context.cluster",
                "there is no such cluster",
                "write the name of one that is there",
            )
        },
        Ok,
    )
}

fn user<'a>(file: &'a File, context: &Context) -> Result<&'a AuthInfo, Refusal> {
    let mut users = file.auth_infos.iter();
    let found = users.find(|user| Some(&user.name) == context.user.as_ref());
    let found = found.and_then(|named| named.auth_info.as_ref());
    found.map_or_else(
        || {
            refuse(
                "contexts[].context.user",
                "there is no such user",
                "write the name of one that is there",
            )
        },
        Ok,
    )
}

/// What a cluster may not have.
fn check_cluster(cluster: &Cluster) -> Result<(), Refusal> {
    if cluster.insecure_skip_tls_verify == Some(true) {
        return refuse(
            "clusters[].cluster.insecure-skip-tls-verify",
            "anybody could answer in place of the API server",
            "take it out, and write certificate-authority-data",
        );
    }
    if is_given(cluster.proxy_url.as_ref()) {
        return refuse(
            "clusters[].cluster.proxy-url",
            "no proxy is used, because the rules for addresses do not reach behind it",
            "take it out, and write an address that the controller can connect to",
        );
    }
    if is_given(cluster.certificate_authority.as_ref()) {
        return refuse(
            "clusters[].cluster.certificate-authority",
            "files are not read",
            "write the certificates into certificate-authority-data, in base64",
        );
    }
    Ok(())
}

/// What a user may not have.
fn check_user(user: &AuthInfo) -> Result<(), Refusal> {
    const TOKEN: &str = "take it out, and write the token of a ServiceAccount into token";
    const INLINE: &str = "write client-certificate-data and client-key-data, in base64";
    if user.exec.is_some() {
        return refuse(
            "users[].user.exec",
            "no program is run for credentials",
            TOKEN,
        );
    }
    if user.auth_provider.is_some() {
        return refuse(
            "users[].user.auth-provider",
            "no provider is asked for credentials",
            TOKEN,
        );
    }
    if is_given(user.token_file.as_ref()) {
        return refuse("users[].user.tokenFile", "files are not read", TOKEN);
    }
    if is_given(user.client_certificate.as_ref()) {
        return refuse(
            "users[].user.client-certificate",
            "files are not read",
            INLINE,
        );
    }
    if is_given(user.client_key.as_ref()) {
        return refuse("users[].user.client-key", "files are not read", INLINE);
    }
    check_credentials(user, INLINE)
}

/// A user has a token, a certificate with its key, or a name with its password.
fn check_credentials(user: &AuthInfo, inline: &'static str) -> Result<(), Refusal> {
    let certificate = user.client_certificate_data.as_deref();
    let certificate = certificate.filter(|it| !it.is_empty());
    let key = user.client_key_data.as_ref();
    let key = key.filter(|it| !it.expose_secret().is_empty());
    match (certificate, key) {
        (None, None) => {}
        (Some(_), None) => {
            return refuse("users[].user.client-key-data", "it is missing", inline);
        }
        (None, Some(_)) => {
            return refuse(
                "users[].user.client-certificate-data",
                "it is missing",
                inline,
            );
        }
        (Some(certificate), Some(key)) => {
            if certificates(certificate).is_none() {
                return refuse(
                    "users[].user.client-certificate-data",
                    "it holds no certificate",
                    inline,
                );
            }
            let key = STANDARD.decode(key.expose_secret()).ok();
            if key.is_none_or(|key| PrivateKeyDer::from_pem_slice(&key).is_err()) {
                return refuse("users[].user.client-key-data", "it holds no key", inline);
            }
            return Ok(());
        }
    }
    let token = user.token.as_ref().map(ExposeSecret::expose_secret);
    if token.is_some_and(|token| HeaderValue::from_str(token).is_err()) {
        return refuse(
            "users[].user.token",
            "it holds characters that no header may hold",
            "write the token alone, in one line",
        );
    }
    let has_token = token.is_some_and(|token| !token.is_empty());
    if has_token || (user.username.is_some() && user.password.is_some()) {
        return Ok(());
    }
    refuse(
        "users[].user",
        "it has no credentials",
        "write token, or client-certificate-data with client-key-data",
    )
}

fn server(cluster: &Cluster) -> Result<Uri, Refusal> {
    const FIELD: &str = "clusters[].cluster.server";
    const REMEDY: &str = "write one such as https://api.example.com:6443";
    let text = cluster.server.as_deref().unwrap_or_default();
    let server = Some(text).filter(|text| text.len() <= LONGEST);
    let Some(Ok(server)) = server.map(str::parse::<Uri>) else {
        return refuse(FIELD, "it is no address", REMEDY);
    };
    if server.scheme_str() != Some("https") || server.host().is_none_or(str::is_empty) {
        return refuse(FIELD, "it is no https address", REMEDY);
    }
    let authority = server.authority().map(http::uri::Authority::as_str);
    if authority.is_some_and(|authority| authority.contains('@')) {
        return refuse(FIELD, "it names a user", "remove what stands before @");
    }
    Ok(server)
}

fn authorities(cluster: &Cluster) -> Result<Vec<Vec<u8>>, Refusal> {
    let data = cluster.certificate_authority_data.as_deref();
    data.and_then(certificates).map_or_else(
        || {
            refuse(
                "clusters[].cluster.certificate-authority-data",
                "it holds no certificate",
                "write the certificate of the authority that signed the API server's, as PEM in base64",
            )
        },
        Ok,
    )
}

/// The certificates in a text of base64, which has PEM in it: at least one.
fn certificates(base64: &str) -> Option<Vec<Vec<u8>>> {
    let pem = STANDARD.decode(base64.trim()).ok()?;
    let certificates = CertificateDer::pem_slice_iter(&pem);
    let certificates = certificates.map(|it| it.map(|der| der.to_vec()));
    let certificates: Vec<_> = certificates.collect::<Result<_, _>>().ok()?;
    (!certificates.is_empty()).then_some(certificates)
}

fn is_given(text: Option<&String>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
