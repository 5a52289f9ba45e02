//! Requests to the API of a forge, and what their replies mean where all forges agree.
//!
//! What comes in: a repository's address, a token, paths. What goes out: replies as values, or a
//! [`ForgeError`]. Only the rooms `address` and `outcome` are used. Whatever changes something is sent
//! once.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sluice_egress::{
    Content, Credentials, Egress, EgressError, Method, Once, Reply, Request, Sent,
};
use tokio::time::Instant;

use crate::address::Address;
use crate::outcome::{Act, ForgeError, Missing, Trouble, Undone, Wait, Words};

/// The most characters of a forge's words that a message quotes.
const LONGEST_WORDS: usize = 200;
/// The most pull requests that are listed.
const MOST_LISTED: usize = 2_000;
/// How many are on a page, and how many if such a page is too long to be read: bodies may be 64 KiB and
/// more each, a reply at most 1 MiB.
const PAGES: [usize; 2] = [50, 5];

/// How a forge is asked.
#[derive(Clone)]
pub struct Access {
    /// The way out.
    pub egress: Egress,
    /// The token: a bearer token of all forges here.
    pub credentials: Credentials,
    /// Certificates in PEM, trusted in addition to the public authorities.
    pub authorities: Option<Vec<u8>>,
    /// The namespace that the requests are made for.
    pub namespace: String,
}

/// The API of a forge, for one repository.
#[derive(Clone)]
pub(crate) struct Api {
    access: Access,
    pub(crate) address: Address,
    headers: &'static [(&'static str, &'static str)],
}

/// One operation on it, which all messages name.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    api: &'a Api,
    operation: &'static str,
}

