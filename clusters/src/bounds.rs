//! How much is read and held of clusters: another cluster may belong to somebody else, and one tenant of
//! ours must not take what the others need.
//!
//! What comes in: bytes that are to be held, and bodies of answers. What goes out: whether there is room
//! for them, and the same bodies, which break off with an error where they are too long. All numbers are
//! here.
//!
//! No other room is used.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures::StreamExt;
use sluice_watching::room::{Full, Room, Rooms};
use tower::BoxError;

/// The most bytes of an answer of another cluster, or of a line of a watch. An object has at most 1.5 MiB
/// in etcd.
pub(crate) const LONGEST: usize = 3 << 20;
/// The most bytes of a page of a list of another cluster, where the page has several objects.
pub(crate) const PAGE: usize = 1 << 20;
/// How many bytes of answers of one other cluster are read at the same time, and of all others.
pub(crate) const READING: usize = 8 << 20;
pub(crate) const ALL_READING: usize = 32 << 20;
/// How many bytes of objects are held: of a namespace, of our own cluster, of another one, and of all
/// others. Lists that are under way count.
pub(crate) const NAMESPACE: usize = 4 << 20;
pub(crate) const OWN: usize = 48 << 20;
pub(crate) const OTHER: usize = 16 << 20;
pub(crate) const ALL_OTHERS: usize = 48 << 20;

/// How many other clusters are seen: that the objects of one namespace name, and all. Each costs a connection
/// and a watch of its Secret, also if there is no such Secret.
pub(crate) const CLUSTERS_OF_NAMESPACE: usize = 128;
pub(crate) const CLUSTERS: usize = 256;

/// What is bounded in a namespace, for messages.
const OF_NAMESPACE: &str = "the objects of this namespace";

/// Whether it is the room of a namespace that is full: others may have room.
pub(crate) fn is_of_namespace(full: Full) -> bool {
    full.what == OF_NAMESPACE
}

/// For the objects of our own cluster.
pub(crate) fn own() -> Arc<Room> {
    Room::new("all objects of this cluster", OWN, None)
}

/// For the objects of all other clusters.
pub(crate) fn others() -> Arc<Room> {
    Room::new("all objects of other clusters", ALL_OTHERS, None)
}

/// For the objects of one other cluster.
pub(crate) fn other(others: &Arc<Room>) -> Arc<Room> {
    let within = Some(Arc::clone(others));
    Room::new("all objects of this cluster", OTHER, within)
}

/// For the objects of each namespace of a cluster, which all its watches share.
pub(crate) fn namespaces(cluster: Arc<Room>) -> Rooms {
    Rooms::new(OF_NAMESPACE, NAMESPACE, cluster)
}

/// For the answers of all other clusters that are being read.
pub(crate) fn reading() -> Arc<Room> {
    Room::new("the answers of all clusters", ALL_READING, None)
}

/// For the answers of one other cluster that are being read.
pub(crate) fn reading_one(all: &Arc<Room>) -> Arc<Room> {
    let within = Some(Arc::clone(all));
    Room::new("the answers of this cluster", READING, within)
}

/// An answer, or a line of a watch, is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it sends more than {0} bytes")]
pub(crate) struct TooLong(usize);

/// What is taken of a room. Dropped, it is given back.
struct Taken {
    room: Arc<Room>,
    bytes: usize,
}

impl Taken {
    fn set(&mut self, bytes: usize) -> Result<(), Full> {
        if let Some(more) = bytes.checked_sub(self.bytes) {
            self.room.take(more)?;
        } else {
            self.room.give(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.give(self.bytes);
    }
}

/// What is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bounded {
    /// All of it.
    Whole,
    /// Each line.
    Lines,
}

/// The body, of which no more than `most` bytes are read, in all or in a line. What is being read takes
/// room.
pub(crate) fn bound(body: Body, bounded: Bounded, most: usize, room: Arc<Room>) -> Body {
    let mut taken = Taken { room, bytes: 0 };
    let pieces = body.into_data_stream().map(move |piece| {
        let piece: Bytes = piece?;
        let read = taken.bytes;
        let (longest, left) = match bounded {
            Bounded::Whole => (read + piece.len(), read + piece.len()),
            Bounded::Lines => {
                let mut lines = piece.split(|byte| *byte == b'\n').map(<[u8]>::len);
                let first = read + lines.next().unwrap_or_default();
                lines.fold((first, first), |(longest, _), line| {
                    (longest.max(line), line)
                })
            }
        };
        if longest > most {
            return Err(TooLong(most).into());
        }
        taken.set(left)?;
        Ok::<_, BoxError>(piece)
    });
    Body::from_stream(pieces)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::to_bytes;
    use futures::stream;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::short(Bounded::Whole, &["123", "45"], true)]
    #[case::long(Bounded::Whole, &["123", "456"], false)]
    #[case::long_in_lines(Bounded::Whole, &["123\n", "456\n"], false)]
    #[case::lines(Bounded::Lines, &["12345\n1", "2345\n12345"], true)]
    #[case::one_line(Bounded::Lines, &["12\n123456\n1"], false)]
    #[case::a_line_in_pieces(Bounded::Lines, &["1\n123", "456"], false)]
    #[case::the_first(Bounded::Lines, &["123456\n"], false)]
    #[tokio::test]
    async fn what_is_too_long_breaks_off(
        #[case] bounded: Bounded,
        #[case] pieces: &'static [&'static str],
        #[case] fits: bool,
    ) {
        let body = Body::from_stream(stream::iter(
            pieces.iter().copied().map(Ok::<_, Infallible>),
        ));
        let room = reading();
        let read = to_bytes(bound(body, bounded, 5, Arc::clone(&room)), usize::MAX).await;
        match read {
            Ok(read) => assert!(fits && read == pieces.concat(), "{read:?}"),
            Err(_) => assert!(!fits),
        }
        assert_eq!(room.used(), 0);
    }

    #[tokio::test]
    async fn lines_that_never_end_take_room_together() {
        let room = Room::new("these", 10, None);
        let line = |text: &'static str| {
            let pieces = stream::iter([Ok::<_, Infallible>(text)]);
            let body = Body::from_stream(pieces.chain(stream::pending()));
            bound(body, Bounded::Lines, 8, Arc::clone(&room)).into_data_stream()
        };
        let (mut first, mut second) = (line("1234567"), line("1\n2345"));
        assert!(first.next().await.unwrap().is_ok());
        let refused = second.next().await.unwrap().unwrap_err();
        assert!(
            refused.to_string().contains("more than 10 bytes"),
            "{refused}"
        );
        drop(first);
        let mut third = line("1\n2345");
        assert!(third.next().await.unwrap().is_ok());
        assert_eq!(room.used(), 4);
    }

    #[test]
    fn a_namespace_that_is_full_leaves_room_to_others() {
        let cluster = Room::new("all", 2 * NAMESPACE, None);
        let rooms = namespaces(Arc::clone(&cluster));
        let (apps, again) = (rooms.of("apps"), rooms.of("apps"));
        assert!(apps.take(NAMESPACE).is_ok());
        let full = again.take(1).unwrap_err();
        assert!(is_of_namespace(full), "{full}");
        assert!(rooms.of("shop").take(1).is_ok());
        // The larger room counts, too, and nothing is taken in vain.
        let other = rooms.of("other");
        let full = other.take(NAMESPACE).unwrap_err();
        assert!(!is_of_namespace(full) && other.used() == 0, "{full}");
        apps.give(NAMESPACE);
        assert_eq!(cluster.used(), 1);
    }
}
