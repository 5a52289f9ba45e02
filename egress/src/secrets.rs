//! Secrets that evidence needs: read by name when they are needed, never listed, never kept.
//!
//! A user who may write a gatekeeper names both the Secret and the address. So a Secret with credentials
//! itself names the hosts that it may be sent to, in the annotation [`HOSTS`], and is sent to no other. Hooks, which may
//! change something, send only what allows that: in the annotation [`HOOK_HOSTS`].

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use reqwest::Url;

use crate::outcome::shown;
use crate::request::Credentials;

pub use forge::{AppKeys, Login, Token, login, token};

mod forge;

/// The annotation of a Secret that names the hosts that it may be sent to, with commas between them:
/// `prometheus.example.com`, `status.example.com:8443`, `*.example.org`.
const HOSTS: &str = "sluice.dev/allowed-hosts";
/// The same for hooks of rollouts.
const HOOK_HOSTS: &str = "sluice.dev/allowed-hook-hosts";

/// The key of a Secret that holds certificates of authorities, in PEM.
pub const AUTHORITIES: &str = "ca.crt";
/// The key of a Secret that holds a bearer token.
const TOKEN: &str = "token";
/// The keys of a Secret that hold a name and its password.
const USERNAME: &str = "username";
const PASSWORD: &str = "password";
/// The keys of a Secret that was made for a server, beside the authorities.
const CERTIFICATE: [&str; 2] = ["tls.crt", "tls.key"];

/// How long to wait for the API server.
const DEADLINE: Duration = Duration::from_secs(10);

/// The keys of a Secret, and what they hold.
type Keys = BTreeMap<String, ByteString>;

/// Why a Secret cannot be used, in words that fit a status and hold nothing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The API server does not give it now. That ends by itself.
    NoAnswer(String),
    /// It may not be read: the verb and resource of the right.
    NoRight(String),
    /// It is not there, or something is wrong with it.
    NotUsable(String),
}

impl From<Unread> for String {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::NoAnswer(why) | Unread::NoRight(why) | Unread::NotUsable(why) => why,
        }
    }
}

/// The certificates of the authorities in the Secret `name`, in PEM, not parsed.
///
/// # Errors
/// In words that fit a status, with the verb and resource where rights are missing.
pub async fn authorities(client: &Client, namespace: &str, name: &str) -> Result<Vec<u8>, String> {
    let mut data = read(client, namespace, name)
        .await?
        .data
        .unwrap_or_default();
    data.remove(AUTHORITIES)
        .map(|bytes| bytes.0)
        .ok_or_else(|| format!("the Secret {namespace}/{name} has no key `{AUTHORITIES}`"))
}

/// The credentials for `url`: the token in the Secret `name`, or the name and password.
///
/// # Errors
/// In words that fit a status and hold nothing of the Secret.
pub async fn credentials(
    client: &Client,
    namespace: &str,
    name: &str,
    url: &str,
) -> Result<Credentials, String> {
    let (data, _) = allowed(client, (namespace, name), HOSTS, url).await?;
    let found = credentials_in(&data);
    Ok(found.map_err(|why| not_usable(namespace, name, &why))?)
}

/// The same for a hook, with the certificates of authorities in PEM, if the Secret has any. One with nothing but
/// certificates is for a hook that is called without credentials.
///
/// # Errors
/// In words that fit a status and hold nothing of the Secret.
pub async fn of_hook(
    client: &Client,
    namespace: &str,
    name: &str,
    url: &str,
) -> Result<(Option<Credentials>, Option<Vec<u8>>), String> {
    let (data, authorities) = allowed(client, (namespace, name), HOOK_HOSTS, url).await?;
    let found = sent_by_hook(&data, authorities.is_some());
    let credentials = found.map_err(|why| not_usable(namespace, name, &why))?;
    Ok((credentials, authorities))
}

