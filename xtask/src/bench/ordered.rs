//! Lengths of time, put in order.

/// Lengths of time in seconds, ascending.
pub(super) struct Ordered(Vec<f64>);

impl Ordered {
    pub(super) fn new(mut lengths: Vec<f64>) -> Self {
        lengths.sort_by(f64::total_cmp);
        Self(lengths)
    }

    /// How many they are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The length that this part of all stays below.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list of thousands"
    )]
    pub(super) fn at(&self, part: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let place = (part * last as f64).round() as usize;
        self.0.get(place).copied().unwrap_or(f64::NAN)
    }
}
