//! HMAC-SHA256, by which those sign who send something to the controller.
//!
//! What comes in: a key, and what is signed, piece by piece. What goes out: whether a code is that of all of it.
//! Comparing takes as long for every code.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};

/// How many bytes a code has.
pub(super) const LENGTH: usize = 32;

/// What comes out.
pub(super) type Code = [u8; LENGTH];

/// What is signed, as far as it is known.
pub(super) struct Sum(Context);

impl Sum {
    /// Nothing yet.
    pub(super) fn new(key: &[u8]) -> Self {
        Self(Context::with_key(&Key::new(HMAC_SHA256, key)))
    }

    /// The next piece.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Whether one of these is the code of all pieces.
    pub(super) fn fits_one_of(self, codes: &[Code]) -> bool {
        let sum = self.0.sign();
        let equal = |code: &Code| verify_slices_are_equal(sum.as_ref(), code).is_ok();
        codes.iter().fold(false, |found, code| equal(code) | found)
    }
}

/// The code that 64 hexadecimal digits say.
pub(super) fn code(digits: &str) -> Option<Code> {
    let digits = digits.as_bytes();
    if digits.len() != 2 * LENGTH {
        return None;
    }
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|it| u8::try_from(it).ok())
    };
    let mut code = [0; LENGTH];
    for (byte, pair) in code.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hexadecimal_digits_are_digits() {
        assert_eq!(code(&"0".repeat(64)), Some([0; LENGTH]));
        assert_eq!(code(&"fF".repeat(32)), Some([255; LENGTH]));
        for text in [
            "g".repeat(64),
            "0".repeat(63),
            "0".repeat(66),
            "é".repeat(32),
        ] {
            assert_eq!(code(&text), None, "{text}");
        }
    }
}
