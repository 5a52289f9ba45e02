//! What a watch of one kind in one namespace tells, put into a [`Store`].

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use parking_lot::Mutex;

use super::store::{Cursor, Limits, News, Store, Stored, TooMuch};
use sluice_watching::room::Room;
use sluice_watching::shared::{Setback, Sink};
use sluice_watching::{Guard, Step};

/// How many objects are listed first, before their size is known, and how many at most.
const FIRST_PAGE: u32 = 10;
const LONGEST_PAGE: usize = 500;
/// About how many bytes of them are listed at once: a page takes many times as much while it is read.
const PAGE_BYTES: usize = 1 << 20;

/// What is held of a kind.
#[derive(Clone)]
pub(crate) struct Held {
    store: Arc<Mutex<Store>>,
    /// How many changes there were when it was reported.
    changes: u64,
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.changes == other.changes
    }
}

impl Held {
    /// What is new to somebody who has read as far as `cursor`.
    pub(super) fn since(&self, cursor: Option<Cursor>) -> (News, Cursor) {
        self.store.lock().since(cursor)
    }
}

/// Follows one kind in one namespace.
pub(super) struct Follower {
    resource: ApiResource,
    limits: Limits,
    store: Arc<Mutex<Store>>,
    /// What the list that is under way has, and how many bytes of text.
    listed: Vec<Stored>,
    bytes: usize,
}

impl Follower {
    /// Nothing is known yet.
    pub(super) fn new(resource: ApiResource, limits: Limits, room: Arc<Room>) -> Self {
        Self {
            resource,
            limits,
            store: Arc::new(Mutex::new(Store::new(limits, room))),
            listed: Vec::new(),
            bytes: 0,
        }
    }

    /// If one of the objects is missing, it is not known whether all are as they should be.
    fn stored(&self, object: Guard<DynamicObject>) -> Result<Stored, Setback> {
        Ok(Stored::new(object.0?, &self.resource))
    }

    fn list(&mut self, page: Vec<Guard<DynamicObject>>) -> Result<(), Setback> {
        for object in page {
            let object = self.stored(object)?;
            self.bytes += object.size();
            self.listed.push(object);
            self.limits.check(self.listed.len(), self.bytes)?;
        }
        Ok(())
    }
}

impl Sink for Follower {
    type Object = DynamicObject;
    type Told = Held;
    const VANISHES: bool = true;

    fn page_size(&self) -> Option<u32> {
        Some(match self.listed.len() {
            0 => FIRST_PAGE,
            objects => next_page(objects, self.bytes),
        })
    }

    fn take(&mut self, step: Step<Guard<DynamicObject>>) -> Result<Option<Held>, Setback> {
        match step {
            Step::Listed(_) => {
                let listed = std::mem::take(&mut self.listed);
                self.store.lock().replace(listed)?;
            }
            Step::Apply(object) => {
                let object = self.stored(object)?;
                self.store.lock().apply(object)?;
            }
            Step::Delete(object) => self.store.lock().delete(&object.name_any()),
            Step::Page(page) => return self.list(page).map(|()| None),
            Step::Begun => {
                (self.listed, self.bytes) = (Vec::new(), 0);
                return Ok(None);
            }
            Step::Opened | Step::Alive | Step::Ended | Step::Failed(_) | Step::Silent => {
                return Ok(None);
            }
        }
        let (store, changes) = (Arc::clone(&self.store), self.store.lock().changes());
        Ok(Some(Held { store, changes }))
    }

    fn clear(&mut self) {
        self.store.lock().clear();
    }
}

impl From<TooMuch> for Setback {
    fn from(TooMuch(why): TooMuch) -> Self {
        Setback::TooMuch(why)
    }
}

/// How many objects are listed next, after so many that took so many bytes.
fn next_page(objects: usize, bytes: usize) -> u32 {
    let each = bytes.div_ceil(objects.max(1)).max(1);
    let page = (PAGE_BYTES / each).clamp(1, LONGEST_PAGE);
    u32::try_from(page).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none(0, 0, 500)]
    #[case::small(10, 10 << 10, 500)]
    #[case::usual(10, 80 << 10, 128)]
    #[case::large(10, 10 << 20, 1)]
    #[case::larger_than_a_page(1, 3 << 20, 1)]
    fn a_page_has_as_many_objects_as_fit(
        #[case] objects: usize,
        #[case] bytes: usize,
        #[case] page: u32,
    ) {
        assert_eq!(next_page(objects, bytes), page);
    }
}
