//! The flags: Flux's where Flux has them, with Flux's defaults.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use ipnet::IpNet;

use crate::tell::audit::Destination;

/// Decides when changes may go out.
#[derive(Clone, Debug, Parser)]
#[command(name = "gate-controller", version)]
pub struct Settings {
    /// The address at which metrics are served.
    #[arg(long, default_value = ":8080", value_name = "ADDRESS")]
    pub metrics_addr: Address,

    /// The address at which health and readiness are served.
    #[arg(long, default_value = ":9440", value_name = "ADDRESS")]
    pub health_addr: Address,

    /// The address at which the controller answers programs that ask: `POST /v1/check`, and `POST
    /// /gate/check` for Flagger. By default it does not answer them.
    #[arg(long, default_value = "0", value_name = "ADDRESS")]
    pub check_addr: Address,

    /// The certificate for --check-addr, in PEM, followed by the certificates of its issuers. The
    /// certificate and its key are read again when they change.
    #[arg(long, value_name = "FILE", requires = "tls_key_file")]
    pub tls_cert_file: Option<PathBuf>,

    /// The key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub tls_key_file: Option<PathBuf>,

    /// Serve --check-addr without TLS, although other machines can reach it. Use this only if something
    /// in front of it encrypts: tokens arrive in plain text.
    #[arg(long, default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub check_insecure: bool,

    /// An audience for which the tokens of those who ask may be issued. May be given several times.
    /// Without it, tokens have to be issued for the API server.
    #[arg(long, value_name = "AUDIENCE")]
    pub check_audience: Vec<String>,

    /// How many gates per second each user may ask about.
    #[arg(long, default_value_t = 100, value_name = "GATES", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub check_rate: u32,

    /// How many gates each user may ask about at once, after a pause.
    #[arg(long, default_value_t = 500, value_name = "GATES", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub check_burst: u32,

    /// Answer `POST /gate/check` also without a token: whether the gates named are open, and why in one
    /// word. Flagger can send a token only in the URL of a webhook.
    #[arg(long, default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub flagger_without_token: bool,

    /// The address at which webhooks of forges are taken: `POST /hooks/NAMESPACE/NAME` of a
    /// GitRepositoryAccess. Without TLS: something in front of it has to encrypt. By default none are taken.
    #[arg(long, default_value = "0", value_name = "ADDRESS")]
    pub webhook_addr: Address,

    /// Keep copies of artifacts in this folder, and serve them. Gated sources with the strategy
    /// `artifact` need it. The folder has to be on a volume of its own. By default no copies are kept.
    #[arg(long, value_name = "FOLDER")]
    pub storage_path: Option<PathBuf>,

    /// How many bytes of copies the gated sources of one namespace may have, such as 500Mi or 2Gi. An
    /// artifact that would exceed this is not stored, and does not go out. 0 means no limit.
    #[arg(long, default_value = "2Gi", value_name = "SIZE", value_parser = size)]
    pub storage_namespace_quota: u64,

    /// The address at which artifacts are served, while this replica leads.
    #[arg(long, default_value = ":9790", value_name = "ADDRESS")]
    pub storage_addr: Address,

    /// The address at which others reach the artifacts: a host, and a port unless it is 80. By default
    /// it is the Service `gate-controller-artifacts` in this namespace, or the address of
    /// --storage-addr if only this machine can reach that one.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = authority)]
    pub storage_adv_addr: Option<String>,

    /// Keep an audit log: one line of JSON for each decision, each change of the state of a gate, each
    /// force, and each change of the spec of a gate or gatekeeper. Write a file, or - for standard
    /// output. The file is opened again when it has been moved away.
    #[arg(long, value_name = "PATH|-")]
    pub audit_log: Option<Destination>,

    /// Let nothing pass that cannot be recorded: while the audit log cannot be written, every answer is
    /// no.
    #[arg(long, requires = "audit_log", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub audit_required: bool,

    /// The address at which Flux's notification-controller accepts events, such as
    /// `http://notification-controller.flux-system.svc.cluster.local./`. Each Kubernetes event that the
    /// controller writes is then also sent there, and so are promotions by notification. By default
    /// nothing is sent.
    #[arg(long, default_value = "", value_name = "URL")]
    pub events_addr: EventsAddress,

    /// How many objects are reconciled at once, and a quarter more if people wait for them. With a
    /// higher number the API server writes no faster, and each write takes longer. If the writes of one
    /// kind of object hang, other kinds do not have to wait.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub concurrent: u16,

    /// Whether to log as JSON, or as lines for people.
    #[arg(long, value_enum, default_value_t)]
    pub log_encoding: LogEncoding,

    /// The least important message that is logged.
    #[arg(long, value_enum, default_value_t)]
    pub log_level: LogLevel,

    /// Watch objects in all namespaces. If false, only in the namespace of this controller.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub watch_all_namespaces: bool,

