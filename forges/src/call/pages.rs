//! Lists that come in pages.

use serde::de::DeserializeOwned;
use sluice_egress::EgressError;

use super::Call;
use crate::outcome::{ForgeError, Missing, Trouble};

/// The most pull requests that are listed.
const MOST_LISTED: usize = 2_000;
/// How many are on a page, and how many if such a page is too long to be read: bodies may be 64 KiB and
/// more each, a reply at most 1 MiB.
const PAGES: [usize; 2] = [50, 5];

impl Call<'_> {
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

fn is_too_long(error: &ForgeError) -> bool {
    matches!(error.trouble, Trouble::Unanswered(EgressError::TooLong(_)))
}
