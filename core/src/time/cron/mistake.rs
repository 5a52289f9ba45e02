//! What is wrong with a cron expression, and what to write instead.

/// What to write where a cron expression is wanted, and nothing better is known.
const REMEDY: &str =
    "write five fields: minute, hour, day of month, month, day of week, such as `0 9 * * MON-FRI`";

/// Why a text is no cron expression that occurs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {remedy}")]
pub struct Mistake {
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead.
    pub remedy: String,
}

impl Mistake {
    pub(super) fn new(problem: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            remedy: REMEDY.to_owned(),
        }
    }

    /// The mistake in an expression that `croner` cannot read.
    pub(super) fn unread(text: &str, why: &str) -> Self {
        let mut fields = text.split_whitespace().zip(&FIELDS);
        let remedy = fields.find_map(|(written, field)| field.remedy(written));
        Self {
            problem: format!("`{text}` is not a cron expression: {why}"),
            remedy: remedy.unwrap_or_else(|| REMEDY.to_owned()),
        }
    }
}

/// What belongs in one of the five fields.
struct Field {
    called: &'static str,
    low: u16,
    high: u16,
    /// What else there is to know about the numbers.
    more: &'static str,
    /// The names whose first three letters mean the numbers.
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field::numbers("minutes", 0, 59, ""),
    Field::numbers("hours", 0, 23, ", with 0 for midnight"),
    Field::numbers("days of the month", 1, 31, ""),
    Field {
        names: &[
            "JANUARY",
            "FEBRUARY",
            "MARCH",
            "APRIL",
            "MAY",
            "JUNE",
            "JULY",
            "AUGUST",
            "SEPTEMBER",
            "OCTOBER",
            "NOVEMBER",
            "DECEMBER",
        ],
        ..Field::numbers("months", 1, 12, ", or JAN to DEC")
    },
    Field {
        names: &[
            "SUNDAY",
            "MONDAY",
            "TUESDAY",
            "WEDNESDAY",
            "THURSDAY",
            "FRIDAY",
            "SATURDAY",
        ],
        ..Field::numbers("days of the week", 0, 7, ", or SUN to SAT")
    },
];

impl Field {
    const fn numbers(called: &'static str, low: u16, high: u16, more: &'static str) -> Self {
        Self {
            called,
            low,
            high,
            more,
            names: &[],
        }
    }

    /// What to write instead of the first number or name in it that it does not know.
    fn remedy(&self, written: &str) -> Option<String> {
        let parts = written.split(',');
        // Steps, and which one of the month, are numbers of another kind.
        let plain = parts.map(|part| part.split(['/', '#']).next().unwrap_or(part));
        let mut words = plain.flat_map(|part| part.trim_start_matches('+').split('-'));
        words.find_map(|word| self.remedy_of_word(word))
    }

    fn remedy_of_word(&self, word: &str) -> Option<String> {
        let Self {
            called,
            low,
            high,
            more,
            names,
        } = self;
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let is_known = || {
            let number = word.parse::<u16>();
            number.is_ok_and(|number| (*low..=*high).contains(&number))
        };
        if is_number {
            return (!is_known()).then(|| format!("write {called} from {low} to {high}{more}"));
        }
        let word = word.to_ascii_uppercase();
        let meant = (names.iter()).find(|name| word.len() > 3 && name.starts_with(&word))?;
        Some(format!("write {}", meant.get(..3)?))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use crate::time::cron::Cron;

    #[rstest]
    #[case::midnight("0 24 * * *", "write hours from 0 to 23, with 0 for midnight")]
    #[case::end_of_a_range("0 9-24 * * *", "write hours from 0 to 23, with 0 for midnight")]
    #[case::minute("60 9 * * *", "write minutes from 0 to 59")]
    #[case::huge("99999999999999999999 9 * * *", "write minutes from 0 to 59")]
    #[case::of_month("0 9 0 * *", "write days of the month from 1 to 31")]
    #[case::in_a_list("0 9 1,32 * *", "write days of the month from 1 to 31")]
    #[case::month("0 9 1 13 *", "write months from 1 to 12, or JAN to DEC")]
    #[case::of_week("0 9 * * 8", "write days of the week from 0 to 7, or SUN to SAT")]
    #[case::monday("0 9 * * MONDAY", "write MON")]
    #[case::range_of_days("0 9 * * Monday-Friday", "write MON")]
    #[case::end_of_a_range_of_days("0 9 * * mon-thurs", "write THU")]
    #[case::third_saturday("0 9 * * Saturday#3", "write SAT")]
    #[case::june("0 9 1 june *", "write JUN")]
    #[case::sept("0 9 1 SEPT *", "write SEP")]
    #[case::nothing_known("a b c d e", "write five fields: minute, hour, ")]
    #[case::backwards("0 0 * * tue-mon", "write five fields: minute, hour, ")]
    #[case::too_few("* * *", "write five fields: minute, hour, ")]
    fn the_remedy_is_about_what_is_wrong(#[case] cron: &str, #[case] remedy: &str) {
        let told = Cron::parse(cron).unwrap_err().remedy;
        assert!(told.starts_with(remedy), "{told}");
    }
}
