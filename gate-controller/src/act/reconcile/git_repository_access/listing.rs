//! Listing where the branches of a repository point to, and its notes.
//!
//! What comes in: the branches that somebody needs, and the names that were found to be very many's beginning when
//! they were listed last. What goes out: what was found, by one request as long as there is not too much; and what is
//! not known, of which those alone hear who name it. Anyone who may push can make very much begin like any name. So
//! what a list has brought before it was cut stays, what is left is asked for again, and such names are listed last.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sluice_core::delivery::promotion_strategy::evidence::{Heads, NOTES, Sight};
use sluice_forges::{ForgeError, Trouble};
use tokio::time::Instant;

use super::reading::{Found, Repository};
use crate::act::forges::Failure;
use crate::observe::repositories::Listed;

/// Where Git keeps branches.
const BRANCHES: &str = "refs/heads/";
/// For how long others wait for the names that very much begins with.
const WIDE: Duration = Duration::from_secs(10);

/// Where the branches point to, and the notes, as far as that can be said by `until`.
///
/// # Errors
/// The forge does not say anything.
pub(super) async fn list(
    repository: &impl Repository,
    branches: &BTreeSet<String>,
    wide: &BTreeSet<String>,
    until: Instant,
) -> Result<Listed, Failure> {
    let names = branches.iter().map(|branch| format!("{BRANCHES}{branch}"));
    let names = names.chain([NOTES.to_owned()]);
    let (last, first): (Vec<_>, Vec<_>) = names.partition(|name| wide.contains(name));
    let mut listing = Listing::default();
    listing.add(repository, first, until).await?;
    let until = until.min(Instant::now() + WIDE);
    listing.add(repository, last.clone(), until).await?;
    // Those for which there was no time are not tried first.
    let late = last.into_iter();
    let late = late.filter(|name| listing.unknown.contains_key(name));
    listing.wide.extend(late);
    Ok(listing.listed(branches))
}

/// What is known so far.
#[derive(Default)]
struct Listing {
    found: BTreeMap<String, String>,
    unknown: BTreeMap<String, Why>,
    wide: BTreeSet<String>,
    has_begun: bool,
}

/// Why it is not known whether a name is there.
#[derive(Clone, Copy)]
enum Why {
    /// Too much begins with it.
    Wide,
    /// The time was over.
    Late,
}

impl Listing {
    /// Lists names, by more requests where one does not say everything.
    async fn add(
        &mut self,
        repository: &impl Repository,
        names: Vec<String>,
        until: Instant,
    ) -> Result<(), ForgeError> {
        let mut parts = vec![names];
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            if self.has_begun && Instant::now() >= until {
                self.note(part, Why::Late);
                continue;
            }
            let Found { names, left, wide } = match repository.references(&part).await {
                Ok(found) => found,
                // What takes so long may be this part alone.
                Err(error) if self.has_begun && is_late(&error) => {
                    self.note(part, Why::Late);
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.has_begun = true;
            self.found.extend(names);
            self.wide.extend(wide);
            match (left.len(), part.len()) {
                (1, 1) => self.note(left, Why::Wide),
                // What comes behind those that are too much is not to wait for all of them.
                (all, _) => {
                    let mut left = left;
                    let rest = left.split_off(all / 2);
                    parts.extend([left, rest]);
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, names: Vec<String>, why: Why) {
        if matches!(why, Why::Wide) {
            self.wide.extend(names.iter().cloned());
        }
        self.unknown
            .extend(names.into_iter().map(|name| (name, why)));
    }

    fn listed(self, branches: &BTreeSet<String>) -> Listed {
        let notes = match (self.found.get(NOTES), self.unknown.get(NOTES)) {
            (Some(id), _) => Sight::Known(id.clone()),
            (None, Some(why)) => Sight::Failed(why.says(NOTES)),
            (None, None) => Sight::Absent,
        };
        // Others begin with the same text.
        let of = |name: &str| {
            let branch = name.strip_prefix(BRANCHES);
            branch
                .filter(|it| branches.contains(*it))
                .map(str::to_owned)
        };
        let heads = self.found.into_iter();
        let heads = heads.filter_map(|(name, id)| Some((of(&name)?, id)));
        let unknown = self.unknown.into_iter();
        let unlisted = unknown.filter_map(|(name, why)| {
            let branch = of(&name)?;
            let why = why.says(&branch);
            Some((branch, why))
        });
        Listed {
            heads: Heads {
                branches: heads.collect(),
                notes,
            },
            unlisted: unlisted.collect(),
            wide: self.wide,
            at: None,
        }
    }
}

impl Why {
    fn says(self, name: &str) -> String {
        match self {
            Self::Wide => format!(
                "there is so much in the repository whose name begins with {name} that it cannot be listed; \
                 delete some, or give it another name"
            ),
            Self::Late => format!(
                "there was no time to list {name}, because there is very much in the repository whose name \
                 begins like one that is listed; delete some"
            ),
        }
    }
}

/// Whether there was no answer, perhaps because it would take too long.
fn is_late(error: &ForgeError) -> bool {
    matches!(error.trouble, Trouble::Unanswered(_) | Trouble::Failed(_))
}
