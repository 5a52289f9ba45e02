//! How long looks at objects took: one histogram for each object, by Flux's name, labels and
//! buckets.
//!
//! There is one for each object. So each is a few numbers, and a page is written from a copy: a client
//! that reads it slowly delays nobody.

use std::fmt::Error;
use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::cluster::key::Work;

/// The upper bounds of the buckets, in seconds.
const BOUNDS: [f64; 5] = [0.01, 0.1, 1.0, 10.0, 60.0];

/// The histograms.
#[derive(Clone, Debug, Default)]
pub struct Durations(Arc<Mutex<HashMap<Work, Histogram>>>);

#[derive(Clone, Copy, Debug, Default)]
struct Histogram {
    sum: f64,
    /// How many fell into each bucket, and beyond the last bound.
    counts: [u32; BOUNDS.len() + 1],
}

impl Durations {
    /// A look at `work` took so many seconds.
    pub fn observe(&self, work: &Work, seconds: f64) {
        let mut all = self.0.lock();
        let histogram = match all.get_mut(work) {
            Some(histogram) => histogram,
            None => all.entry(work.clone()).or_default(),
        };
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound);
        let count = &mut histogram.counts[bucket.unwrap_or(BOUNDS.len())];
        *count = count.saturating_add(1);
        histogram.sum += seconds;
    }

    /// The object is gone.
    pub fn forget(&self, work: &Work) {
        self.0.lock().remove(work);
    }
}

impl Collector for Durations {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let all: Vec<(Work, Histogram)> = {
            let all = self.0.lock();
            all.iter().map(|(work, is)| (work.clone(), *is)).collect()
        };
        let mut metric = encoder.encode_descriptor(
            "gotk_reconcile_duration_seconds",
            "How long a look at an object took",
            None,
            MetricType::Histogram,
        )?;
        let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
        for (work, Histogram { sum, counts }) in all {
            let counts = counts.map(u64::from);
            let mut buckets = [(0.0, 0); BOUNDS.len() + 1];
            for (bucket, is) in buckets.iter_mut().zip(bounds.clone().zip(counts)) {
                *bucket = is;
            }
            let key = &work.key;
            let labels = [
                ("kind", work.kind.as_str()),
                ("name", &*key.name),
                ("namespace", &*key.namespace),
            ];
            metric
                .encode_family(&labels)?
                .encode_histogram::<NoLabelSet>(sum, counts.iter().sum(), &buckets, None)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::cluster::key::KeyRef;
    use crate::cluster::kind::Kind;

    #[test]
    fn looks_are_counted_by_object_until_it_is_gone() {
        let work = |name: &str| {
            let namespace = "n";
            Work::own(Kind::Gate, KeyRef { namespace, name }.into())
        };
        let durations = Durations::default();
        let mut registry = Registry::default();
        registry.register_collector(Box::new(durations.clone()));
        for seconds in [0.005, 0.5, 0.5, 70.0] {
            durations.observe(&work("a"), seconds);
        }
        durations.observe(&work("gone"), 1.0);
        durations.forget(&work("gone"));
        let mut page = String::new();
        encode(&mut page, &registry).unwrap();
        let labels = r#"kind="Gate",name="a",namespace="n""#;
        let name = "gotk_reconcile_duration_seconds";
        let counts = [
            ("0.01", 1),
            ("0.1", 1),
            ("1.0", 3),
            ("10.0", 3),
            ("60.0", 3),
            ("+Inf", 4),
        ];
        for (bound, count) in counts {
            let line = format!("{name}_bucket{{le=\"{bound}\",{labels}}} {count}\n");
            assert!(page.contains(&line), "{line}{page}");
        }
        assert!(
            page.contains(&format!("{name}_count{{{labels}}} 4\n")),
            "{page}"
        );
        assert!(
            page.contains(&format!("{name}_sum{{{labels}}} 71.005\n")),
            "{page}"
        );
        assert!(!page.contains("gone"), "{page}");
    }
}
