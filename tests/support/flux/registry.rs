//! A real OCI registry, and artifacts in it as `flux push artifact` makes them.
//!
//! What comes in: files and a tag. What goes out: an artifact that an OCIRepository fetches, and its
//! digest.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{Request, Response};
use kube::client::Body;
use kube::{Client, Config};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::archive::pack;
use crate::control_plane::Workspace;
use crate::controller::Process;
use crate::poll::DEADLINE;
use crate::progress::Progress;
use crate::tools;

/// The program, and the folder in `control-plane/` that pins it.
const REGISTRY: &str = "registry";

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.cncf.flux.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";

/// A registry on a free port of loopback. Dropped, it is gone.
pub struct Registry {
    address: SocketAddr,
    _process: Process,
}

/// An artifact that lies in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The tag it was pushed under.
    pub tag: String,
    /// The manifest's digest: `sha256:…`.
    pub digest: String,
}

impl Pushed {
    /// As Flux writes it where the tag is asked for: `TAG@sha256:…`.
    #[must_use]
    pub fn revision(&self) -> String {
        format!("{}@{}", self.tag, self.digest)
    }
}

impl Registry {
    /// Builds the program, unless it lies in the cache: two minutes.
    ///
    /// # Errors
    ///
    /// See [`tools::ensure`].
    pub fn ensure(progress: &dyn Progress) -> Result<()> {
        tools::ensure(REGISTRY, progress)?;
        Ok(())
    }

    /// Starts an empty one.
    ///
    /// # Errors
    ///
    /// If it cannot be built or does not start.
    pub async fn start(progress: &dyn Progress) -> Result<Self> {
        let program = tools::ensure(REGISTRY, progress)?.join(REGISTRY);
        let workspace = Workspace::create()?;
        let configuration = configuration(&workspace.path().join("blobs"));
        // JSON is YAML.
        fs::write(
            workspace.path().join("registry.yml"),
            configuration.to_string(),
        )?;
        let mut command = Command::new(program);
        command
            .args(["serve", "registry.yml"])
            .env("OTEL_TRACES_EXPORTER", "none");
        let process = Process::run_in(workspace, &command).await?;
        let address = process.until(DEADLINE, "the registry to listen", async || {
            let log = process.log()?;
            let said = log.iter().filter_map(|line| line["msg"].as_str());
            let address = said
                .filter_map(|line| line.strip_prefix("listening on "))
                .next();
            Ok(address.with_context(|| process.log_tail())?.parse()?)
        });
        Ok(Self {
            address: address.await?,
            _process: process,
        })
    }

    /// Where a repository of it is, as an OCIRepository has it: it wants `insecure: true`, too.
    #[must_use]
    pub fn url(&self, repository: &str) -> String {
        format!("oci://{}/{repository}", self.address)
    }

    /// Pushes files under a tag, which may have been another artifact's before.
    ///
    /// # Errors
    ///
    /// If the registry refuses.
    pub async fn push(
        &self,
        repository: &str,
        tag: &str,
        files: &[(&str, impl AsRef<str>)],
    ) -> Result<Pushed> {
        // On the runtime of the caller, which may not be that of the one who started the registry.
        let mut config = Config::new(format!("http://{}", self.address).parse()?);
        config.default_retry = false;
        let client = Client::try_from(config)?;
        let config = upload(&client, repository, b"{}".to_vec()).await?;
        let content = upload(&client, repository, pack(files)?).await?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.described_as(CONFIG),
            "layers": [content.described_as(CONTENT)],
        });
        let manifest = manifest.to_string().into_bytes();
        let digest = digest(&manifest);
        let request = Request::put(format!("/v2/{repository}/manifests/{tag}"))
            .header(CONTENT_TYPE, MANIFEST)
            .body(Body::from(manifest))?;
        send(&client, request).await?;
        Ok(Pushed {
            tag: tag.to_owned(),
            digest,
        })
    }
}

/// Something in a registry.
struct Blob {
    digest: String,
    size: usize,
}

impl Blob {
    fn described_as(&self, media_type: &str) -> Value {
        json!({"mediaType": media_type, "digest": self.digest, "size": self.size})
    }
}

async fn upload(client: &Client, repository: &str, bytes: Vec<u8>) -> Result<Blob> {
    let blob = Blob {
        digest: digest(&bytes),
        size: bytes.len(),
    };
    let uploads = format!("/v2/{repository}/blobs/uploads/");
    let begun = send(client, Request::post(uploads).body(Body::empty())?).await?;
    let place = begun
        .headers()
        .get(LOCATION)
        .context("nowhere to upload to")?;
    let place: http::Uri = place.to_str()?.parse()?;
    let query = place
        .query()
        .map(|query| format!("{query}&"))
        .unwrap_or_default();
    let target = format!("{}?{query}digest={}", place.path(), blob.digest);
    let request = Request::put(target)
        .header(CONTENT_TYPE, "application/octet-stream")
        .body(Body::from(bytes))?;
    send(client, request).await?;
    Ok(blob)
}

async fn send(client: &Client, request: Request<Body>) -> Result<Response<Body>> {
    let what = format!("{} {}", request.method(), request.uri().path());
    let answer = client.send(request).await?;
    let status = answer.status();
    ensure!(status.is_success(), "registry: {what}: {status}");
    Ok(answer)
}

/// `sha256:…`
fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

fn configuration(blobs: &Path) -> Value {
    json!({
        "version": "0.1",
        "log": {"level": "info", "formatter": "json", "accesslog": {"disabled": true}},
        "storage": {"filesystem": {"rootdirectory": blobs}},
        "http": {"addr": "127.0.0.1:0"},
    })
}
