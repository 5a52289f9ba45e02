//! Lists that come in pages.

use serde::de::DeserializeOwned;
use sluice_egress::EgressError;

use super::Call;
use crate::outcome::{ForgeError, Missing, Trouble};

/// The most items of a list that is read as a whole.
const MOST_LISTED: usize = 2_000;
/// The most bytes of the replies that make such a list.
const MOST_BYTES: usize = 4 << 20;
/// The most items that are looked through for one of them.
const MOST_SEEN: usize = 500;
/// How many are asked for on a page, and how many if such a page is too long to be read: bodies may be
/// 64 KiB and more each, a reply at most 1 MiB. A server may give fewer.
const PAGES: [usize; 2] = [50, 5];

/// How far a list is read.
#[derive(Clone, Copy)]
pub(crate) enum Extent<'a, T> {
    /// To its end.
    All,
    /// To the page with the first item that is looked for, or until 500 items were seen.
    To(&'a (dyn Fn(&T) -> bool + Sync)),
}

/// A list that has pages.
pub(crate) struct List<'a, T> {
    pub(crate) path: &'a str,
    pub(crate) query: &'a [(&'a str, &'a str)],
    pub(crate) extent: Extent<'a, T>,
}

impl Call<'_> {
    /// The items of a list, whose pages are named by a header `Link` as RFC 8288 has it. `size` is what the
    /// forge calls the length of a page. What moves from one page to another in between may be missing, or
    /// be there twice.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        list: &List<'_, T>,
        size: &str,
    ) -> Result<Vec<T>, ForgeError> {
        let [many, few] = PAGES;
        match self.list_by(list, (size, many)).await {
            Err(error) if is_too_long(&error) => self.list_by(list, (size, few)).await,
            listed => listed,
        }
    }

    async fn list_by<T: DeserializeOwned>(
        &self,
        list: &List<'_, T>,
        (size, length): (&str, usize),
    ) -> Result<Vec<T>, ForgeError> {
        let length = length.to_string();
        let (mut items, mut bytes) = (Vec::new(), 0);
        for page in 1_u32.. {
            let page = page.to_string();
            let mut query = list.query.to_vec();
            query.extend([(size, length.as_str()), ("page", page.as_str())]);
            let reply = self.ask(list.path, &query).await?;
            if reply.status == 404 {
                self.sees_repository().await?;
            }
            let read: Vec<T> = self.read(&reply)?;
            let links = reply.header("link").unwrap_or_default();
            let more = links.split(',').any(|link| link.contains("rel=\"next\""));
            bytes += reply.body.len();
            if self.is_enough(list, (&mut items, bytes), read, more)? {
                break;
            }
        }
        Ok(items)
    }

    /// The items of a list that has pages as Bitbucket has them.
    pub(crate) async fn list_from<T: DeserializeOwned>(
        &self,
        list: &List<'_, T>,
    ) -> Result<Vec<T>, ForgeError> {
        let [many, few] = PAGES;
        match self.list_from_by(list, many).await {
            Err(error) if is_too_long(&error) => self.list_from_by(list, few).await,
            listed => listed,
        }
    }

    async fn list_from_by<T: DeserializeOwned>(
        &self,
        list: &List<'_, T>,
        length: usize,
    ) -> Result<Vec<T>, ForgeError> {
        let length = length.to_string();
        let (mut items, mut bytes) = (Vec::new(), 0);
        let mut start = Some(0);
        while let Some(from) = start {
            let from = from.to_string();
            let mut query = list.query.to_vec();
            query.extend([("limit", length.as_str()), ("start", from.as_str())]);
            let reply = self.ask(list.path, &query).await?;
            if reply.status == 404 {
                self.sees_repository().await?;
                return Err(self.error(Trouble::Absent(Missing::Branch)));
            }
            bytes += reply.body.len();
            let page: Page<T> = self.read(&reply)?;
            start = page.next_page_start.filter(|_| !page.is_last_page);
            if self.is_enough(list, (&mut items, bytes), page.values, start.is_some())? {
                break;
            }
        }
        Ok(items)
    }

    /// Adds a page to the items, which are of so many bytes then, and says whether the list was read as far as it has to be. A page without
    /// items is the last one, whatever the forge says.
    fn is_enough<T>(
        &self,
        list: &List<'_, T>,
        (items, bytes): (&mut Vec<T>, usize),
        mut page: Vec<T>,
        more: bool,
    ) -> Result<bool, ForgeError> {
        let at_end = !more || page.is_empty();
        let found = match list.extent {
            Extent::All if at_end => true,
            Extent::All if bytes > MOST_BYTES => {
                let listed = items.len() + page.len();
                return Err(self.error(Trouble::TooMany(listed)));
            }
            Extent::All => false,
            Extent::To(is_it) => page.iter().any(is_it) || items.len() + page.len() >= MOST_SEEN,
        };
        items.append(&mut page);
        match at_end || found {
            false if items.len() >= MOST_LISTED => Err(self.error(Trouble::TooMany(MOST_LISTED))),
            enough => Ok(enough),
        }
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

#[cfg(test)]
mod tests {
    use sluice_egress::{Credentials, Egress, Rules};

    use super::*;
    use crate::address::{Address, Provider};
    use crate::call::{Access, Api};

    #[test]
    fn a_list_is_bounded_by_items_and_bytes() {
        let address = Address::parse(Provider::Gitea, "https://git.example.com/a/b").unwrap();
        let access = Access {
            egress: Egress::new(Rules::default()).unwrap(),
            credentials: Credentials::bearer("token").unwrap(),
            authorities: None,
            namespace: "apps".to_owned(),
            told: None,
        };
        let api = Api::new(access, address, &[]);
        let list = |extent| List {
            path: "/pulls",
            query: &[],
            extent,
        };
        let call = api.call("list");
        let is_enough = |extent, bytes, more| {
            let mut items = vec![1; 50];
            call.is_enough(&list(extent), (&mut items, bytes), vec![1; 50], more)
                .map_err(|error| error.trouble)
        };
        assert_eq!(is_enough(Extent::All, MOST_BYTES, true), Ok(false));
        // The last page may be one too many.
        assert_eq!(is_enough(Extent::All, MOST_BYTES + 1, false), Ok(true));
        let too_many = Err(Trouble::TooMany(100));
        assert_eq!(is_enough(Extent::All, MOST_BYTES + 1, true), too_many);
        // One of them is looked for among so many, however long they are.
        let none = |_: &i32| false;
        assert_eq!(
            is_enough(Extent::To(&none), MOST_BYTES + 1, true),
            Ok(false)
        );
    }
}
