//! Packs: objects on their way (gitformat-pack). Of those that come, one commit is wanted; those that go
//! hold one commit or nothing.

use std::io::{Read, Write};

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::Wrong;
use super::object::id;
use crate::names::Sha;

/// The most objects that a commit is looked for among.
const MOST_OBJECTS: u32 = 100_000;
/// The most bytes that the objects before it may have, and it with them: they are unpacked to get past them.
const MOST_BYTES: usize = 16 << 20;
/// The most bytes of a commit that is read: its message is what somebody likes to write.
pub(super) const LONGEST_COMMIT: usize = 256 << 10;

/// The kinds of objects, as packs number them.
const COMMIT: u8 = 1;
const TAG: u8 = 4;
const OFFSET_DELTA: u8 = 6;
const REFERENCE_DELTA: u8 = 7;

/// How many bits of a length the first byte has, which says the kind, too, and how many each further byte.
const FIRST_BITS: u32 = 4;
const BITS: u32 = 7;

/// The bytes of the commit with this id.
///
/// # Errors
/// It is not in the pack, or only in parts that cannot be read.
pub(super) fn commit(pack: &[u8], wanted: &Sha) -> Result<Vec<u8>, Wrong> {
    match search(pack, wanted) {
        Some(Found::Commit(bytes)) => Ok(bytes),
        Some(Found::TooLong) => Err(Wrong::CommitTooLong),
        None => Err(Wrong::Broken("pack")),
    }
}

/// What a pack has of a commit.
enum Found {
    Commit(Vec<u8>),
    /// A commit that is not unpacked.
    TooLong,
}

fn search(pack: &[u8], wanted: &Sha) -> Option<Found> {
    let rest = pack.strip_prefix(b"PACK")?;
    let (version, rest) = number(rest)?;
    let (count, mut rest) = number(rest)?;
    if !matches!(version, 2 | 3) || count > MOST_OBJECTS {
        return None;
    }
    let mut room = MOST_BYTES;
    for _ in 0..count {
        let (kind, size, after) = head(rest)?;
        let packed = match kind {
            COMMIT..=TAG => after,
            OFFSET_DELTA => after_number(after)?,
            REFERENCE_DELTA => after.get(20..)?,
            _ => return None,
        };
        room = room.checked_sub(size)?;
        let mut bytes = Vec::new();
        let used = match kind {
            COMMIT if size > LONGEST_COMMIT => return Some(Found::TooLong),
            COMMIT => unpack(packed, size, &mut bytes)?,
            _ => unpack(packed, size, &mut std::io::sink())?,
        };
        if kind == COMMIT && id("commit", &bytes) == *wanted {
            return Some(Found::Commit(bytes));
        }
        rest = packed.get(used..)?;
    }
    None
}

/// A number of four bytes, and what follows it.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}

/// The kind of an object and its size, and what follows them. The lowest bits of the size come first; a byte
/// with the highest bit set is not the last.
fn head(bytes: &[u8]) -> Option<(u8, usize, &[u8])> {
    let (first, mut rest) = bytes.split_first()?;
    let mut size = usize::from(first & 0b1111);
    let (mut shift, mut byte) = (FIRST_BITS, *first);
    while byte & 0x80 != 0 {
        let (next, after) = rest.split_first()?;
        (byte, rest) = (*next, after);
        let part = usize::from(byte & 0x7f);
        size |= part.checked_shl(shift).filter(|it| it >> shift == part)?;
        shift += BITS;
    }
    Some(((first >> FIRST_BITS) & 0b111, size, rest))
}

/// What follows a number of any length.
fn after_number(bytes: &[u8]) -> Option<&[u8]> {
    let last = bytes.iter().position(|byte| byte & 0x80 == 0)?;
    bytes.get(last + 1..)
}

/// Unpacks an object of exactly this size. Returns how many bytes it takes in the pack.
fn unpack(packed: &[u8], size: usize, into: &mut impl Write) -> Option<usize> {
    let mut decoder = ZlibDecoder::new(packed);
    let size = u64::try_from(size).ok()?;
    // One more than there should be, so that the end is seen.
    let mut bytes = decoder.by_ref().take(size.checked_add(1)?);
    let unpacked = std::io::copy(&mut bytes, into).ok()?;
    let used = usize::try_from(decoder.total_in()).ok()?;
    (unpacked == size).then_some(used)
}

/// A pack with one commit, or with nothing: for a push of what the server has already.
pub(super) fn packed(commit: Option<&[u8]>) -> Vec<u8> {
    let count: u32 = if commit.is_some() { 1 } else { 0 };
    let mut pack = [
        b"PACK".as_slice(),
        &2_u32.to_be_bytes(),
        &count.to_be_bytes(),
    ]
    .concat();
    if let Some(bytes) = commit {
        pack.extend(head_of(COMMIT, bytes.len()));
        let mut encoder = ZlibEncoder::new(&mut pack, Compression::default());
        // Writing into memory never fails.
        let _ = encoder.write_all(bytes).and_then(|()| encoder.try_finish());
    }
    let sum = digest(&SHA1_FOR_LEGACY_USE_ONLY, &pack);
    pack.extend_from_slice(sum.as_ref());
    pack
}

