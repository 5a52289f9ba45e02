//! How many connections each address has, so that no one of them takes all there are.
//!
//! Each whole address, of IPv6 too: the pods of a node share its first 64 bits with each other and
//! with the kubelet, whose probes must not pay for one of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// Everybody who is connected.
pub(super) struct Addresses {
    most: usize,
    connected: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection. Dropped, it makes room for another from there.
pub(super) struct Connected {
    addresses: Arc<Addresses>,
    address: IpAddr,
}

impl Addresses {
    /// Nobody yet, and `most` connections for each address.
    pub(super) fn new(most: usize) -> Arc<Self> {
        let connected = Mutex::default();
        Arc::new(Self { most, connected })
    }

    /// Another connection from an address. None: it has as many as it may.
    pub(super) fn connect(self: &Arc<Self>, address: IpAddr) -> Option<Connected> {
        // What listens for both kinds sees IPv4 as a part of IPv6.
        let address = address.to_canonical();
        let mut all = self.connected.lock();
        let count = all.entry(address).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        let addresses = Arc::clone(self);
        Some(Connected { addresses, address })
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let mut all = self.addresses.connected.lock();
        if let Some(count) = all.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_so_many_connections_and_is_forgotten_with_its_last() {
        let addresses = Addresses::new(2);
        let (one, other) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let first = addresses.connect(one);
        let second = addresses.connect(one);
        assert!(first.is_some() && second.is_some());
        assert!(addresses.connect(one).is_none());
        assert!(addresses.connect(other).is_some());
        drop(first);
        assert!(addresses.connect(one).is_some());
        drop(second);
        assert!(addresses.connected.lock().is_empty());
    }

    #[test]
    fn a_pod_takes_nothing_from_the_kubelet_of_its_node() {
        let addresses = Addresses::new(1);
        let connect = |text: &str| addresses.connect(text.parse().unwrap());
        let pod = connect("2001:db8:0:7::a");
        assert!(pod.is_some() && connect("2001:db8:0:7::a").is_none());
        assert!(connect("2001:db8:0:7::1").is_some());
        let mapped = connect("::ffff:192.0.2.1");
        assert!(mapped.is_some() && connect("192.0.2.1").is_none());
    }
}