/// The body of a request.
#[derive(Clone, Copy)]
pub(crate) enum Sending<'a> {
    Nothing,
    Json(&'a Value),
    Form(Content<'a>),
}

impl Api {
    pub(crate) fn new(
        access: Access,
        address: Address,
        headers: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self {
            access,
            address,
            headers,
        }
    }

    pub(crate) fn call(&self, operation: &'static str) -> Call<'_> {
        Call {
            api: self,
            operation,
        }
    }
}

impl Call<'_> {
    /// The reply to a GET of a path below the repository.
    pub(crate) async fn ask(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Reply, ForgeError> {
        let Api {
            access,
            address,
            headers,
        } = self.api;
        let url = format!("{}{}{path}", address.api(), address.repository());
        let request = Request {
            namespace: &access.namespace,
            query,
            headers,
            authorities: access.authorities.as_deref(),
            credentials: Some(&access.credentials),
            ..Request::to(&url)
        };
        let asked = access.egress.ask(&request, |_| true).await;
        asked.map_err(|error| self.error(Trouble::Unanswered(error)))
    }

    /// What is at a path. None: 404, although the repository can be seen.
    pub(crate) async fn find<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Option<T>, ForgeError> {
        let reply = self.ask(path, query).await?;
        match reply.status {
            404 => self.sees_repository().await.map(|()| None),
            _ => self.read(&reply).map(Some),
        }
    }

    /// What is at a path.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        missing: Missing,
    ) -> Result<T, ForgeError> {
        let found = self.find(path, query).await?;
        found.ok_or_else(|| self.error(Trouble::Absent(missing)))
    }

    /// All items of a list that has pages, by a header `Link` as RFC 8288 has it. `size` is what the forge
    /// calls the length of a page. What moves from one page to another in between may be missing, or be
    /// there twice.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        size: &str,
    ) -> Result<Vec<T>, ForgeError> {
        let [many, few] = PAGES;
        match self.list_by(path, query, (size, many)).await {
            Err(error) if is_too_long(&error) => self.list_by(path, query, (size, few)).await,
            listed => listed,
        }
    }

    async fn list_by<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        (size, length): (&str, usize),
    ) -> Result<Vec<T>, ForgeError> {
        let length_text = length.to_string();
        let mut items = Vec::new();
        for page in 1..=MOST_LISTED / length {
            let page = page.to_string();
            let mut query = query.to_vec();
            query.extend([(size, length_text.as_str()), ("page", page.as_str())]);
            let reply = self.ask(path, &query).await?;
            if reply.status == 404 {
                self.sees_repository().await?;
            }
            items.append(&mut self.read::<Vec<T>>(&reply)?);
            let links = reply.header("link").unwrap_or_default();
            if !links.split(',').any(|link| link.contains("rel=\"next\"")) {
                return Ok(items);
            }
        }
        Err(self.error(Trouble::TooMany(MOST_LISTED)))
    }

    /// All items of a list that has pages as Bitbucket has them.
    pub(crate) async fn list_from<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Vec<T>, ForgeError> {
        let [many, few] = PAGES;
        match self.list_from_by(path, query, many).await {
            Err(error) if is_too_long(&error) => self.list_from_by(path, query, few).await,
            listed => listed,
        }
    }

    async fn list_from_by<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        length: usize,
    ) -> Result<Vec<T>, ForgeError> {
        let length_text = length.to_string();
        let mut items = Vec::new();
        let mut start = 0;
        for _ in 0..MOST_LISTED / length {
            let start_text = start.to_string();
            let mut query = query.to_vec();
            query.extend([
                ("limit", length_text.as_str()),
                ("start", start_text.as_str()),
            ]);
            let mut page: Page<T> = self.get(path, &query, Missing::Branch).await?;
            items.append(&mut page.values);
            match page.next_page_start {
                Some(next) if !page.is_last_page => start = next,
                Some(_) | None => return Ok(items),
            }
        }
        Err(self.error(Trouble::TooMany(MOST_LISTED)))
    }

    /// Sends a change to a path below the repository, once, and not after `until`.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        sending: Sending<'_>,
        until: Instant,
    ) -> Act<Reply> {
        let repository = self.api.address.repository();
        self.send_to(method, &format!("{repository}{path}"), sending, until)
            .await
    }

    /// Sends a change to a path of the API.
    pub(crate) async fn send_to(
        &self,
        method: Method,
        path: &str,
        sending: Sending<'_>,
        until: Instant,
    ) -> Act<Reply> {
        let Api {
            access,
            address,
            headers,
        } = self.api;
        let url = format!("{}{path}", address.api());
        let json = match sending {
            Sending::Json(value) => value.to_string().into_bytes(),
            Sending::Nothing | Sending::Form(_) => Vec::new(),
        };
        let content = match sending {
            Sending::Nothing => None,
            Sending::Json(_) => Some(Content {
                media_type: "application/json",
                body: &json,
            }),
            Sending::Form(content) => Some(content),
        };
        let request = Request {
            namespace: &access.namespace,
            headers,
            authorities: access.authorities.as_deref(),
            credentials: Some(&access.credentials),
            ..Request::once(
                Once {
                    method,
                    content,
                    until,
                },
                &url,
            )
        };
        let error = |error| self.error(Trouble::Unanswered(error));
        match access.egress.send(&request, |_| true).await {
            Sent::Replied(reply) => Ok(reply),
            Sent::NotSent(why) => Err(Undone::NotDone(error(why))),
            Sent::Unknown(why) => Err(Undone::Unknown(error(why))),
        }
    }

    /// The value of a reply with a status of success.
    pub(crate) fn read<T: DeserializeOwned>(&self, reply: &Reply) -> Result<T, ForgeError> {
        if !is_success(reply) {
            return Err(self.error(self.trouble(reply)));
        }
        let mut text = serde_json::Deserializer::from_slice(&reply.body);
        let read = serde_path_to_error::deserialize(&mut text);
        read.map_err(|error| self.error(Trouble::NotUnderstood(error.path().to_string())))
    }

    /// The value of a reply to a change.
    pub(crate) fn made<T: DeserializeOwned>(&self, reply: &Reply) -> Act<T> {
        self.read(reply).map_err(Undone::after)
    }

    /// A change whose reply says nothing but that it was made.
    pub(crate) fn done(&self, reply: &Reply) -> Act<()> {
        match is_success(reply) {
            true => Ok(()),
            false => Err(Undone::after(self.error(self.trouble(reply)))),
        }
    }

    /// What went wrong with the act for which `trouble` was found.
    pub(crate) fn undone<T>(&self, trouble: Trouble) -> Act<T> {
        Err(Undone::after(self.error(trouble)))
    }

    pub(crate) fn error(&self, trouble: Trouble) -> ForgeError {
        ForgeError {
            host: self.api.address.host().to_owned(),
            operation: self.operation,
            trouble,
        }
    }

    /// Whether the token sees the repository at all: forges say 404 for what may not be seen, too.
    ///
    /// # Errors
    /// It does not.
    pub(crate) async fn sees_repository(&self) -> Result<(), ForgeError> {
        let reply = self.ask("", &[]).await?;
        match reply.status {
            404 => Err(self.error(Trouble::NoRepository)),
            _ if is_success(&reply) => Ok(()),
            _ => Err(self.error(self.trouble(&reply))),
        }
    }

    /// What follows from a 404 to a change.
    pub(crate) async fn missing(&self, missing: Missing) -> Undone {
        match self.sees_repository().await {
            Ok(()) => Undone::after(self.error(Trouble::Absent(missing))),
            Err(error) => Undone::from(error),
        }
    }

    /// What a reply without success means for every forge.
    pub(crate) fn trouble(&self, reply: &Reply) -> Trouble {
        let words = || self.words(reply);
        match (reply.status, self.wait(reply)) {
            (403 | 429, Some(wait)) => Trouble::RateLimited(wait),
            (301 | 307 | 308, _) => Trouble::Moved,
            (401, _) => Trouble::Unauthorized,
            (403, None) => Trouble::NoRight(words()),
            (423, _) => Trouble::Archived,
            (429, None) => Trouble::RateLimited(Wait::Unsaid),
            (status @ 500..=599, _) => Trouble::Failed(status),
            (status, _) => Trouble::Refused(status, words()),
        }
    }

    /// Until when a reply says that the limit lasts, if it says that one is reached.
    fn wait(&self, reply: &Reply) -> Option<Wait> {
        let after = reply.header("retry-after").map(|text| match text.parse() {
            Ok(seconds) => Wait::For(Duration::from_secs(seconds)),
            Err(_) => match rfc2822::parse(text) {
                Ok(instant) => Wait::Until(instant.timestamp()),
                Err(_) => Wait::Unsaid,
            },
        });
        let number = |name| reply.header(name).and_then(|text| text.parse::<i64>().ok());
        let reset = |remaining, reset| match number(remaining) {
            Some(0) => {
                let instant = number(reset).and_then(|at| Timestamp::from_second(at).ok());
                Some(instant.map_or(Wait::Unsaid, Wait::Until))
            }
            Some(_) | None => None,
        };
        let secondary = || {
            let words = said(&reply.body)?.to_lowercase();
            words.contains("rate limit").then_some(Wait::Unsaid)
        };
        after
            .or_else(|| reset("x-ratelimit-remaining", "x-ratelimit-reset"))
            .or_else(|| reset("ratelimit-remaining", "ratelimit-reset"))
            .or_else(secondary)
    }

    /// What the forge says, if it may be shown: neither the token nor the path of the repository is in it.
    pub(crate) fn words(&self, reply: &Reply) -> Words {
        let Api {
            access, address, ..
        } = self.api;
        let path = format!("{}/{}", address.owner(), address.name());
        let shown = said(&reply.body)
            .filter(|said| !access.credentials.is_in(said))
            .filter(|said| !said.to_lowercase().contains(&path.to_lowercase()));
        Words(shown.map(|said| {
            let short: String = said.chars().take(LONGEST_WORDS).collect();
            short.escape_debug().to_string()
        }))
    }
}