/// What a hook sends of these keys of a Secret, which names the authorities of its server, or does not. None: nothing.
fn sent_by_hook(data: &Keys, names_authorities: bool) -> Result<Option<Credentials>, String> {
    let mut keys = [TOKEN, USERNAME, PASSWORD].iter();
    let has_any = keys.any(|key| data.contains_key(*key));
    // It may be a token that is spelled in another way.
    let other = data.keys().find(|key| !CERTIFICATE.contains(&key.as_str()));
    match other {
        None if names_authorities => Ok(None),
        Some(other) if names_authorities && !has_any => Err(format!(
            "has `{other}`, but neither `token` nor `username` with `password`; for a hook that needs none of them \
             keep `ca.crt` alone"
        )),
        _ => credentials_in(data).map(Some),
    }
}

/// The credentials among the keys of a Secret.
fn credentials_in(data: &Keys) -> Result<Credentials, String> {
    let text = |key: &str| match data.get(key) {
        None => Ok(None),
        Some(ByteString(bytes)) => match std::str::from_utf8(bytes) {
            // A line break at the end was added by an editor or by `echo`.
            Ok(text) => Ok(Some(text.trim_end_matches(['\r', '\n']))),
            Err(_) => Err(format!("has a `{key}` that is not UTF-8")),
        },
    };
    match (text(TOKEN)?, text(USERNAME)?, text(PASSWORD)?) {
        (Some(token), None, None) => Credentials::bearer(token)
            .ok_or_else(|| "has a `token` with characters that no header may hold".to_owned()),
        (None, Some(username), Some(password)) => Credentials::basic(username, password)
            .ok_or_else(|| {
                "has a `username` with a colon, which separates it from the password".to_owned()
            }),
        (Some(_), _, _) => {
            Err("has `token` beside `username` or `password`; keep one of them".to_owned())
        }
        (None, _, _) => Err("has neither `token` nor `username` with `password`".to_owned()),
    }
}

/// The keys of the Secret `name`, if this annotation allows it to be sent to `url`, and the certificates of authorities
/// in it.
async fn allowed(
    client: &Client,
    (namespace, name): (&str, &str),
    annotation: &str,
    url: &str,
) -> Result<(Keys, Option<Vec<u8>>), Unread> {
    let secret = read(client, namespace, name).await?;
    may_be_sent(&secret, annotation, url).map_err(|why| not_usable(namespace, name, &why))?;
    Ok(parted(secret.data.unwrap_or_default()))
}

/// The keys, and the certificates of authorities among them. Empty ones count as not there.
fn parted(mut data: Keys) -> (Keys, Option<Vec<u8>>) {
    let authorities = data.remove(AUTHORITIES).map(|bytes| bytes.0);
    let authorities = authorities.filter(|it| !it.trim_ascii().is_empty());
    (data, authorities)
}

fn not_usable(namespace: &str, name: &str, what: &str) -> Unread {
    Unread::NotUsable(format!("the Secret {namespace}/{name} {what}"))
}

/// Whether this annotation of a Secret names the host of `url` as one that it may be sent to.
fn may_be_sent(secret: &Secret, annotation: &str, url: &str) -> Result<(), String> {
    let annotations = secret.metadata.annotations.as_ref();
    let listed = annotations.and_then(|annotations| annotations.get(annotation));
    let asked = Url::parse(url).ok();
    let asked = asked.as_ref().and_then(|url| {
        let port = url.port_or_known_default()?;
        Some((url.host_str()?, port))
    });
    let Some((host, port)) = asked else {
        return Err(format!("is not sent to {}", shown(url)));
    };
    let Some(listed) = listed else {
        return Err(format!(
            "does not say where it may be sent; annotate it with {annotation}: {host}"
        ));
    };
    let mut entries = listed.split(',').map(str::trim);
    match entries.any(|entry| names(entry, host, port)) {
        true => Ok(()),
        false => Err(format!(
            "may not be sent to {host}:{port}; add it to its annotation {annotation}"
        )),
    }
}

