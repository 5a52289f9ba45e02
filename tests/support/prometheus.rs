//! A real Prometheus that knows what a test sets.
//!
//! What comes in: the gauges that a test sets. What goes out: a server that knows them, and `promtool` to
//! check rules with. The server ends with us, as all servers of tests do.
//!
//! Prometheus itself knows basic authentication and TLS, see [`Access`]. It knows no bearer tokens:
//! where those are asked for, a proxy stands before it, and a test of them needs a server of its
//! own.

mod access;
mod recorded;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use http::Request;
use http::request::Builder;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

pub use access::{Access, PASSWORD, USER};

use crate::control_plane::processes::Workspace;
use crate::controller::Process;
use crate::identity::Identity;
use crate::poll::DEADLINE;
use crate::poll::poll;
use crate::progress::Progress;
use crate::tools;
use recorded::Gauges;

/// The folder in `control-plane/` that pins both programs.
const MODULE: &str = "prometheus";

/// The file of the gauges, in the folder that it runs in.
const RULES: &str = "rules.yml";

/// The programs of Prometheus, 2.42 or newer.
#[derive(Clone, Debug)]
pub struct Programs {
    server: PathBuf,
    promtool: PathBuf,
}

impl Programs {
    /// Finds both programs on the `PATH`, else in the cache, else builds them there: five minutes
    /// on two cores, the first time.
    ///
    /// # Errors
    ///
    /// Where they have to be built: see [`tools::ensure`].
    pub fn ensure(progress: &dyn Progress) -> Result<Self> {
        let installed = [tools::on_path("prometheus"), tools::on_path("promtool")];
        if let [Some(server), Some(promtool)] = installed {
            return Ok(Self { server, promtool });
        }
        let folder = tools::ensure(MODULE, progress)?;
        Ok(Self {
            server: folder.join("prometheus"),
            promtool: folder.join("promtool"),
        })
    }

    /// Checks a file of rules: `promtool check rules`. Returns what it said.
    ///
    /// # Errors
    ///
    /// With what it said, if a rule is refused.
    pub fn check_rules(&self, file: &Path) -> Result<String> {
        self.promtool("check", file)
    }

    /// Runs the tests of rules in a file, which names the files of rules: `promtool test rules`.
    /// Returns what it said.
    ///
    /// # Errors
    ///
    /// With what it said, if a test fails.
    pub fn test_rules(&self, file: &Path) -> Result<String> {
        self.promtool("test", file)
    }

    fn promtool(&self, verb: &str, file: &Path) -> Result<String> {
        let output = Command::new(&self.promtool)
            .args([verb, "rules"])
            .arg(file)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {}", self.promtool.display()))?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        let file = file.display();
        ensure!(
            output.status.success(),
            "promtool {verb} rules {file}:\n{said}"
        );
        Ok(said)
    }
}

/// A running Prometheus. Dropped, it is gone.
pub struct Prometheus {
    process: Process,
    folder: PathBuf,
    gauges: Mutex<Gauges>,
    address: SocketAddr,
    access: Access,
    identity: Option<Identity>,
    client: Client,
}

impl Prometheus {
    /// Starts one on a free port of loopback, and waits until it answers. It knows no gauge.
    ///
    /// # Errors
    ///
    /// If it ends or does not answer in time: the error has the last lines of its log.
    pub async fn start(programs: &Programs, access: Access) -> Result<Self> {
        let identity = access.tls.then(Identity::create).transpose()?;
        let workspace = Workspace::create()?;
        let folder = workspace.path().to_owned();
        // JSON is YAML.
        let configuration = json!({"rule_files": [RULES]});
        fs::write(folder.join("prometheus.yml"), configuration.to_string())?;
        access.write(identity.as_ref(), &folder)?;
        let process = Process::run_in(workspace, &command(&programs.server)).await?;
        let address = address(&process).await?;
        let prometheus = Self {
            client: access.client(address, identity.as_ref())?,
            process,
            folder,
            gauges: Mutex::default(),
            address,
            access,
            identity,
        };
        prometheus.answers().await?;
        Ok(prometheus)
    }

    async fn answers(&self) -> Result<()> {
        let ready = async || self.get("/-/ready").await;
        self.process
            .until(DEADLINE, "Prometheus to be ready", ready)
            .await?;
        Ok(())
    }

    /// Its address, as a metric gatekeeper has it.
    #[must_use]
    pub fn url(&self) -> String {
        self.access.url(self.address)
    }

    /// The certificate of the authority that it is trusted by, in PEM, if it speaks TLS.
    #[must_use]
    pub fn authority(&self) -> Option<&str> {
        let identity = self.identity.as_ref()?;
        Some(&identity.authority)
    }

