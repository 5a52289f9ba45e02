//! The minutes of a day, where windows start.

use jiff::SignedDuration;

pub(super) const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// Runs of minutes whose windows of `duration` touch, as first and last minute.
pub(super) fn blocks(minutes: &[u16], duration: SignedDuration) -> Vec<(u16, u16)> {
    let mut blocks: Vec<(u16, u16)> = Vec::new();
    let seconds = duration.as_secs();
    for &minute in minutes {
        match blocks.last_mut() {
            Some((_, last)) if i64::from(minute - *last) * 60 <= seconds => *last = minute,
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
        let blocks_of = |minutes| blocks(&[0, 10, 20, 40], SignedDuration::from_mins(minutes));
        assert_eq!(blocks_of(9), [(0, 0), (10, 10), (20, 20), (40, 40)]);
        assert_eq!(blocks_of(10), [(0, 20), (40, 40)]);
        assert_eq!(blocks_of(20), [(0, 40)]);
    }

    #[test]
    fn a_part_of_the_minutes_is_half_open() {
        let part = |start, end| between(&[0, 10, 20, 40], MINUTE * start, MINUTE * end);
        assert_eq!(part(10, 40), [10, 20]);
        assert_eq!(part(-5, 1), [0]);
        assert!(part(41, 30).is_empty());
    }
}
