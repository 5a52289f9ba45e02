//! What gatekeepers are judged from, in addition to spec and clock.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use super::metric;

/// What was observed for one gatekeeper. Code that carries it does not look into it: only the kind that
/// observed it knows its type. Every other kind treats it as if nothing had been observed.
///
/// Cheap to clone. The default is nothing: there is nothing to observe, or nothing was observed yet.
#[derive(Clone, Debug, Default)]
pub struct Evidence(Option<Arc<dyn Observed>>);

/// Anything that can be observed.
trait Observed: Any + fmt::Debug + Send + Sync {
    fn is_the_same(&self, other: &Evidence) -> bool;
}

impl<T: Any + fmt::Debug + PartialEq + Send + Sync> Observed for T {
    fn is_the_same(&self, other: &Evidence) -> bool {
        other.get() == Some(self)
    }
}

impl PartialEq for Evidence {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(another)) => Arc::ptr_eq(one, another) || one.is_the_same(other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

impl Evidence {
    /// What a kind has observed, in the type that the kind judges from.
    pub fn of<T: Any + fmt::Debug + PartialEq + Send + Sync>(observed: T) -> Self {
        Self(Some(Arc::new(observed)))
    }

    /// What was observed, if it is of that type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        let observed: &dyn Any = self.0.as_deref()?;
        observed.downcast_ref()
    }

    /// The same, shared.
    pub fn shared<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let observed: Arc<dyn Any + Send + Sync> = self.0.clone()?;
        observed.downcast().ok()
    }

    /// The value that a metric had when it was last asked for, while that counts at `at`; in the
    /// unit of its query.
    pub fn measured(&self, at: Timestamp) -> Option<f64> {
        self.get::<metric::Observed>()?.value(at)
    }

    /// The same, and when it was asked for.
    pub fn measured_at(&self, at: Timestamp) -> Option<(f64, Timestamp)> {
        self.get::<metric::Observed>()?.value_and_instant(at)
    }
}