    /// Write only to objects with these labels, which makes one shard, such as
    /// `sharding.fluxcd.io/key=shard1`. All objects are still read.
    #[arg(long, value_name = "SELECTOR")]
    pub watch_label_selector: Option<String>,

    /// Look only at objects of these kinds, such as `PullRequest`. Other processes have to look at the
    /// others. All objects are still read. Without it, all kinds.
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    pub kinds: Vec<String>,

    /// Refuse references to gatekeepers and gates in another namespace: they count as closed, and their
    /// messages are not shown there. Gates that a GatePolicy names still count.
    #[arg(long, default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub no_cross_namespace_refs: bool,

    /// Write only while this replica holds a Lease, so that several replicas may run.
    #[arg(long, default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub enable_leader_election: bool,

    /// How long other replicas wait for a leader that no longer renews its Lease.
    #[arg(long, default_value = "35s", value_parser = duration)]
    pub leader_election_lease_duration: Duration,

    /// How long a leader tries to renew its Lease before it stops writing.
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub leader_election_renew_deadline: Duration,

    /// How long a replica waits between two tries to get or renew the Lease.
    #[arg(long, default_value = "5s", value_parser = duration)]
    pub leader_election_retry_period: Duration,

    /// The first delay after a failure.
    #[arg(long, default_value = "750ms", value_parser = duration)]
    pub min_retry_delay: Duration,

    /// The longest delay after repeated failures.
    #[arg(long, default_value = "15m", value_parser = duration)]
    pub max_retry_delay: Duration,

    /// An address range that is refused by default (loopback, link-local, the API server's own), but in
    /// which calendars, metrics and HTTP checks may be read. May be given several times.
    #[arg(long, value_name = "CIDR")]
    pub egress_allow: Vec<IpNet>,

    /// The only addresses at which evidence and artifacts may be read: a host such as
    /// `prometheus.monitoring.svc`, all hosts below a name such as `*.example.com`, or a network. May
    /// be given several times. Without it, all addresses that are not refused.
    #[arg(long, value_name = "HOST|CIDR")]
    pub egress_only: Vec<sluice_egress::Destination>,

    /// Let forces, approvals and reports count, even if no admission policy verifies who wrote them.
    #[arg(long, default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub trust_unverified_identity: bool,

    /// Keep the caches full and never lead.
    #[arg(long, hide = true)]
    pub standby: bool,

    /// Compare the clock with the one of the API server. Turn it off if the clock is set by hand, as in
    /// tests.
    #[arg(long, hide = true, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub compare_clocks: bool,

    /// The namespace this controller runs in.
    #[arg(
        long,
        env = "RUNTIME_NAMESPACE",
        default_value = "sluice-system",
        hide = true
    )]
    pub runtime_namespace: String,

    /// The name of this replica.
    #[arg(long, env = "POD_NAME", default_value = "gate-controller", hide = true)]
    pub pod_name: String,
}

/// How messages are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogEncoding {
    /// One JSON object a line.
    #[default]
    Json,
    /// One line for people.
    Console,
}

/// How important a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Every step.
    Trace,
    /// Details for finding the cause of a problem.
    Debug,
    /// What happens.
    #[default]
    Info,
    /// What goes wrong.
    Error,
}

/// An address to listen at. As in Go, `:8080` means that port on every interface. `0` means
/// nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub Option<std::net::SocketAddr>);

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "0" || text.is_empty() {
            return Ok(Self(None));
        }
        let full = if text.starts_with(':') {
            format!("0.0.0.0{text}")
        } else {
            text.to_owned()
        };
        let address = full.parse().map_err(|_| {
            format!("`{text}` is not an address; write one such as :8080 or 127.0.0.1:8080, or 0 for none")
        })?;
        Ok(Self(Some(address)))
    }
}

/// A host, with or without a port: the part of a URL before its path.
fn authority(text: &str) -> Result<String, String> {
    match text.parse::<http::uri::Authority>() {
        Ok(authority) if !text.contains('@') && !authority.host().is_empty() => Ok(text.to_owned()),
        Ok(_) | Err(_) => Err(format!(
            "`{text}` is not a host; write one such as artifacts.example.com or 10.0.0.1:9790"
        )),
    }
}

/// The URL to which events are sent, in addition to the API server. Empty means that they are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventsAddress(pub Option<reqwest::Url>);

impl std::str::FromStr for EventsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        let url = reqwest::Url::parse(text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        match url {
            Some(url) => Ok(Self(Some(url))),
            None => Err(format!(
                "`{text}` is not an http or https address; write one such as http://notification-controller.flux-system.svc.cluster.local./"
            )),
        }
    }
}

/// So many bytes, as Kubernetes writes them.
fn size(text: &str) -> Result<u64, String> {
    let units = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40)];
    let unit = units
        .iter()
        .find_map(|(unit, power)| Some((text.strip_suffix(unit)?, *power)));
    let (number, power) = unit.unwrap_or((text, 0));
    let number = number.parse::<u64>().ok();
    let bytes = number.and_then(|number| number.checked_mul(1 << power));
    bytes.ok_or_else(|| format!("`{text}` is not a size; write one such as 500Mi or 2Gi"))
}

