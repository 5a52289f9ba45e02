//! Requests to forges, by host, by protocol and by how they have ended; and how many a forge still allows.
//!
//! What comes in: each request, when it has ended. What goes out: counters, and a gauge. Hosts come from the specs of
//! users, so there are never more than [`MOST`] of them: a host that was not asked for [`KEPT`] is
//! forgotten, and one that comes while all places are taken is counted as [`OTHER`]. Who names many hosts
//! takes no place from those that are there.

use std::fmt::Error;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use sluice_forges::{Ended, Heard, Protocol};
use tokio::time::Instant;

/// How many hosts have counters of their own.
const MOST: usize = 50;
/// For how long they have them after the last request.
const KEPT: Duration = Duration::from_secs(3600);
/// The label of all hosts that have none.
const OTHER: &str = "other";

/// How many requests have ended in each way, in the order of [`Ended::ALL`], by each protocol, in the order of
/// [`Protocol::ALL`].
type Counts = [[u64; Ended::ALL.len()]; Protocol::ALL.len()];

/// The counters.
#[derive(Clone, Debug, Default)]
pub struct ForgeRequests(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    hosts: HashMap<String, Host>,
    others: Counts,
}

#[derive(Debug)]
struct Host {
    counts: Counts,
    /// What the last reply said that says it.
    remaining: Option<u64>,
    asked: Instant,
}

impl ForgeRequests {
    /// A request to a host has ended.
    pub fn note(&self, host: &str, heard: Heard, now: Instant) {
        let Heard {
            protocol,
            ended,
            remaining,
        } = heard;
        let mut known = self.0.lock();
        let counts = match known.host(host, now) {
            Some(host) => {
                host.asked = now;
                host.remaining = remaining.or(host.remaining);
                &mut host.counts
            }
            None => &mut known.others,
        };
        let protocol = Protocol::ALL.iter().position(|it| *it == protocol);
        let ended = Ended::ALL.iter().position(|it| *it == ended);
        let counts = protocol.and_then(|place| counts.get_mut(place));
        let count = counts
            .zip(ended)
            .and_then(|(all, place)| all.get_mut(place));
        if let Some(count) = count {
            *count += 1;
        }
    }

    /// All counts, by host, and how many requests each still allows. Those of [`OTHER`] are always there.
    fn counts(&self, now: Instant) -> Vec<(String, Counts, Option<u64>)> {
        let mut known = self.0.lock();
        known.forget(now);
        let hosts = known.hosts.iter();
        let hosts = hosts.map(|(name, host)| (name.clone(), host.counts, host.remaining));
        let others = (OTHER.to_owned(), known.others, None);
        hosts.chain([others]).collect()
    }
}

impl Known {
    /// None: it has no counters of its own.
    fn host(&mut self, name: &str, now: Instant) -> Option<&mut Host> {
        if !self.hosts.contains_key(name) {
            self.forget(now);
            if self.hosts.len() >= MOST || name == OTHER {
                return None;
            }
            let host = Host {
                counts: Counts::default(),
                remaining: None,
                asked: now,
            };
            self.hosts.insert(name.to_owned(), host);
        }
        self.hosts.get_mut(name)
    }

    fn forget(&mut self, now: Instant) {
        let is_kept = |host: &Host| now.saturating_duration_since(host.asked) < KEPT;
        self.hosts.retain(|_, host| is_kept(host));
    }
}

