//! One gauge, and a family of them: how they are written.

use std::fmt::Error;

use jiff::Timestamp;
use kube::Resource;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

/// One gauge of a family.
pub(super) struct Sample<'a> {
    pub(super) labels: Vec<(&'static str, &'a str)>,
    pub(super) value: f64,
}

impl<'a> Sample<'a> {
    /// Of an object; of one that is in no namespace, without a label for it.
    pub(super) fn of<K: Resource>(object: &'a K, value: f64) -> Self {
        let (namespace, name) = name(object);
        let namespace = Some(("namespace", namespace)).filter(|label| !label.1.is_empty());
        Self {
            labels: namespace.into_iter().chain([("name", name)]).collect(),
            value,
        }
    }

    /// With another label.
    pub(super) fn with(mut self, label: &'static str, value: &'a str) -> Self {
        self.labels.push((label, value));
        self
    }
}

pub(super) fn name<K: Resource>(object: &K) -> (&str, &str) {
    let metadata = object.meta();
    (
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

/// Writes a family of gauges.
pub(super) fn family<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    samples: impl Iterator<Item = Sample<'a>>,
) -> Result<(), Error> {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for Sample { labels, value } in samples {
        ConstGauge::new(value).encode(metric.encode_family(&labels.as_slice())?)?;
    }
    Ok(())
}

/// 1 or 0.
pub(super) fn truth(is: bool) -> f64 {
    f64::from(u8::from(is))
}

/// Seconds since the epoch.
#[allow(
    clippy::cast_precision_loss,
    reason = "an instant in seconds is far below 2^53"
)]
pub(super) fn seconds(at: Timestamp) -> f64 {
    at.as_second() as f64
}

#[cfg(test)]
pub(super) mod tests {
    use std::fmt;

    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    struct Page<W>(W);

    impl<W> fmt::Debug for Page<W> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Page")
        }
    }

    impl<W> Collector for Page<W>
    where
        W: Fn(&mut DescriptorEncoder<'_>) -> Result<(), Error> + Send + Sync + 'static,
    {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
            (self.0)(&mut encoder)
        }
    }

    /// What a page that `write` writes says of a metric: its samples, without its name.
    pub(in crate::tell::metrics) fn page(
        metric: &str,
        write: impl Fn(&mut DescriptorEncoder<'_>) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Vec<String> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Page(write)));
        let mut page = String::new();
        encode(&mut page, &registry).unwrap();
        let samples = page.lines().filter_map(|line| line.strip_prefix(metric));
        let own = samples.filter(|sample| sample.starts_with('{'));
        own.map(str::to_owned).collect()
    }
}
