//! What the API server was asked and has answered: once for all who want to know at one time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Answers by question. While one asks, the others wait for the answer.
pub(super) struct Answers<Q, A>(Mutex<HashMap<Q, Arc<AsyncMutex<Option<A>>>>>);

impl<Q, A> Default for Answers<Q, A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Q: Clone + Eq + Hash, A> Answers<Q, A> {
    /// The answer to `question`, if there was one, to be replaced by a better one. `is_old` says
    /// which of the others nobody needs any more.
    pub(super) async fn to(
        &self,
        question: &Q,
        is_old: impl Fn(&A) -> bool,
    ) -> OwnedMutexGuard<Option<A>> {
        let answer = {
            let mut all = self.0.lock();
            // Before the map grows: room from what is old.
            if all.len() == all.capacity() {
                all.retain(|_, answer| !is_unused(answer, &is_old));
            }
            Arc::clone(all.entry(question.clone()).or_default())
        };
        answer.lock_owned().await
    }
}

fn is_unused<A>(answer: &Arc<AsyncMutex<Option<A>>>, is_old: impl Fn(&A) -> bool) -> bool {
    Arc::strong_count(answer) == 1
        && answer
            .try_lock()
            .is_ok_and(|answer| answer.as_ref().is_none_or(is_old))
}
