//! Lengths of time.

use bolero::TypeGenerator;
use sluice_core::time::duration;
use sluice_crds::Duration;

use super::target::Target;

pub const TARGET: Target = Target {
    name: "duration",
    words: &[
        "h",
        "m",
        "s",
        "ms",
        "us",
        "ns",
        "d",
        "7d",
        "99999d",
        ".",
        "-",
        "+",
        " ",
        "0",
        "9",
        "1h",
        "30m",
        "0.5s",
        "1e3",
        "∞",
        "٣",
        "99999999999999999999",
        "2562047788015215h",
        "0.000000000001h",
    ],
    texts: 60_000,
};

/// Nothing else is asked for.
#[derive(Debug, Default, TypeGenerator)]
pub struct Nothing;

/// The units, in nanoseconds.
const UNITS: [(&str, i128); 5] = [
    ("d", 86_400_000_000_000),
    ("ms", 1_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
];

/// What was read is what one adds up by hand, and is written so that it reads the same again.
pub fn holds(text: &str, _: &Nothing) -> bool {
    let Ok(length) = duration::parse(&Duration::from(text)) else {
        return false;
    };
    let expected = added_up(text);
    let read = length.as_nanos();
    assert!(read >= 0, "{text:?} is less than no time: {length:?}");
    assert!(
        read <= expected,
        "{text:?} is {read} ns, more than {expected}"
    );
    // Of each part, what is finer than a nanosecond is dropped.
    let parts = i128::try_from(text.len()).unwrap();
    assert!(
        read > expected - parts,
        "{text:?} is {read} ns, not {expected}"
    );

    let written = duration::text(length);
    let again = duration::parse(&Duration::from(written.as_str()));
    let millis = again.map(|again| again.as_millis());
    assert_eq!(
        millis,
        Ok(length.as_millis()),
        "{text:?} is written {written:?}"
    );
    true
}

/// The sum of the parts in nanoseconds, rounded down once.
fn added_up(text: &str) -> i128 {
    const SCALE: i128 = 10_i128.pow(18);
    let (mut nanos, mut finer) = (0, 0);
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        let (number, after) = rest.split_at(digits);
        let mut units = UNITS.into_iter();
        let (unit, length) = units.find(|(unit, _)| after.starts_with(unit)).unwrap();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        // Digits behind the eighteenth come to less than a nanosecond even together.
        let fraction = format!("{fraction:0<18}");
        let [whole, fraction] = [whole, &fraction[..18]].map(|n| n.parse::<i128>().unwrap());
        nanos += whole * length;
        finer += fraction * length;
        rest = &after[unit.len()..];
    }
    nanos + finer / SCALE
}
