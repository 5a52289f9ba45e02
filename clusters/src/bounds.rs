//! How much an API server may send: another cluster may belong to somebody else, and must not fill the
//! controller's memory.
//!
//! What comes in: the body of an answer. What goes out: the same, which breaks off with an error where
//! it is too long. Of a watch, each line counts by itself.
//!
//! No other room is used.

use axum::body::{Body, Bytes};
use futures::StreamExt;
use tower::BoxError;

/// The most bytes of an answer, or of a line of a watch. An object has at most 1.5 MiB in etcd, and lists
/// are read in shorter pages.
pub(crate) const LONGEST: usize = 8 << 20;

/// What is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bounded {
    /// All of it.
    Whole,
    /// Each line.
    Lines,
}

/// The body, of which no more than `most` bytes are read, in all or in a line.
pub(crate) fn bound(body: Body, bounded: Bounded, most: usize) -> Body {
    let mut read = 0;
    let pieces = body.into_data_stream().map(move |piece| {
        let piece: Bytes = piece?;
        let longest = match bounded {
            Bounded::Whole => {
                read += piece.len();
                read
            }
            Bounded::Lines => {
                let mut lines = piece.split(|byte| *byte == b'\n').map(<[u8]>::len);
                let first = read + lines.next().unwrap_or_default();
                let (longest, last) = lines.fold((first, first), |(longest, _), line| {
                    (longest.max(line), line)
                });
                read = last;
                longest
            }
        };
        match longest > most {
            true => Err(BoxError::from(format!("it sends more than {most} bytes"))),
            false => Ok(piece),
        }
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
        let read = to_bytes(bound(body, bounded, 5), usize::MAX).await;
        match read {
            Ok(read) => assert!(fits && read == pieces.concat(), "{read:?}"),
            Err(_) => assert!(!fits),
        }
    }
}
