//! Which addresses nobody is led to: a pure rule.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::destination::Destination;

/// What is allowed, and what is refused in addition to the fixed [`Class`]es.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Ranges that are allowed even where they contain refused addresses: the flag `--egress-allow`.
    pub allow: Vec<IpNet>,
    /// The only destinations that may be asked: the flag `--egress-only`. Empty: everything that is not
    /// refused.
    pub only: Vec<Destination>,
    /// The hosts of the API server, as names or addresses, without ports.
    pub api_server: Vec<String>,
}

/// The kinds of addresses that are refused.
///
/// Private addresses are not among them: calendars, metrics and Git servers within the cluster or the
/// company are there to be read, and [`Rules::only`] is for operators who want to list them. Neither are
/// the ranges for documentation, which lead nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// This very machine (RFC 1122, RFC 4291).
    Loopback,
    /// `0.0.0.0/8` and `::`, which many systems take for this very machine (RFC 1122).
    Unspecified,
    /// The link-local network of this machine, and with it most clouds' metadata (RFC 3927, RFC 4291).
    LinkLocal,
    /// Clouds' metadata elsewhere.
    Metadata,
    /// `64:ff9b:1::/48`: an IPv4 address in a place that only this network knows (RFC 8215).
    Translated,
    /// Multicast (RFC 5771, RFC 4291).
    Multicast,
    /// Broadcast (RFC 919).
    Broadcast,
    /// The API server of this cluster.
    ApiServer,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Loopback => "a loopback address",
            Class::Unspecified => "an unspecified address",
            Class::LinkLocal => "a link-local address",
            Class::Metadata => "a cloud's metadata address",
            Class::Translated => "a locally translated IPv4 address",
            Class::Multicast => "a multicast address",
            Class::Broadcast => "the broadcast address",
            Class::ApiServer => "the API server's own address",
        })
    }
}

impl Rules {
    /// Why `address` is refused, if it is. `api_server` are the addresses of the API server.
    pub fn refuse(&self, address: IpAddr, api_server: &[IpAddr]) -> Option<Class> {
        let forms = forms(address);
        if self
            .allow
            .iter()
            .any(|range| forms.iter().any(|form| range.contains(form)))
        {
            return None;
        }
        if let Some(class) = forms.iter().find_map(|form| class(*form)) {
            return Some(class);
        }
        let same = |own: &IpAddr| self::forms(*own).iter().any(|form| forms.contains(form));
        api_server.iter().any(same).then_some(Class::ApiServer)
    }

    /// Whether `address`, which is one of `host`, is among what may be asked at all.
    pub fn lists(&self, host: &str, address: IpAddr) -> bool {
        let forms = forms(address);
        let mut only = self.only.iter();
        self.only.is_empty() || only.any(|listed| listed.holds(host, &forms))
    }
}

fn class(address: IpAddr) -> Option<Class> {
    match address {
        IpAddr::V4(address) => class_v4(address),
        IpAddr::V6(address) => class_v6(address),
    }
}

fn class_v4(address: Ipv4Addr) -> Option<Class> {
    match address.octets() {
        [127, ..] => Some(Class::Loopback),
        [0, ..] => Some(Class::Unspecified),
        [169, 254, ..] => Some(Class::LinkLocal),
        // Alibaba, Oracle, Azure, in this order.
        [100, 100, 100, 200] | [192, 0, 0, 192] | [168, 63, 129, 16] => Some(Class::Metadata),
        [224..=239, ..] => Some(Class::Multicast),
        [255, 255, 255, 255] => Some(Class::Broadcast),
        _ => None,
    }
}

fn class_v6(address: Ipv6Addr) -> Option<Class> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(Class::Loopback),
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(Class::Unspecified),
        [0xfe80..=0xfebf, ..] => Some(Class::LinkLocal),
        // Amazon (metadata, credentials of pods), Oracle, Google.
        [0xfd00, 0x0ec2 | 0x00c1, ..] | [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x254] => {
            Some(Class::Metadata)
        }
        [0x0064, 0xff9b, 0x0001, ..] => Some(Class::Translated),
        [0xff00..=0xffff, ..] => Some(Class::Multicast),
        _ => None,
    }
}

