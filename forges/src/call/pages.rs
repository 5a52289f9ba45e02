//! Lists that come in pages.

use serde::de::DeserializeOwned;
use sluice_egress::{EgressError, Reply};

use super::Call;
use crate::outcome::{ForgeError, Missing, Trouble};

/// The most items of a list that is read as a whole.
const MOST_LISTED: usize = 2_000;
/// The most bytes of the replies that make such a list.
const MOST_BYTES: usize = 4 << 20;
/// The most statuses of a commit that are read.
pub(crate) const MOST_STATUSES: usize = 100;
/// The most items that are looked through for one of them.
const MOST_SEEN: usize = 500;
/// How many are asked for on a page, and how many if such a page is too long to be read: bodies may be
/// 64 KiB and more each, a reply at most 1 MiB. A server may give fewer.
const PAGES: [usize; 2] = [50, 5];

/// How a forge cuts a list into pages.
#[derive(Clone, Copy)]
pub(crate) enum Paging {
    /// Pages have numbers, and a header `Link`, as RFC 8288 has it, says whether there is another one. With
    /// what the forge calls the length of a page.
    Linked(&'static str),
    /// Each page says where the next one starts, as Bitbucket has it.
    Starting,
}

/// How far a list is read.
enum Extent<'a, T> {
    /// To its end.
    All,
    /// To its end, which comes soon: of the statuses of a commit.
    Statuses,
    /// To the page with the first item that is looked for, or until 500 items were seen.
    To(&'a (dyn Fn(&T) -> bool + Sync)),
}

impl Call<'_> {
    /// The items of a list. What moves from one page to another in between may be missing, or be there
    /// twice.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Vec<T>, ForgeError> {
        self.items::<Vec<T>, T>(path, query, &Extent::All).await
    }

    /// The statuses of a commit, each page of which is a `P`.
    pub(crate) async fn statuses<P, T>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Vec<T>, ForgeError>
    where
        P: DeserializeOwned + Into<Vec<T>>,
        T: DeserializeOwned,
    {
        self.items::<P, T>(path, query, &Extent::Statuses).await
    }

    /// The first item of a list that is looked for. None: it is not among the first 500.
    pub(crate) async fn first<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        is_it: impl Fn(&T) -> bool + Send + Sync,
    ) -> Result<Option<T>, ForgeError> {
        let extent = Extent::To(&is_it);
        let items = self.items::<Vec<T>, T>(path, query, &extent).await?;
        Ok(items.into_iter().find(is_it))
    }

    async fn items<P, T>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        extent: &Extent<'_, T>,
    ) -> Result<Vec<T>, ForgeError>
    where
        P: DeserializeOwned + Into<Vec<T>>,
        T: DeserializeOwned,
    {
        let [many, few] = PAGES;
        match self.pages::<P, T>(path, query, extent, many).await {
            Err(error) if is_too_long(&error) => self.pages::<P, T>(path, query, extent, few).await,
            items => items,
        }
    }

    async fn pages<P, T>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        extent: &Extent<'_, T>,
        length: usize,
    ) -> Result<Vec<T>, ForgeError>
    where
        P: DeserializeOwned + Into<Vec<T>>,
        T: DeserializeOwned,
    {
        let (size, place, first) = match self.api.paging {
            Paging::Linked(size) => (size, "page", 1),
            Paging::Starting => ("limit", "start", 0),
        };
        let length = length.to_string();
        let (mut items, mut bytes) = (Vec::new(), 0);
        let mut next = Some(first);
        while let Some(at) = next {
            let from = at.to_string();
            let mut query = query.to_vec();
            query.extend([(size, length.as_str()), (place, from.as_str())]);
            let reply = self.ask(path, &query).await?;
            if reply.status == 404 {
                self.sees_repository().await?;
                return Err(self.error(Trouble::Absent(match extent {
                    Extent::Statuses => Missing::Commit,
                    Extent::All | Extent::To(_) => Missing::Branch,
                })));
            }
            bytes += reply.body.len();
            let page;
            (page, next) = self.page::<P, T>(&reply, at)?;
            if self.is_enough(extent, (&mut items, bytes), page, next.is_some())? {
                break;
            }
        }
        Ok(items)
    }

    /// The items of the page at this place, and where the next one is.
    fn page<P, T>(&self, reply: &Reply, at: u64) -> Result<(Vec<T>, Option<u64>), ForgeError>
    where
        P: DeserializeOwned + Into<Vec<T>>,
        T: DeserializeOwned,
    {
        match self.api.paging {
            Paging::Linked(_) => {
                let links = reply.header("link").unwrap_or_default();
                let more = links.split(',').any(|link| link.contains("rel=\"next\""));
                let page: P = self.read(reply)?;
                Ok((page.into(), more.then_some(at + 1)))
            }
            Paging::Starting => {
                let page: Page<T> = self.read(reply)?;
                let next = page.next_page_start.filter(|_| !page.is_last_page);
                Ok((page.values, next))
            }
        }
    }

    /// Adds a page to the items, which are of so many bytes then, and says whether the list was read as far
    /// as it has to be. A page without items is the last one, whatever the forge says.
    fn is_enough<T>(
        &self,
        extent: &Extent<'_, T>,
        (items, bytes): (&mut Vec<T>, usize),
        mut page: Vec<T>,
        more: bool,
    ) -> Result<bool, ForgeError> {
        let at_end = !more || page.is_empty();
        let found = match extent {
            Extent::Statuses if items.len() + page.len() > MOST_STATUSES => {
                return Err(self.error(Trouble::TooManyStatuses(MOST_STATUSES)));
            }
            Extent::Statuses => false,
            Extent::All if at_end => true,
            Extent::All if bytes > MOST_BYTES => {
                let listed = items.len() + page.len();
                return Err(self.error(Trouble::TooMany(listed)));
            }
            Extent::All => false,
            Extent::To(is_it) => page.iter().any(*is_it) || items.len() + page.len() >= MOST_SEEN,
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
    use sluice_egress::secrets::Token;
    use sluice_egress::{Egress, Rules};

    use super::*;
    use crate::address::{Address, Provider};
    use crate::call::{Access, Api, Way};

    #[test]
    fn a_list_is_bounded_by_items_and_bytes() {
        let address = Address::parse(Provider::Gitea, "https://git.example.com/a/b").unwrap();
        let way = Way {
            egress: Egress::new(Rules::default()).unwrap(),
            authorities: None,
            namespace: "apps".to_owned(),
            told: None,
            pacing: crate::call::Pacing::default(),
        };
        let token = Token::new("token").unwrap();
        let access = Access { way, token };
        let api = Api::new(access, address, &[], Paging::Starting);
        let call = api.call("list");
        let is_enough = |extent, bytes, more| {
            let mut items = vec![1; 50];
            call.is_enough(&extent, (&mut items, bytes), vec![1; 50], more)
                .map_err(|error| error.trouble)
        };
        assert_eq!(is_enough(Extent::All, MOST_BYTES, true), Ok(false));
        // The last page may be one too many.
        assert_eq!(is_enough(Extent::All, MOST_BYTES + 1, false), Ok(true));
        let too_many = Err(Trouble::TooMany(100));
        assert_eq!(is_enough(Extent::All, MOST_BYTES + 1, true), too_many);
        // Statuses are few, also on the last page.
        let mut items = vec![1; 50];
        let mut add = |count: usize, more| {
            let extent: Extent<'_, i32> = Extent::Statuses;
            let added = call.is_enough(&extent, (&mut items, 0), vec![1; count], more);
            added.map_err(|error| error.trouble)
        };
        assert_eq!(add(49, true), Ok(false));
        assert_eq!(add(1, false), Ok(true));
        assert_eq!(add(1, false), Err(Trouble::TooManyStatuses(100)));
        // One of them is looked for among so many, however long they are.
        let none = |_: &i32| false;
        assert_eq!(
            is_enough(Extent::To(&none), MOST_BYTES + 1, true),
            Ok(false)
        );
    }
}