/// Whether an entry, with its port or without one, names a host.
fn names(entry: &str, host: &str, port: u16) -> bool {
    let (name, own_port) = match entry.rsplit_once(':') {
        Some((name, digits)) if !digits.ends_with(']') => (name, Some(digits.parse::<u16>())),
        Some(_) | None => (entry, None),
    };
    if own_port.is_some_and(|own| own != Ok(port)) {
        return false;
    }
    match name.strip_prefix('*') {
        Some(suffix) => {
            let from = host.len().checked_sub(suffix.len());
            let end = from
                .filter(|from| *from > 0)
                .and_then(|from| host.get(from..));
            suffix.len() > 1
                && suffix.starts_with('.')
                && end.is_some_and(|end| end.eq_ignore_ascii_case(suffix))
        }
        None => name.eq_ignore_ascii_case(host),
    }
}

/// The Secret `name`, whatever is in it.
///
/// # Errors
/// It is not there, may not be read, or there is no answer.
pub async fn read(client: &Client, namespace: &str, name: &str) -> Result<Secret, Unread> {
    let missing = || Unread::NotUsable(format!("there is no Secret {namespace}/{name}"));
    if !is_object_name(name) {
        return Err(missing());
    }
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    match tokio::time::timeout(DEADLINE, api.get(name)).await {
        Ok(Ok(secret)) => Ok(secret),
        Ok(Err(kube::Error::Api(status))) if status.is_not_found() => Err(missing()),
        Ok(Err(kube::Error::Api(status))) if status.is_forbidden() => Err(Unread::NoRight(
            format!("may not get secrets in namespace {namespace}: grant get on the Secret {name}"),
        )),
        Ok(Err(_)) | Err(_) => Err(Unread::NoAnswer(format!(
            "the API server does not give the Secret {namespace}/{name}"
        ))),
    }
}

