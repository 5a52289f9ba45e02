//! What may be asked at all, where the operator lists it: the entries of the flag `--egress-only`.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// What to write for one.
const REMEDY: &str = "write a host such as prometheus.monitoring.svc, a host and all below it such \
                      as *.example.com, or a network such as 10.0.0.0/8";

/// Something that may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The addresses of a network, whichever name they have.
    Network(IpNet),
    /// A host, by the name that gatekeepers write.
    Host(String),
    /// All hosts below a name: `.example.com`.
    Below(String),
}

impl Destination {
    /// Whether `host` is listed, or one of the `forms` of its address.
    pub(crate) fn holds(&self, host: &str, forms: &[IpAddr]) -> bool {
        let host = host.trim_end_matches('.');
        match self {
            Self::Network(network) => forms.iter().any(|form| network.contains(form)),
            Self::Host(name) => host.eq_ignore_ascii_case(name),
            Self::Below(suffix) => {
                let from = host.len().checked_sub(suffix.len());
                let end = from
                    .filter(|from| *from > 0)
                    .and_then(|from| host.get(from..));
                end.is_some_and(|end| end.eq_ignore_ascii_case(suffix))
            }
        }
    }
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(network) = text.parse() {
            return Ok(Self::Network(network));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Network(address.into()));
        }
        let (name, below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        if name.len() > 253 || !name.split('.').all(is_label) || !names_a_host(name) {
            return Err(format!("`{text}` is not a host or a network; {REMEDY}"));
        }
        Ok(match below {
            true => Self::Below(format!(".{name}")),
            false => Self::Host(name.to_owned()),
        })
    }
}

/// What ends with a number is an address that is written in an unusual way (WHATWG).
fn names_a_host(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    !last.starts_with(|c: char| c.is_ascii_digit())
}

fn is_label(label: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=63).contains(&label.len())
        && label.chars().all(allowed)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn holds(listed: &str, host: &str, address: &str) -> bool {
        let listed: Destination = listed.parse().unwrap();
        listed.holds(host, &[address.parse().unwrap()])
    }

    #[rstest]
    #[case("prometheus.monitoring.svc", "prometheus.monitoring.svc", true)]
    #[case("prometheus.monitoring.svc", "Prometheus.Monitoring.SVC.", true)]
    #[case("prometheus.monitoring.svc", "prometheus.monitoring", false)]
    #[case("prometheus.monitoring.svc", "a.prometheus.monitoring.svc", false)]
    #[case("*.example.com", "status.example.com", true)]
    #[case("*.example.com", "a.b.example.com", true)]
    #[case("*.example.com", "example.com", false)]
    #[case("*.example.com", ".example.com", false)]
    #[case("*.example.com", "badexample.com", false)]
    #[case("*.example.com", "status.example.com.evil.test", false)]
    #[case("10.0.0.0/8", "whatever.test", true)]
    #[case("10.1.2.3", "10.1.2.3", true)]
    #[case("10.1.2.4", "10.1.2.3", false)]
    #[case("2001:db8::/32", "whatever.test", false)]
    fn a_destination_is_a_name_or_a_network(
        #[case] listed: &str,
        #[case] host: &str,
        #[case] held: bool,
    ) {
        assert_eq!(holds(listed, host, "10.1.2.3"), held);
    }

    #[rstest]
    #[case("")]
    #[case("*")]
    #[case("*.")]
    #[case("a..b")]
    #[case("https://example.com")]
    #[case("example.com:443")]
    #[case("*.*.example.com")]
    #[case("status.*.com")]
    #[case("10.0.0.0/33")]
    #[case("10.0.0.256")]
    #[case("0x7f.1")]
    fn what_is_neither_is_refused(#[case] text: &str) {
        let why = text.parse::<Destination>().unwrap_err();
        assert!(why.contains("write a host such as"), "{why}");
    }
}
