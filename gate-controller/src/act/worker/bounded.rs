//! For how long a look may go on.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Looks until this replica loses its leadership: what a leader has begun must not go on after it. After
/// a shutdown, goes on only for `last`: a pod that takes longer to end is killed, and its audit log with
/// it. None: the look was stopped before its end.
///
/// Before each step of the look, and so before each of its writes, it asks whether it `may` go on: a
/// machine that slept in the middle of a look continues with the look before the loss is reported.
pub(super) async fn bounded<T>(
    look: impl Future<Output = T>,
    may: impl Fn() -> bool,
    lost: impl Future<Output = ()>,
    shutdown: &CancellationToken,
    last: Duration,
) -> Option<T> {
    let cut_off = async {
        shutdown.cancelled().await;
        let _ = timeout(last, pending::<()>()).await;
    };
    let mut look = pin!(look);
    let look = poll_fn(|context| match may() {
        true => look.as_mut().poll(context).map(Some),
        false => Poll::Ready(None),
    });
    tokio::select! {
        biased;
        looked = look => looked,
        () = lost => None,
        () = cut_off => None,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use futures::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    const WHILE: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_look_ends_with_the_lead_and_soon_after_a_shutdown() {
        let (never, at_once) = (pending::<()>, ready::<()>);
        let may = || true;
        let shutdown = CancellationToken::new();
        let looked = bounded(at_once(()), may, at_once(()), &shutdown, Duration::ZERO);
        assert!(looked.await.is_some());
        let looked = bounded(never(), may, at_once(()), &shutdown, Duration::ZERO);
        assert!(looked.await.is_none());
        let looked = bounded(never(), may, never(), &shutdown, Duration::ZERO);
        assert_eq!(looked.now_or_never(), None);
        shutdown.cancel();
        let looked = bounded(never(), may, never(), &shutdown, Duration::ZERO);
        assert!(looked.await.is_none());
        let looked = bounded(never(), may, never(), &shutdown, WHILE);
        assert_eq!(looked.now_or_never(), None);
    }

    /// The answer that it waits for is there on waking; the loss of the lead is reported later.
    #[tokio::test]
    async fn a_look_does_not_go_on_to_write_after_a_machine_slept() {
        let (leads, writes) = (Cell::new(true), Cell::new(0));
        let (answer, answered) = oneshot::channel::<()>();
        let look = async {
            writes.set(1);
            answered.await.unwrap();
            writes.set(2);
        };
        let shutdown = CancellationToken::new();
        let looked = bounded(look, || leads.get(), pending(), &shutdown, WHILE);
        let mut looked = pin!(looked);
        assert!(looked.as_mut().now_or_never().is_none());
        leads.set(false);
        answer.send(()).unwrap();
        assert_eq!((looked.await, writes.get()), (None, 1));
    }
}