fn head_of(kind: u8, size: usize) -> Vec<u8> {
    // No more than its lowest bits are taken of a number.
    let low = |number: usize, mask: usize| u8::try_from(number & mask).unwrap_or_default();
    let mut head = vec![(kind << FIRST_BITS) | low(size, 0b1111)];
    let mut left = size >> FIRST_BITS;
    while left > 0 {
        if let Some(last) = head.last_mut() {
            *last |= 0x80;
        }
        head.push(low(left, 0x7f));
        left >>= BITS;
    }
    head
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A pack with these objects, of which the lengths say what `size` makes of them.
    fn pack(objects: &[(u8, &[u8])], size: impl Fn(usize) -> usize) -> Vec<u8> {
        let count = u32::try_from(objects.len()).unwrap();
        let mut pack = [
            b"PACK".as_slice(),
            &2_u32.to_be_bytes(),
            &count.to_be_bytes(),
        ]
        .concat();
        for (kind, bytes) in objects {
            pack.extend(head_of(*kind, size(bytes.len())));
            match *kind {
                OFFSET_DELTA => pack.extend([0x81, 0x01]),
                REFERENCE_DELTA => pack.extend([7; 20]),
                _ => {}
            }
            let mut encoder = ZlibEncoder::new(&mut pack, Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.try_finish().unwrap();
        }
        pack
    }

    #[test]
    fn the_commit_is_found_wherever_it_is() {
        let wanted = id("commit", b"it");
        let all: [(u8, &[u8]); 7] = [
            (2, b"tree"),
            (3, b""),
            (4, b"tag"),
            (6, b"delta"),
            (7, b"delta"),
            (1, b"other"),
            (1, b"it"),
        ];
        let found = |all: &[(u8, &[u8])]| commit(&pack(all, |size| size), &wanted);
        assert_eq!(found(&all), Ok(b"it".to_vec()));
        assert_eq!(found(&all[6..]), Ok(b"it".to_vec()));
        assert_eq!(found(&all[..6]), Err(Wrong::Broken("pack")));
        // A file with the same bytes is no commit.
        assert_eq!(found(&[(3, b"it")]), Err(Wrong::Broken("pack")));
        assert_eq!(found(&[(5, b"x"), (1, b"it")]), Err(Wrong::Broken("pack")));
    }

    #[test]
    fn lengths_are_not_believed() {
        let wanted = id("commit", b"it");
        let found = |size: fn(usize) -> usize| commit(&pack(&[(1, b"it")], size), &wanted);
        assert!(found(|size| size).is_ok());
        assert!(found(|size| size + 1).is_err());
        assert!(found(|size| size - 1).is_err());
        assert!(found(|_| usize::MAX).is_err());
    }

    #[test]
    fn a_commit_that_is_too_long_is_not_unpacked() {
        let found = |length: usize| {
            let bytes = vec![b'x'; length];
            commit(&pack(&[(1, &bytes)], |size| size), &id("commit", &bytes))
        };
        assert_eq!(found(LONGEST_COMMIT).map(|it| it.len()), Ok(LONGEST_COMMIT));
        assert_eq!(found(LONGEST_COMMIT + 1), Err(Wrong::CommitTooLong));
        // Also if it says so alone.
        let lying = pack(&[(1, b"it")], |_| LONGEST_COMMIT + 1);
        assert_eq!(
            commit(&lying, &id("commit", b"it")),
            Err(Wrong::CommitTooLong)
        );
    }

    #[test]
    fn what_unpacks_to_too_much_is_given_up() {
        let wanted = id("commit", b"it");
        let long = vec![0; MOST_BYTES - 1];
        let found = |long: &[u8]| commit(&pack(&[(3, long), (1, b"it")], |size| size), &wanted);
        assert!(found(&long).is_err());
        assert!(found(&long[1..]).is_ok());
    }

    /// By `git hash-object` and `git index-pack`: 32 bytes are a pack of nothing.
    #[test]
    fn a_pack_may_be_empty() {
        let empty = packed(None);
        let sum: String = empty[12..]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(&empty[..12], b"PACK\0\0\0\x02\0\0\0\0");
        assert_eq!(sum, "029d08823bd8a8eab510ad6ac75c823cfd3ed31e");
    }

    proptest! {
        #[test]
        fn what_is_packed_is_found(bytes: Vec<u8>) {
            let found = commit(&packed(Some(&bytes)), &id("commit", &bytes));
            prop_assert_eq!(found, Ok(bytes));
        }

        #[test]
        fn any_bytes_are_read_to_an_end(
            bytes: Vec<u8>, count: u32, at in 0_usize..64, with: u8,
        ) {
            let wanted = id("commit", b"it");
            let _ = commit(&bytes, &wanted);
            let head = [b"PACK".as_slice(), &2_u32.to_be_bytes(), &count.to_be_bytes()].concat();
            let _ = commit(&[head, bytes].concat(), &wanted);
            // One that is right but for one byte.
            let mut pack = packed(Some(b"it"));
            let at = at % pack.len();
            pack[at] = with;
            let found = commit(&pack, &wanted);
            prop_assert!(found.is_err() || found == Ok(b"it".to_vec()));
        }
    }
}
