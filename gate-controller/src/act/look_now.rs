//! Pull requests whose forge is to be asked now, and not when it is their time.
//!
//! What comes in: the name of one, from a look at its owner that has seen it merged. What goes out: the
//! same once, to the look at the PullRequest. Nothing is lost if it is forgotten: the forge is then asked
//! at the usual time.

use std::collections::HashSet;

use parking_lot::Mutex;

use crate::act::waker::Waker;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;

/// The PullRequests that are to be asked about now.
#[derive(Default)]
pub(crate) struct LookNow(Mutex<HashSet<ObjectKey>>);

impl LookNow {
    /// Has it asked about by the next look at it, which is now.
    pub(crate) fn at(&self, pull_request: ObjectKey, waker: &Waker) {
        self.0.lock().insert(pull_request.clone());
        waker.wake(Work::own(Kind::PullRequest, pull_request));
    }

    /// Whether it is to be asked about now. It is said once.
    pub(crate) fn take(&self, pull_request: &ObjectKey) -> bool {
        self.0.lock().remove(pull_request)
    }
}