fn duration(text: &str) -> Result<Duration, String> {
    let length = sluice_core::time::duration::parse(&text.into())
        .map_err(|problem| format!("{problem}; {}", sluice_core::time::duration::REMEDY))?;
    Duration::try_from(length).map_err(|_| format!("`{text}` is negative"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_written_as_flux_writes_them() {
        let settings = Settings::try_parse_from([
            "gate-controller",
            "--metrics-addr=127.0.0.1:0",
            "--health-addr=0",
            "--watch-all-namespaces=false",
            "--enable-leader-election",
            "--min-retry-delay=1s",
            "--egress-allow=127.0.0.0/8",
            "--egress-only=*.example.com",
            "--egress-only=10.0.0.0/8",
        ])
        .unwrap();
        assert_eq!(
            settings.metrics_addr.0,
            Some("127.0.0.1:0".parse().unwrap())
        );
        assert_eq!(settings.health_addr.0, None);
        assert!(!settings.watch_all_namespaces && settings.enable_leader_election);
        assert_eq!(settings.min_retry_delay, Duration::from_secs(1));
        assert_eq!(settings.egress_allow.len(), 1);
        assert_eq!(settings.egress_only.len(), 2);
        let refused = ["gate-controller", "--egress-only=https://example.com"];
        assert!(Settings::try_parse_from(refused).is_err());
    }

    #[test]
    fn a_certificate_needs_its_key_and_a_rate_is_above_zero() {
        let parse = |flags: &[&str]| {
            Settings::try_parse_from([&["gate-controller"], flags].concat())
                .map_err(|error| error.to_string())
        };
        let plain = parse(&[]).unwrap();
        assert_eq!((plain.check_addr.0, plain.webhook_addr.0), (None, None));
        assert!(!plain.check_insecure && !plain.flagger_without_token);
        let pair = ["--tls-cert-file=tls.crt", "--tls-key-file=tls.key"];
        parse(&pair).unwrap();
        for half in pair {
            assert!(parse(&[half]).unwrap_err().contains("--tls-"), "{half}");
        }
        assert!(parse(&["--check-rate=0"]).is_err());
    }

    #[test]
    fn artifacts_are_stored_where_a_folder_is_named() {
        let parse = |flags: &[&str]| {
            Settings::try_parse_from([&["gate-controller"], flags].concat())
                .map_err(|error| error.to_string())
        };
        assert_eq!(parse(&[]).unwrap().storage_path, None);
        let flags = [
            "--storage-path=/data",
            "--storage-adv-addr=artifacts.apps.svc:8080",
        ];
        let settings = parse(&flags).unwrap();
        assert_eq!(settings.storage_path, Some("/data".into()));
        assert_eq!(
            settings.storage_adv_addr.as_deref(),
            Some("artifacts.apps.svc:8080")
        );
        let quota = |flag: &str| parse(&[flag]).map(|settings| settings.storage_namespace_quota);
        assert_eq!(parse(&[]).unwrap().storage_namespace_quota, 2 << 30);
        assert_eq!(quota("--storage-namespace-quota=500Mi"), Ok(500 << 20));
        assert_eq!(quota("--storage-namespace-quota=0"), Ok(0));
        for no_size in ["1GB", "Gi", "-1", "1.5Gi", "99999999999Ti"] {
            let refused = quota(&format!("--storage-namespace-quota={no_size}")).unwrap_err();
            assert!(refused.contains("such as 500Mi or 2Gi"), "{refused}");
        }
        for no_host in [
            "http://artifacts",
            "artifacts/path",
            "me@artifacts",
            ":80",
            "",
        ] {
            let refused = parse(&[&format!("--storage-adv-addr={no_host}")]).unwrap_err();
            assert!(
                refused.contains("is not a host") || no_host.is_empty(),
                "{refused}"
            );
        }
    }

    #[test]
    fn events_are_sent_to_an_address_or_nowhere() {
        let parse = |text: &str| text.parse::<EventsAddress>().map(|address| address.0);
        assert_eq!(parse(""), Ok(None));
        let flux = "http://notification-controller.flux-system.svc.cluster.local./";
        assert_eq!(parse(flux).unwrap().unwrap().as_str(), flux);
        for wrong in [
            ":9090",
            "notification-controller:80",
            "ftp://events",
            "http://",
        ] {
            let why = parse(wrong).unwrap_err();
            assert!(why.contains("http://notification-controller"), "{why}");
        }
    }

    #[test]
    fn a_bare_port_means_every_interface() {
        assert_eq!(
            ":8080".parse::<Address>().unwrap().0,
            Some("0.0.0.0:8080".parse().unwrap())
        );
        assert!("8080".parse::<Address>().is_err());
    }
}
