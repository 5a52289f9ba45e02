//! The address of a repository, as people copy it from their forge.
//!
//! What comes in: a text and which forge it is. What goes out: an [`Address`], from which the addresses of
//! the API are made, or an [`AddressError`] that says what to write. Messages show nothing of the text: its
//! path may be a secret of its own. No other room is used.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;

use parts::Parts;

mod parts;

/// What may stand in a part of a path as it is (RFC 3986).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The most bytes of an address that a forge gives.
const LONGEST_PAGE: usize = 1024;

/// The software of a forge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// github.com, GitHub Enterprise Cloud with data residency, and GitHub Enterprise Server.
    GitHub,
    /// gitlab.com and GitLab on a server of your own.
    GitLab,
    /// Gitea and Forgejo.
    Gitea,
    /// Bitbucket Data Center, formerly Bitbucket Server. Not Bitbucket Cloud.
    BitbucketServer,
}

/// Where a repository is, and where its forge's API is.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    provider: Provider,
    host: String,
    site: String,
    /// The owner, group or project, perhaps with `/` in it, and the repository.
    owner: String,
    name: String,
}

/// A text that is no address of a repository.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Another scheme, or no address at all.
    #[error("forges are asked over https only; write an address that starts with https://")]
    NotHttps,
    /// It holds credentials.
    #[error("it names a user; remove what stands before @, and put the token into the Secret")]
    NamesAUser,
    /// It holds a query or a fragment.
    #[error("it is more than the address of a repository; remove ? and #, and what follows them")]
    HasQuery,
    /// Its path is that of something else.
    #[error("its path does not lead to a repository; write {0}")]
    NoRepository(&'static str),
    /// A part of its path has characters that no forge allows.
    #[error("a part of its path is no name; names have letters, digits, -, _ and .")]
    NoName,
    /// Bitbucket Cloud has another API.
    #[error("Bitbucket Cloud is not supported, only Bitbucket Data Center")]
    BitbucketCloud,
}

impl Provider {
    /// The address of a repository, as its users know it.
    fn form(self) -> &'static str {
        match self {
            Self::GitHub => "https://HOST/OWNER/NAME",
            Self::GitLab => {
                "https://HOST/GROUP/NAME, or https://HOST/PATH/api/v4/projects/GROUP%2FNAME if GitLab \
                 is below a path"
            }
            Self::Gitea => "https://HOST/OWNER/NAME",
            Self::BitbucketServer => {
                "https://HOST/projects/KEY/repos/NAME or https://HOST/scm/KEY/NAME.git"
            }
        }
    }
}

