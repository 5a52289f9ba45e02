//! How bad input is refused: where it is, what is wrong, and what to write instead.

use std::fmt;

/// One mistake in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The path of the field, such as `spec.schedule.open[0].cron`.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead.
    pub remedy: String,
}

impl Refusal {
    /// A mistake at `field`.
    pub fn new(
        field: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.field, self.problem, self.remedy)
    }
}

/// All the mistakes of an object, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals(Vec<Refusal>);

impl Refusals {
    /// The value, if no mistake was found on the way to it.
    ///
    /// # Errors
    /// The mistakes, if there are any.
    pub fn unless_empty<T>(mistakes: Vec<Refusal>, value: T) -> Result<T, Self> {
        if mistakes.is_empty() {
            Ok(value)
        } else {
            Err(Self(mistakes))
        }
    }

    /// The mistakes, in the order in which the object was read.
    pub fn iter(&self) -> impl Iterator<Item = &Refusal> {
        self.0.iter()
    }

    /// The mistakes, to be added to those of the rest of the object.
    pub fn into_vec(self) -> Vec<Refusal> {
        self.0
    }
}

impl From<Refusal> for Refusals {
    fn from(refusal: Refusal) -> Self {
        Self(vec![refusal])
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, refusal) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str(". ")?;
            }
            write!(f, "{refusal}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusals {}