/// A page of a list, as Bitbucket has it.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page<T> {
    pub(crate) values: Vec<T>,
    #[serde(default)]
    is_last_page: bool,
    next_page_start: Option<u64>,
}

pub(crate) fn is_success(reply: &Reply) -> bool {
    matches!(reply.status, 200..=299)
}

fn is_too_long(error: &ForgeError) -> bool {
    matches!(error.trouble, Trouble::Unanswered(EgressError::TooLong(_)))
}

/// What the body of a reply says: `message` (Gitea, GitHub, GitLab) with `errors[].message` (GitHub),
/// `error` (GitLab), or `errors[].message` with `errors[].vetoes[].summaryMessage` (Bitbucket). A message of
/// GitLab may be a list.
pub(crate) fn said(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut said = vec![value["message"].clone(), value["error"].clone()];
    for error in items(&value["errors"]) {
        let vetoes = items(&error["vetoes"]);
        said.push(match error {
            Value::String(_) => error,
            error => error["message"].clone(),
        });
        said.extend(vetoes.iter().map(|veto| veto["summaryMessage"].clone()));
    }
    let text = |value: Value| match value {
        Value::String(text) => Some(text),
        Value::Array(_) | Value::Object(_) => Some(value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    };
    let said: Vec<_> = said.into_iter().filter_map(text).collect();
    let said = said.join(": ");
    (!said.trim().is_empty()).then_some(said)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"{"message": "no"}"#, Some("no"))]
    #[case(
        r#"{"message": "Validation Failed", "errors": [{"message": "it exists"}, {"code": "x"}]}"#,
        Some("Validation Failed: it exists")
    )]
    #[case(r#"{"message": ["one", "two"]}"#, Some(r#"["one","two"]"#))]
    #[case(r#"{"message": "no", "errors": ["why"]}"#, Some("no: why"))]
    #[case(r#"{"error": "insufficient_scope"}"#, Some("insufficient_scope"))]
    #[case(
        r#"{"errors": [{"context": null, "message": "vetoed", "exceptionName": "x"}]}"#,
        Some("vetoed")
    )]
    #[case(r#"{"message": ""}"#, None)]
    #[case("[1]", None)]
    #[case("<html>", None)]
    #[case("", None)]
    fn forges_say_why_in_several_ways(#[case] body: &str, #[case] expected: Option<&str>) {
        assert_eq!(said(body.as_bytes()).as_deref(), expected);
    }
}