/// Whether an object may have this name (a DNS subdomain, RFC 1123). An object with another name cannot
/// exist, and such a name must not get into a path or a selector.
pub fn is_object_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let at_an_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=253).contains(&name.len())
        && name.chars().all(allowed)
        && name.starts_with(at_an_end)
        && name.ends_with(at_an_end)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn sent(hosts: Option<&str>, url: &str) -> Result<(), String> {
        let mut secret = Secret::default();
        secret.metadata.annotations =
            hosts.map(|hosts| [(HOSTS.to_owned(), hosts.to_owned())].into());
        may_be_sent(&secret, HOSTS, url)
    }

    #[test]
    fn what_gatekeepers_may_send_hooks_may_not() {
        let (url, hosts) = ("https://forge.test/", "forge.test".to_owned());
        let mut secret = Secret::default();
        secret.metadata.annotations = Some([(HOSTS.to_owned(), hosts.clone())].into());
        let refused = may_be_sent(&secret, HOOK_HOSTS, url).unwrap_err();
        assert!(
            refused.contains("sluice.dev/allowed-hook-hosts: forge.test"),
            "{refused}"
        );
        secret.metadata.annotations = Some([(HOOK_HOSTS.to_owned(), hosts)].into());
        assert_eq!(may_be_sent(&secret, HOOK_HOSTS, url), Ok(()));
    }

    #[rstest]
    #[case("prometheus.test", "https://prometheus.test/api", true)]
    #[case("prometheus.test", "https://prometheus.test:9090/api", true)]
    #[case("Prometheus.Test", "https://prometheus.test", true)]
    #[case("other.test, prometheus.test", "https://prometheus.test", true)]
    #[case("other.test,prometheus.test:443", "https://prometheus.test", true)]
    #[case("prometheus.test:9090", "https://prometheus.test", false)]
    #[case("prometheus.test:x", "https://prometheus.test", false)]
    #[case("prometheus.test:", "https://prometheus.test", false)]
    #[case("*.example.com", "https://a.b.example.com", true)]
    #[case("*.example.com:8443", "https://a.example.com:8443", true)]
    #[case("*.example.com", "https://example.com", false)]
    #[case("*.example.com", "https://example.com.evil.test", false)]
    #[case("*.example.com", "https://badexample.com", false)]
    #[case("prometheus.test", "https://prometheus.test.evil.test", false)]
    #[case("prometheus.test", "https://evil.test/prometheus.test", false)]
    #[case("prometheus.test", "https://evil.test?prometheus.test", false)]
    #[case("10.1.2.3", "https://10.1.2.3:9090", true)]
    #[case("10.1.2.3", "https://10.1.2.30", false)]
    #[case("[2001:db8::1]", "https://[2001:db8::1]/", true)]
    #[case("[2001:db8::1]:9090", "https://[2001:db8::1]:9090/", true)]
    #[case("*", "https://prometheus.test", false)]
    #[case("*.", "https://prometheus.test.", false)]
    #[case("", "https://prometheus.test", false)]
    fn a_secret_is_sent_where_it_says_and_nowhere_else(
        #[case] hosts: &str,
        #[case] url: &str,
        #[case] expected: bool,
    ) {
        assert_eq!(sent(Some(hosts), url).is_ok(), expected);
    }

    /// With nothing but the certificate of an authority nothing is sent. An empty certificate counts as none.
    #[rstest]
    #[case(&[("token", "abc")], Ok(true), None)]
    #[case(&[("token", "abc"), ("ca.crt", "PEM")], Ok(true), Some("PEM"))]
    #[case(&[("ca.crt", "PEM")], Ok(false), Some("PEM"))]
    #[case(&[("ca.crt", "PEM"), ("tls.crt", "PEM")], Ok(false), Some("PEM"))]
    #[case(&[("token", "abc"), ("ca.crt", "\n")], Ok(true), None)]
    #[case(
        &[("Token", "abc"), ("ca.crt", "PEM")],
        Err("has `Token`, but neither `token` nor `username` with `password`; for a hook that needs none of them \
             keep `ca.crt` alone"),
        Some("PEM")
    )]
    #[case(&[("ca.crt", "")], Err("has neither `token` nor `username` with `password`"), None)]
    #[case(&[], Err("has neither `token` nor `username` with `password`"), None)]
    #[case(
        &[("username", "git"), ("ca.crt", "PEM")],
        Err("has neither `token` nor `username` with `password`"),
        Some("PEM")
    )]
    fn a_hook_needs_no_credentials_where_it_names_an_authority(
        #[case] keys: &[(&str, &str)],
        #[case] sends: Result<bool, &str>,
        #[case] trusts: Option<&str>,
    ) {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let keys = keys
            .iter()
            .map(|(key, text)| ((*key).to_owned(), bytes(text)));
        let (data, authorities) = parted(keys.collect());
        assert_eq!(authorities.as_deref(), trusts.map(str::as_bytes));
        let sent = sent_by_hook(&data, authorities.is_some()).map(|it| it.is_some());
        assert_eq!(sent, sends.map_err(str::to_owned));
    }

    #[test]
    fn what_to_write_is_told() {
        let why = sent(None, "https://prometheus.test/a?key=1").unwrap_err();
        assert_eq!(
            why,
            "does not say where it may be sent; annotate it with sluice.dev/allowed-hosts: \
             prometheus.test"
        );
        let why = sent(Some("other.test"), "https://prometheus.test/").unwrap_err();
        assert_eq!(
            why,
            "may not be sent to prometheus.test:443; add it to its annotation \
             sluice.dev/allowed-hosts"
        );
        assert!(sent(Some("other.test"), "nonsense").is_err());
    }

    #[rstest]
    #[case("holidays", true)]
    #[case("uk.2026-27", true)]
    #[case("", false)]
    #[case("..", false)]
    #[case("a/../../nodes", false)]
    #[case("a,metadata.name!=b", false)]
    #[case("A", false)]
    fn names_are_checked_before_they_are_used(#[case] name: &str, #[case] allowed: bool) {
        assert_eq!(is_object_name(name), allowed);
    }
}