    /// Sets a gauge, and waits until queries find this value. Labels stand as in a query:
    /// `errors{pod="a"}`.
    ///
    /// # Errors
    ///
    /// If it does not take it.
    pub async fn set(&self, gauge: &str, value: f64) -> Result<()> {
        self.set_all(&[(gauge, value)]).await
    }

    /// The same for several gauges.
    ///
    /// # Errors
    ///
    /// See [`Self::set`].
    pub async fn set_all(&self, gauges: &[(&str, f64)]) -> Result<()> {
        let new = gauges.iter();
        let new = new.map(|(gauge, value)| ((*gauge).to_owned(), *value));
        self.gauges.lock().extend(new);
        self.reload().await?;
        for (gauge, value) in gauges {
            self.says(gauge, Some(*value)).await?;
        }
        Ok(())
    }

    /// Takes a gauge away, and waits until queries find nothing of it.
    ///
    /// # Errors
    ///
    /// See [`Self::set`].
    pub async fn remove(&self, gauge: &str) -> Result<()> {
        self.gauges.lock().remove(gauge);
        self.reload().await?;
        self.says(gauge, None).await
    }

    async fn reload(&self) -> Result<()> {
        let rules = recorded::rules(&self.gauges.lock()).to_string();
        fs::write(self.folder.join(RULES), rules)?;
        self.ask(Request::post("/-/reload")).await?;
        Ok(())
    }

    /// What it answers to a query, now: the `data` of its answer, with `resultType` and `result`.
    ///
    /// # Errors
    ///
    /// With what it said, if it refuses.
    pub async fn query(&self, query: &str) -> Result<Value> {
        let path = format!("/api/v1/query?query={}", percent_encoded(query));
        let text = self.get(&path).await?;
        let mut answer: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
        Ok(answer["data"].take())
    }

    /// The only value that it answers to a query, now. None: it finds nothing.
    ///
    /// # Errors
    ///
    /// If it refuses, or finds more than one.
    pub async fn value(&self, query: &str) -> Result<Option<f64>> {
        let data = self.query(query).await?;
        let pair = match (data["resultType"].as_str(), data["result"].as_array()) {
            (Some("scalar"), Some(pair)) => pair.get(1),
            (Some("vector"), Some(samples)) => match samples.as_slice() {
                [] => return Ok(None),
                [sample] => sample.pointer("/value/1"),
                [..] => bail!("{query} has {} samples", samples.len()),
            },
            _ => bail!("{query} is no number: {data}"),
        };
        let text = pair.and_then(Value::as_str).context("no value")?;
        Ok(Some(text.parse()?))
    }

    /// Waits until a query has this value, or with None finds nothing.
    ///
    /// # Errors
    ///
    /// If it does not in time, with what it had last.
    pub async fn says(&self, query: &str, value: Option<f64>) -> Result<()> {
        let same = |seen: f64, value: f64| seen == value || (seen.is_nan() && value.is_nan());
        poll(
            DEADLINE,
            &format!("{query} to be {value:?}"),
            async || match (self.value(query).await?, value) {
                (None, None) => Ok(()),
                (Some(seen), Some(value)) if same(seen, value) => Ok(()),
                (seen, _) => bail!("{seen:?}"),
            },
        )
        .await
    }

    /// The server, to pause it: it is then there and does not answer.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    async fn get(&self, path: &str) -> Result<String> {
        self.ask(Request::get(path)).await
    }

    async fn ask(&self, request: Builder) -> Result<String> {
        let answer = self.client.send(request.body(Body::empty())?).await?;
        let status = answer.status();
        let bytes = answer.into_body().collect_bytes().await?;
        let text = String::from_utf8(bytes.to_vec())?;
        ensure!(status.is_success(), "{status}: {text}");
        Ok(text)
    }
}

/// Relative paths lie in the folder that it runs in.
fn command(server: &Path) -> Command {
    let mut command = Command::new(server);
    command.args([
        "--config.file=prometheus.yml",
        "--web.config.file=web.yml",
        "--web.listen-address=127.0.0.1:0",
        "--web.enable-lifecycle",
        "--storage.tsdb.path=data",
        "--log.format=json",
    ]);
    command
}

/// Where it listens: it says so once it does, and no other process can have taken the port.
async fn address(process: &Process) -> Result<SocketAddr> {
    let listens = |line: &Value| line["msg"] == "Listening on";
    let line = process.logged("Prometheus to listen", listens).await?;
    let address = line["address"].as_str().context("it does not say where")?;
    Ok(address.parse()?)
}

fn percent_encoded(text: &str) -> String {
    let bytes = text.bytes();
    bytes.map(|byte| format!("%{byte:02X}")).collect()
}
