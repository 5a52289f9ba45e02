//! What a plain scalar of YAML means.
//!
//! As kubectl and the API server have it: they read YAML with `sigs.k8s.io/yaml`, which is YAML
//! 1.1 (`on` is true, `010` is eight) without its timestamps and its numbers to the base of 60.
//! A person who writes `name: on` learns of it here and not at the first `kubectl apply`.

use serde_json::{Number, Value};

/// The value of an unquoted scalar.
pub(super) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Value::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        _ => {}
    }
    let looks_like_a_number = text.starts_with(|c: char| matches!(c, '0'..='9' | '+' | '-' | '.'));
    let number = looks_like_a_number.then(|| number(text)).flatten();
    number.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    if text.starts_with('.') {
        return float(text);
    }
    let plain = text.replace('_', "");
    integer(&plain).or_else(|| float(&plain))
}

/// With the prefixes of Go: `0x`, `0o`, `0b`, and a bare `0` for octal.
fn integer(text: &str) -> Option<Number> {
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let prefix = digits.get(..2).map(str::to_ascii_lowercase);
    let (radix, digits) = match prefix.as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        Some(two) if two.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    if !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let size = i128::from_str_radix(digits, radix).ok()?;
    let value = if negative { -size } else { size };
    let signed = i64::try_from(value).map(Number::from);
    signed
        .or_else(|_| u64::try_from(value).map(Number::from))
        .ok()
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn float(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let exponent_is_right = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    let mantissa_is_right = digits(whole) && digits(fraction) && (whole.len() + fraction.len()) > 0;
    if !mantissa_is_right || !exponent_is_right {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    // As JSON has it: 8.0 is 8.
    if value.fract() == 0.0 && value.abs() < 9e15 {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "whole, and far within the range"
        )]
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("", json!(null))]
    #[case("~", json!(null))]
    #[case("on", json!(true))]
    #[case("No", json!(false))]
    #[case("y", json!(true))]
    #[case("oN", json!("oN"))]
    #[case("12", json!(12))]
    #[case("-12", json!(-12))]
    #[case("1_000", json!(1000))]
    #[case("010", json!(8))]
    #[case("08", json!(8))]
    #[case("0x1F", json!(31))]
    #[case("0b11", json!(3))]
    #[case("0", json!(0))]
    #[case("18446744073709551615", json!(18_446_744_073_709_551_615_u64))]
    #[case("1.5", json!(1.5))]
    #[case(".5", json!(0.5))]
    #[case("1e3", json!(1000))]
    #[case(".", json!("."))]
    #[case("-", json!("-"))]
    #[case("+", json!("+"))]
    #[case("8h", json!("8h"))]
    #[case("1h30m", json!("1h30m"))]
    #[case("0 9 * * 1-5", json!("0 9 * * 1-5"))]
    #[case("2026-12-19T00:00:00", json!("2026-12-19T00:00:00"))]
    #[case("2026-12-19", json!("2026-12-19"))]
    #[case("12:30:45", json!("12:30:45"))]
    #[case("1.2.3", json!("1.2.3"))]
    #[case("Europe/London", json!("Europe/London"))]
    #[case("infinity", json!("infinity"))]
    #[case(".inf", json!(".inf"))]
    fn scalars_are_read_as_kubectl_reads_them(#[case] text: &str, #[case] expected: Value) {
        assert_eq!(resolve(text), expected);
    }
}
