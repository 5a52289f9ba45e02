//! The minutes of a day, where windows start.

use jiff::SignedDuration;

use super::lasts::{Lasts, MINUTE};

/// Runs of minutes whose windows touch on a regular day, as first and last minute. Windows of which
/// nothing is left are in none of them.
pub(super) fn blocks(minutes: &[u16], lasts: Lasts) -> Vec<(u16, u16)> {
    let mut blocks: Vec<(u16, u16)> = Vec::new();
    let after_midnight = |minute: u16| MINUTE * i32::from(minute);
    let is_left = |minute: &u16| lasts.end(*minute) > after_midnight(*minute);
    for minute in minutes.iter().copied().filter(is_left) {
        match blocks.last_mut() {
            Some((_, last)) if after_midnight(minute) <= lasts.end(*last) => *last = minute,
            _ => blocks.push((minute, minute)),
        }
    }
    blocks
}

/// Those of the ascending `minutes` that lie from `start` to `end` after midnight, `end` outside.
pub(super) fn between(minutes: &[u16], start: SignedDuration, end: SignedDuration) -> &[u16] {
    let place = |bound| minutes.partition_point(|&minute| MINUTE * i32::from(minute) < bound);
    let (first, last) = (place(start), place(end));
    minutes.get(first..last).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_touch_are_one_block() {
        let lasts = |minutes| Lasts::For(SignedDuration::from_mins(minutes));
        let blocks_of = |minutes| blocks(&[0, 10, 20, 40], lasts(minutes));
        assert_eq!(blocks_of(9), [(0, 0), (10, 10), (20, 20), (40, 40)]);
        assert_eq!(blocks_of(10), [(0, 20), (40, 40)]);
        assert_eq!(blocks_of(20), [(0, 40)]);
    }

    #[test]
    fn windows_with_one_end_are_one_block() {
        let blocks_of = |minute, shortened| {
            let shortened = SignedDuration::from_mins(shortened);
            blocks(&[0, 10, 20, 40], Lasts::Until { minute, shortened })
        };
        assert_eq!(blocks_of(30, 0), [(0, 20), (40, 40)]);
        assert_eq!(blocks_of(20, 0), [(0, 40)]);
        assert_eq!(blocks_of(30, 15), [(0, 10), (40, 40)]);
        assert_eq!(blocks_of(50, 0), [(0, 40)]);
        assert_eq!(blocks_of(50, 10), [(0, 20)]);
    }

    #[test]
    fn a_part_of_the_minutes_is_half_open() {
        let part = |start, end| between(&[0, 10, 20, 40], MINUTE * start, MINUTE * end);
        assert_eq!(part(10, 40), [10, 20]);
        assert_eq!(part(-5, 1), [0]);
        assert!(part(41, 30).is_empty());
    }
}
