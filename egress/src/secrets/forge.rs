//! Who asks a forge: a token, or a GitHub App.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use kube::Client;

use super::{HOSTS, PASSWORD, TOKEN, USERNAME, Unread, allowed, not_usable};
use crate::request::Credentials;

/// The keys of a Secret that hold a GitHub App, as Flux names them.
const APP_ID: &str = "githubAppID";
const APP_INSTALLATION: &str = "githubAppInstallationID";
const APP_KEY: &str = "githubAppPrivateKey";
/// A token of a forge: what its API takes as a bearer token, and Git as a password. Never shown.
#[derive(Clone)]
pub struct Token {
    text: String,
    bearer: Credentials,
}

impl Token {
    /// None: it is empty, or contains characters that no header may contain.
    pub fn new(text: &str) -> Option<Self> {
        Some(Self {
            text: text.to_owned(),
            bearer: Credentials::bearer(text)?,
        })
    }

    /// As a bearer token.
    pub fn bearer(&self) -> &Credentials {
        &self.bearer
    }

    /// As the password of this user, whose name has no colon.
    pub fn password_of(&self, username: &str) -> Option<Credentials> {
        Credentials::basic(username, &self.text)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Who asks a forge, as a Secret has it.
#[derive(Clone, Debug)]
pub enum Login {
    /// Those who have this token.
    Token(Token),
    /// A GitHub App, which gets its tokens by itself.
    App(AppKeys),
}

/// What a Secret has of a GitHub App: all, as Flux has it, or its private key alone.
#[derive(Clone)]
pub struct AppKeys {
    /// Its App ID.
    pub id: Option<String>,
    /// The ID of its installation.
    pub installation: Option<String>,
    /// Its private key, in PEM, not parsed.
    pub private_key: Vec<u8>,
}

impl fmt::Debug for AppKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AppKeys")
    }
}

/// The token in the Secret `name`, for `url`, and the certificates of authorities in PEM, if the Secret has
/// any. It stands under the key `token`; or under `password` beside `username`, as Flux has it: forges take a
/// token as the password of Git, with any name. Other keys are left alone.
///
/// # Errors
/// In words that fit a status and hold nothing of the Secret.
pub async fn token(
    client: &Client,
    namespace: &str,
    name: &str,
    url: &str,
) -> Result<(Token, Option<Vec<u8>>), Unread> {
    let (data, authorities) = allowed(client, (namespace, name), HOSTS, url).await?;
    let token = token_in(&data).map_err(|why| not_usable(namespace, name, &why))?;
    Ok((token, authorities))
}

/// The token in the Secret `name`, as [`token`] finds it, or the GitHub App, if there is none: under the keys
/// `githubAppPrivateKey`, `githubAppID` and `githubAppInstallationID`, as Flux has it.
///
/// # Errors
/// In words that fit a status and hold nothing of the Secret.
pub async fn login(
    client: &Client,
    namespace: &str,
    name: &str,
    url: &str,
) -> Result<(Login, Option<Vec<u8>>), Unread> {
    let (data, authorities) = allowed(client, (namespace, name), HOSTS, url).await?;
    let login = login_in(&data).map_err(|why| not_usable(namespace, name, &why))?;
    Ok((login, authorities))
}

fn login_in(data: &BTreeMap<String, ByteString>) -> Result<Login, String> {
    let has_token = [TOKEN, USERNAME].iter().any(|key| data.contains_key(*key));
    let Some(ByteString(private_key)) = data.get(APP_KEY).filter(|_| !has_token) else {
        let token = token_in(data).map(Login::Token);
        return token.map_err(|why| match has_token {
            true => why,
            false => format!("{why}, nor `{APP_KEY}` of a GitHub App"),
        });
    };
    let text = |key: &str| match data
        .get(key)
        .map(|ByteString(bytes)| std::str::from_utf8(bytes))
    {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text.trim().to_owned())),
        Some(Err(_)) => Err(format!("has a `{key}` that is not UTF-8")),
    };
    Ok(Login::App(AppKeys {
        id: text(APP_ID)?,
        installation: text(APP_INSTALLATION)?,
        private_key: private_key.clone(),
    }))
}

/// The token among the keys of a Secret.
fn token_in(data: &BTreeMap<String, ByteString>) -> Result<Token, String> {
    let key = match (data.contains_key(TOKEN), data.contains_key(USERNAME)) {
        (true, _) => TOKEN,
        (false, true) => PASSWORD,
        (false, false) => return Err("has neither `token` nor `username` with `password`".into()),
    };
    let ByteString(bytes) = data
        .get(key)
        .ok_or("has a `username` without a `password`")?;
    let text = std::str::from_utf8(bytes).ok();
    // A line break at the end was added by an editor or by `echo`.
    let token = text.and_then(|text| Token::new(text.trim_end_matches(['\r', '\n'])));
    token.ok_or_else(|| format!("has a `{key}` with characters that no header may hold"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[("token", "abc\n")], Ok("abc"))]
    #[case(&[("username", "git"), ("password", "abc\r\n")], Ok("abc"))]
    #[case(&[("username", "git"), ("password", "no"), ("token", "abc")], Ok("abc"))]
    #[case(&[("password", "abc")], Err("has neither `token` nor `username` with `password`"))]
    #[case(&[], Err("has neither `token` nor `username` with `password`"))]
    #[case(&[("username", "git")], Err("has a `username` without a `password`"))]
    #[case(&[("token", "a\nb")], Err("has a `token` with characters that no header may hold"))]
    #[case(&[("token", "")], Err("has a `token` with characters that no header may hold"))]
    #[case(
        &[("username", "git"), ("password", "ü")],
        Err("has a `password` with characters that no header may hold")
    )]
    fn a_token_may_be_a_password(
        #[case] keys: &[(&str, &str)],
        #[case] expected: Result<&str, &str>,
    ) {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let data = keys
            .iter()
            .map(|(key, text)| ((*key).to_owned(), bytes(text)));
        let found = token_in(&data.collect());
        let text = found.as_ref().map(|token| token.text.as_str());
        assert_eq!(text.map_err(String::as_str), expected);
        assert!(found.is_err() || format!("{found:?}") == "Ok(Token)");
    }

    #[test]
    fn a_forge_may_be_asked_by_an_app() {
        let login = |keys: &[&str]| {
            let pair = |key: &&str| ((*key).to_owned(), ByteString(b"12\n".to_vec()));
            login_in(&keys.iter().map(pair).collect())
        };
        let app = |keys: &[&str]| match login(keys) {
            Ok(Login::App(AppKeys {
                id, installation, ..
            })) => (id, installation),
            other => panic!("{other:?}"),
        };
        let id = || Some("12".to_owned());
        assert_eq!(app(&[APP_KEY, APP_ID, APP_INSTALLATION]), (id(), id()));
        assert_eq!(app(&[APP_KEY, APP_ID]), (id(), None));
        assert_eq!(app(&[APP_KEY]), (None, None));
        assert!(matches!(login(&[APP_KEY, TOKEN]), Ok(Login::Token(_))));
        assert_eq!(
            login(&[APP_ID]).unwrap_err(),
            "has neither `token` nor `username` with `password`, nor `githubAppPrivateKey` of a \
             GitHub App"
        );
        let why = login(&[USERNAME]).unwrap_err();
        assert_eq!(why, "has a `username` without a `password`");
    }
}