/// The address, and the IPv4 address that it leads to if it is an IPv6 form of one: mapped or compatible
/// (RFC 4291), translated (RFC 2765), through NAT64 (RFC 6052), 6to4 (RFC 3056) or ISATAP (RFC 5214).
fn forms(address: IpAddr) -> Vec<IpAddr> {
    let inner = match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => match address.segments() {
            [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
            [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
            | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
            | [0, 0, 0, 0, 0xffff, 0, high, low]
            | [_, _, _, _, 0 | 0x0200, 0x5efe, high, low]
            | [0x2002, high, low, ..] => Some(v4(high, low)),
            _ => None,
        },
    };
    [Some(address), inner.map(IpAddr::V4)]
        .into_iter()
        .flatten()
        .collect()
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("127.0.0.1", Some(Class::Loopback))]
    #[case("127.255.255.254", Some(Class::Loopback))]
    #[case("::1", Some(Class::Loopback))]
    #[case("::ffff:127.0.0.1", Some(Class::Loopback))]
    #[case("::127.0.0.1", Some(Class::Loopback))]
    #[case("0.0.0.0", Some(Class::Unspecified))]
    #[case("0.1.2.3", Some(Class::Unspecified))]
    #[case("::", Some(Class::Unspecified))]
    #[case("::ffff:0.0.0.0", Some(Class::Unspecified))]
    #[case("169.254.169.254", Some(Class::LinkLocal))]
    #[case("169.254.170.2", Some(Class::LinkLocal))]
    #[case("fe80::1", Some(Class::LinkLocal))]
    #[case("febf::1", Some(Class::LinkLocal))]
    #[case("::ffff:169.254.169.254", Some(Class::LinkLocal))]
    #[case("64:ff9b::169.254.169.254", Some(Class::LinkLocal))]
    #[case("2002:a9fe:a9fe::1", Some(Class::LinkLocal))]
    #[case("100.100.100.200", Some(Class::Metadata))]
    #[case("192.0.0.192", Some(Class::Metadata))]
    #[case("168.63.129.16", Some(Class::Metadata))]
    #[case("fd00:ec2::254", Some(Class::Metadata))]
    #[case("fd00:ec2::23", Some(Class::Metadata))]
    #[case("fd20:ce::254", Some(Class::Metadata))]
    #[case("fd00:c1::a9fe:a9fe", Some(Class::Metadata))]
    #[case("64:ff9b:1::1", Some(Class::Translated))]
    #[case("64:ff9b:1:a9fe:a9:fe00::", Some(Class::Translated))]
    #[case("64:ff9b:1:ffff::a9fe:a9fe", Some(Class::Translated))]
    #[case("224.0.0.1", Some(Class::Multicast))]
    #[case("239.255.255.255", Some(Class::Multicast))]
    #[case("ff02::1", Some(Class::Multicast))]
    #[case("255.255.255.255", Some(Class::Broadcast))]
    #[case("10.96.0.1", Some(Class::ApiServer))]
    #[case("::ffff:10.96.0.1", Some(Class::ApiServer))]
    #[case("2001:db8::6443", Some(Class::ApiServer))]
    #[case("10.96.0.2", None)]
    #[case("192.168.1.10", None)]
    #[case("172.16.0.1", None)]
    #[case("93.184.216.34", None)]
    #[case("::ffff:93.184.216.34", None)]
    #[case("2606:2800:220:1::1", None)]
    #[case("fd12:3456::1", None)]
    #[case("64:ff9b:2::1", None)]
    #[case("fec0::1", None)]
    #[case("203.0.113.7", None)]
    fn addresses_are_refused_by_class(#[case] address: &str, #[case] class: Option<Class>) {
        let api_server = [
            "10.96.0.1".parse().unwrap(),
            "2001:db8::6443".parse().unwrap(),
        ];
        let refused = Rules::default().refuse(address.parse().unwrap(), &api_server);
        assert_eq!(refused, class, "{address}");
    }

    #[rstest]
    #[case("127.0.0.0/8", "127.0.0.1")]
    #[case("127.0.0.0/8", "::ffff:127.0.0.1")]
    #[case("169.254.169.254/32", "169.254.169.254")]
    #[case("fe80::/10", "fe80::1")]
    #[case("10.96.0.1/32", "10.96.0.1")]
    fn what_is_allowed_is_open(#[case] range: &str, #[case] address: &str) {
        let rules = Rules {
            allow: vec![range.parse().unwrap()],
            ..Rules::default()
        };
        let own = ["10.96.0.1".parse().unwrap()];
        assert_eq!(rules.refuse(address.parse().unwrap(), &own), None);
    }

    #[test]
    fn what_is_allowed_opens_nothing_else() {
        let rules = Rules {
            allow: vec!["127.0.0.1/32".parse().unwrap()],
            ..Rules::default()
        };
        let refused = rules.refuse("127.0.0.2".parse().unwrap(), &[]);
        assert_eq!(refused, Some(Class::Loopback));
    }
}