impl Collector for ForgeRequests {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut metric = encoder.encode_descriptor(
            "sluice_forge_requests",
            "Requests to forges",
            None,
            MetricType::Counter,
        )?;
        let all = self.counts(Instant::now());
        for (host, counts, _) in &all {
            for (protocol, counts) in Protocol::ALL.into_iter().zip(counts) {
                for (ended, count) in Ended::ALL.into_iter().zip(counts) {
                    let labels = [
                        ("host", host.as_str()),
                        ("protocol", protocol.as_str()),
                        ("outcome", ended.as_str()),
                    ];
                    ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
                }
            }
        }
        let mut metric = encoder.encode_descriptor(
            "sluice_forge_remaining",
            "How many requests a forge still allows, as it has said last",
            None,
            MetricType::Gauge,
        )?;
        for (host, _, remaining) in &all {
            if let Some(remaining) = remaining {
                let labels = [("host", host.as_str())];
                let remaining = ConstGauge::new(i64::try_from(*remaining).unwrap_or(i64::MAX));
                remaining.encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    /// What is counted of the API, by host.
    fn hosts(requests: &ForgeRequests, now: Instant) -> Vec<(String, [u64; 5])> {
        let all = requests.counts(now).into_iter();
        let mut all: Vec<_> = all.map(|(host, counts, _)| (host, counts[0])).collect();
        all.sort();
        all
    }

    fn heard(ended: Ended) -> Heard {
        Heard {
            protocol: Protocol::Api,
            ended,
            remaining: None,
        }
    }

    #[test]
    fn requests_are_counted_by_host_and_outcome() {
        let requests = ForgeRequests::default();
        let now = Instant::now();
        for ended in [Ended::Answered, Ended::Answered, Ended::Failed] {
            requests.note("git.example.com:3000", heard(ended), now);
        }
        for remaining in [Some(4_999), None] {
            let heard = Heard {
                protocol: Protocol::Git,
                ended: Ended::Denied,
                remaining,
            };
            requests.note("git.example.com:3000", heard, now);
        }
        let mut registry = Registry::default();
        registry.register_collector(Box::new(requests));
        let mut page = String::new();
        encode(&mut page, &registry).unwrap();
        for (host, protocol, outcome, count) in [
            ("git.example.com:3000", "api", "answered", 2),
            ("git.example.com:3000", "api", "failed", 1),
            ("git.example.com:3000", "api", "unanswered", 0),
            ("git.example.com:3000", "git", "denied", 2),
            ("git.example.com:3000", "git", "answered", 0),
            ("other", "git", "answered", 0),
        ] {
            let of = format!("host=\"{host}\",protocol=\"{protocol}\",outcome=\"{outcome}\"");
            let line = format!("sluice_forge_requests_total{{{of}}} {count}\n");
            assert!(page.contains(&line), "{line}{page}");
        }
        let remaining: Vec<_> = page
            .lines()
            .filter(|it| it.starts_with("sluice_forge_remaining{"))
            .collect();
        assert_eq!(
            remaining,
            ["sluice_forge_remaining{host=\"git.example.com:3000\"} 4999"]
        );
    }

    /// Users write as many hosts as they like.
    #[test]
    fn there_are_never_more_hosts_than_places_and_the_first_keep_theirs() {
        let requests = ForgeRequests::default();
        let start = Instant::now();
        requests.note("git.example.com", heard(Ended::Answered), start);
        // Not one of two series with the same labels.
        requests.note(OTHER, heard(Ended::Unanswered), start);
        for n in 0..1_000 {
            let host = format!("{n}.evil.example.com");
            requests.note(&host, heard(Ended::Unanswered), start);
        }
        let all = hosts(&requests, start);
        assert_eq!(all.len(), MOST + 1);
        let of = |name: &str| all.iter().find(|(host, _)| host == name).unwrap().1;
        assert_eq!(of("git.example.com"), [1, 0, 0, 0, 0]);
        assert_eq!(of(OTHER), [0, 0, 0, 0, 952]);

        // One is asked again; the others have made room when their time is over.
        let later = start + KEPT - Duration::from_secs(1);
        requests.note("git.example.com", heard(Ended::Denied), later);
        let over = start + KEPT;
        requests.note("git.example.org", heard(Ended::Limited), over);
        let expected = [
            ("git.example.com", [1, 1, 0, 0, 0]),
            ("git.example.org", [0, 0, 1, 0, 0]),
            (OTHER, [0, 0, 0, 0, 952]),
        ];
        let expected = expected.map(|(host, counts)| (host.to_owned(), counts));
        assert_eq!(hosts(&requests, over), expected);
    }
}
