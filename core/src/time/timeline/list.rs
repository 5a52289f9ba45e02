//! One list of windows: which of them decides, and from when on another does.
//!
//! Of the windows around an instant that decides which lasts longest, because it explains best;
//! of those that end together, the first in the list.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use jiff::Timestamp;

use super::Cover;
use crate::time::span::{MOMENT, earlier};
use crate::time::window::Next;

/// The times that one window of a list covers, each one once, ascending by start.
pub(crate) trait Covers {
    /// The next time.
    fn next_cover(&mut self) -> Next<Cover>;

    /// Gives up times that end at `to` or before, where that saves work. Of one that covers `to`
    /// the start may be later than it was, unless `whole` is asked for.
    fn skip(&mut self, to: Timestamp, whole: bool);
}

/// A list of windows.
pub(crate) struct List<C> {
    windows: Vec<C>,
    /// The next time of each window, the earliest first.
    heads: BinaryHeap<Reverse<Head>>,
    decides: Option<Cover>,
    /// How far the windows are known.
    known: Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    cover: Cover,
    /// Whose it is, among `windows`.
    window: usize,
}

impl<C: Covers> List<C> {
    /// The windows from `from` on.
    pub fn new(windows: Vec<C>, from: Timestamp) -> Self {
        let mut list = Self {
            heads: BinaryHeap::with_capacity(windows.len()),
            windows,
            decides: None,
            known: Timestamp::MAX,
        };
        for window in 0..list.windows.len() {
            list.refill(window, from);
        }
        list
    }

    /// How far it is known which of them decides. What [`List::at`] found holds to its end. The
    /// other windows do not matter: one of them could at most explain it better.
    pub fn known(&self) -> Timestamp {
        let end = self.decides.map_or(Timestamp::MIN, |cover| cover.span.end);
        self.known.max(end)
    }

    /// The time that decides at `at`, which is no earlier than at the last call.
    pub fn at(&mut self, at: Timestamp) -> Option<Cover> {
        self.decides = self.decides.filter(|cover| at < cover.span.end);
        while let Some(head) = self.pop_if(|head| head.cover.span.start <= at) {
            if at < head.cover.span.end && self.would_decide(head.cover) {
                self.decides = Some(head.cover);
            }
            self.refill(head.window, at);
        }
        self.decides
    }

    /// When another time decides than the one that [`List::at`] found, unless that ends
    /// before. None: never.
    pub fn next(&mut self, at: Timestamp) -> Option<Timestamp> {
        let end = self.decides.map_or(at, |cover| cover.span.end);
        while let Some(&Reverse(Head { cover, window })) = self.heads.peek() {
            if end <= cover.span.start || self.would_decide(cover) {
                return Some(cover.span.start);
            }
            self.heads.pop();
            self.refill(window, at);
        }
        None
    }

    fn pop_if(&mut self, condition: impl Fn(&Head) -> bool) -> Option<Head> {
        let head = self.heads.peek().filter(|head| condition(&head.0));
        head.is_some().then(|| self.heads.pop())?.map(|head| head.0)
    }

    fn would_decide(&self, cover: Cover) -> bool {
        let rank = |cover: Cover| (cover.span.end, Reverse(cover.source));
        self.decides
            .is_none_or(|decides| rank(cover) > rank(decides))
    }

    /// Finds the next time of a window that matters after `at`: one that outlasts what decides.
    fn refill(&mut self, window: usize, at: Timestamp) {
        // What decides for ever is never outlasted.
        if self
            .decides
            .is_some_and(|cover| cover.span.end == Timestamp::MAX)
        {
            return;
        }
        let Some(covers) = self.windows.get_mut(window) else {
            return;
        };
        let outlasts = self
            .decides
            .map_or(at, |cover| earlier(cover.span.end, MOMENT));
        covers.skip(outlasts, self.decides.is_some());
        loop {
            match covers.next_cover() {
                Next::Some(cover) if cover.span.end > outlasts => {
                    self.heads.push(Reverse(Head { cover, window }));
                    return;
                }
                Next::Some(_) => {}
                Next::Never => return,
                Next::Unknown(from) => {
                    self.known = self.known.min(from);
                    return;
                }
            }
        }
    }
}