impl Address {
    /// Reads the address of a repository: of its page or for `git clone`, with or without `.git` and `/` at
    /// its end. Gitea and Bitbucket may be below a path of their host.
    ///
    /// # Errors
    /// It is not https, or leads to something else.
    pub fn parse(provider: Provider, text: &str) -> Result<Self, AddressError> {
        let url = match Url::parse(text) {
            Ok(url) if url.scheme() == "https" => url,
            Ok(_) | Err(_) => return Err(AddressError::NotHttps),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressError::NamesAUser);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(AddressError::HasQuery);
        }
        let name = url.host_str().ok_or(AddressError::NotHttps)?;
        let host = match url.port() {
            Some(port) => format!("{name}:{port}"),
            None => name.to_owned(),
        };
        let path = url.path().trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let parts: Vec<_> = path.split('/').collect();
        if parts.contains(&"") {
            return Err(AddressError::NoRepository(provider.form()));
        }
        let parts = match provider {
            Provider::GitHub => Parts::of_github(&parts),
            Provider::GitLab => Parts::of_gitlab(&parts),
            Provider::Gitea => Parts::of_gitea(&parts),
            Provider::BitbucketServer if name == "bitbucket.org" => {
                return Err(AddressError::BitbucketCloud);
            }
            Provider::BitbucketServer => Parts::of_bitbucket(&parts),
        };
        let Parts { below, owner, name } =
            parts.ok_or(AddressError::NoRepository(provider.form()))?;
        let names = owner.split('/').chain([name.as_str()]);
        if !names.chain(below.iter().map(String::as_str)).all(is_name) {
            return Err(AddressError::NoName);
        }
        let below: String = below.iter().map(|part| format!("/{part}")).collect();
        let site = format!("https://{host}{below}");
        Ok(Self {
            provider,
            host,
            site,
            owner,
            name,
        })
    }

    /// The software of the forge.
    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// The host, with its port if that is unusual. All that a message may say.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The page of a pull request.
    pub(crate) fn page(&self, number: u64) -> String {
        let Self {
            site, owner, name, ..
        } = self;
        match self.provider {
            Provider::GitHub => format!("{site}/{owner}/{name}/pull/{number}"),
            Provider::GitLab if owner.is_empty() => site.clone(),
            Provider::GitLab => format!("{site}/{owner}/{name}/-/merge_requests/{number}"),
            Provider::Gitea => format!("{site}/{owner}/{name}/pulls/{number}"),
            Provider::BitbucketServer => {
                format!("{site}/projects/{owner}/repos/{name}/pull-requests/{number}")
            }
        }
    }

    /// The address that Git knows the repository by. None: it is a project of GitLab that is given by its
    /// number.
    pub fn clone_url(&self) -> Option<String> {
        let Self {
            site, owner, name, ..
        } = self;
        match self.provider {
            Provider::GitLab if owner.is_empty() => None,
            Provider::GitHub | Provider::GitLab | Provider::Gitea => {
                Some(format!("{site}/{owner}/{name}.git"))
            }
            Provider::BitbucketServer => Some(format!("{site}/scm/{owner}/{name}.git")),
        }
    }

    /// Whether an address that the forge gives is one of its own, and may be shown.
    pub(crate) fn is_own(&self, text: &str) -> bool {
        let Ok(url) = Url::parse(text) else {
            return false;
        };
        let host = match (url.host_str(), url.port()) {
            (Some(name), Some(port)) => format!("{name}:{port}"),
            (name, _) => name.unwrap_or_default().to_owned(),
        };
        text.len() <= LONGEST_PAGE
            && text.starts_with("https://")
            && text.chars().all(|c| c.is_ascii_graphic())
            && url.username().is_empty()
            && url.password().is_none()
            && host == self.host
    }

    /// The owner, group or project.
    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    /// The repository without its owner.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where the API of the forge is.
    pub(crate) fn api(&self) -> String {
        let Self { host, site, .. } = self;
        match self.provider {
            Provider::GitHub => match host.as_str() {
                "github.com" | "www.github.com" => "https://api.github.com".to_owned(),
                host if host.ends_with(".ghe.com") => format!("https://api.{host}"),
                _ => format!("{site}/api/v3"),
            },
            Provider::GitLab => format!("{site}/api/v4"),
            Provider::Gitea => format!("{site}/api/v1"),
            Provider::BitbucketServer => format!("{site}/rest"),
        }
    }

    /// The path of the repository below [`Address::api`].
    pub(crate) fn repository(&self) -> String {
        let Self { owner, name, .. } = self;
        match self.provider {
            Provider::GitHub | Provider::Gitea => format!("/repos/{owner}/{name}"),
            Provider::GitLab => {
                let project = match owner.as_str() {
                    "" => name.clone(),
                    owner => format!("{owner}/{name}"),
                };
                format!("/projects/{}", encoded(&project))
            }
            Provider::BitbucketServer => format!("/api/1.0/projects/{owner}/repos/{name}"),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address {{ {:?} at {} }}", self.provider, self.host)
    }
}

/// Whether it may be a name: empty is only the owner of a project that is given by its number.
fn is_name(part: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
    !matches!(part, "." | "..") && part.chars().all(allowed)
}

/// A part of a path, with everything escaped that would end it.
pub(crate) fn encoded(part: &str) -> String {
    utf8_percent_encode(part, RESERVED).to_string()
}

/// A path of several parts, each escaped.
pub(crate) fn encoded_path(path: &str) -> String {
    let parts: Vec<_> = path.split('/').map(encoded).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests;
