//! The Go toolchain that builds the servers.
//!
//! What comes in: the `PATH`, and a folder with a `go.mod`. What goes out: programs built from
//! what `go.mod` and `go.sum` pin, or one line that says what to install.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::progress::{Progress, human};

/// What we read from a `go.mod`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Module {
    /// The least version of Go, from the `go` line.
    pub(super) go: String,
    /// The packages of the `tool` lines.
    tools: Vec<String>,
    /// The build tags, as `a,b`, from a comment that is for us: `// -tags a,b`.
    tags: Option<String>,
    /// A variable and its value, as `main.Version=1.26.0`, from a comment that is for us:
    /// `// -X main.Version=1.26.0`.
    set: Option<String>,
    /// A folder of each tool's sources that is kept beside the programs, as `config/crds`, from a
    /// comment that is for us: `// -keep config/crds`.
    kept: Option<String>,
    /// The version of `k8s.io/kubernetes`, as `v1.36.1`, if it is required.
    kubernetes: Option<String>,
}

impl Module {
    /// Reads `go.mod` in `folder`.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("go.mod");
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("cannot use {}", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let lines = || text.lines().map(str::trim);
        let after = |word: &'static str| lines().filter_map(move |line| line.strip_prefix(word));
        let block = lines()
            .skip_while(|line| *line != "tool (")
            .skip(1)
            .take_while(|line| *line != ")");
        let single = after("tool ").filter(|rest| *rest != "(");
        let tools: Vec<_> = block.chain(single).map(str::to_owned).collect();
        ensure!(!tools.is_empty(), "it lists no tool");
        let kubernetes = after("k8s.io/kubernetes ").find_map(|rest| rest.split(' ').next());
        Ok(Self {
            go: after("go ").next().context("it has no go line")?.to_owned(),
            tools,
            tags: after("// -tags ").next().map(str::to_owned),
            set: after("// -X ").next().map(str::to_owned),
            kept: after("// -keep ").next().map(str::to_owned),
            kubernetes: kubernetes.map(str::to_owned),
        })
    }

    /// The files that the tools become.
    pub(super) fn programs(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|package| program(package))
    }

    /// For people: `etcd, kube-apiserver v1.36.1`.
    pub(super) fn summary(&self) -> String {
        let names = self.programs().map(|name| match name {
            "server" => "etcd",
            other => other,
        });
        let names = names.collect::<Vec<_>>().join(", ");
        // Others are built from parts of Kubernetes, and have versions of their own.
        let is_kubernetes = |package: &String| package.starts_with("k8s.io/kubernetes/");
        let version = self.kubernetes.as_ref();
        match version.filter(|_| self.tools.iter().any(is_kubernetes)) {
            Some(version) => format!("{names} {version}"),
            None => names,
        }
    }

    fn linker_flags(&self) -> String {
        // Without its version the API server gives an answer that clients choke on.
        let version = self
            .kubernetes
            .iter()
            .map(|version| format!(" -X k8s.io/component-base/version.gitVersion={version}"));
        let set = self.set.iter().map(|set| format!(" -X {set}"));
        format!("-s -w{}", version.chain(set).collect::<String>())
    }
}

/// The name that `go build` gives a program: the last part of the package's path, unless that is
/// a major version.
fn program(package: &str) -> &str {
    let mut parts = package.rsplit('/');
    let last = parts.next().unwrap_or(package);
    let is_version = last
        .strip_prefix('v')
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
    if is_version {
        parts.next().unwrap_or(last)
    } else {
        last
    }
}

/// Makes sure that a `go` of at least version `needed` is on the `PATH`.
pub(super) fn check(needed: &str) -> Result<()> {
    let found = Command::new("go")
        .args(["env", "GOVERSION"])
        .env("GOTOOLCHAIN", "local")
        // Not in a module: its go line must not make the command fail.
        .current_dir("/")
        .stdin(Stdio::null())
        .output();
    let Ok(output) = found else {
        bail!(
            "Go {needed} or newer is needed to build what tests and demo run, and there is no go \
             on PATH: install Go {needed} or newer"
        );
    };
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    ensure!(
        !is_older(&version, needed),
        "Go {needed} or newer is needed to build what tests and demo run, and the go on PATH is \
         {}: install Go {needed} or newer",
        version.trim_start_matches("go"),
    );
    Ok(())
}

/// Whether `found`, as `go1.25.3`, is older than `needed`, as `1.26.0`. A version that is no
/// release, as `devel go1.27-…`, is taken for new enough: `go build` has the last word.
fn is_older(found: &str, needed: &str) -> bool {
    let Some(found) = found.strip_prefix("go") else {
        return false;
    };
    numbers(found) < numbers(needed)
}

/// `1.26rc1` is `[1, 26, 0]`.
fn numbers(version: &str) -> [u32; 3] {
    let mut parts = [0; 3];
    for (part, text) in parts.iter_mut().zip(version.split('.')) {
        let digits = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        *part = text[..digits].parse().unwrap_or(0);
    }
    parts
}

/// Builds all tools of `module` in `folder` into the folder `target`, in one call: the packages
/// that they share are then compiled once.
pub(super) fn build(
    module: &Module,
    folder: &Path,
    target: &Path,
    progress: &dyn Progress,
) -> Result<()> {
    let mut child = Command::new("go")
        .args(["build", "-v", "-mod=readonly", "-trimpath", "-ldflags"])
        .arg(module.linker_flags())
        .args(module.tags.iter().flat_map(|tags| ["-tags", tags]))
        .arg("-o")
        .arg(target)
        .args(&module.tools)
        .current_dir(folder)
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off")
        // The compiler and the linker collect garbage less often.
        .env("GOGC", "400")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start go build")?;
    let stderr = child.stderr.take().context("go build has no output")?;
    let report = follow(&lines_of(stderr), progress);
    let status = child.wait().context("go build cannot be waited for")?;
    ensure!(status.success(), "go build failed:\n{report}");
    Ok(())
}

/// Copies the folder that `module` keeps of each tool's sources to `<target>/<program>.kept`.
pub(super) fn keep(module: &Module, folder: &Path, target: &Path) -> Result<()> {
    let Some(kept) = &module.kept else {
        return Ok(());
    };
    for package in &module.tools {
        let sources = sources(folder, package)?.join(kept);
        let copies = target.join(format!("{}.kept", program(package)));
        copy(&sources, &copies).with_context(|| format!("cannot copy {}", sources.display()))?;
    }
    Ok(())
}

/// The folder of Go's own cache that has the sources of `package`, as `go.mod` in `folder` pins it.
/// They are downloaded if they are not there.
pub(super) fn sources(folder: &Path, package: &str) -> Result<PathBuf> {
    let output = Command::new("go")
        .args(["list", "-mod=readonly", "-f", "{{.Dir}}", package])
        .current_dir(folder)
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start go list")?;
    ensure!(output.status.success(), "go list {package} failed");
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// Copies the files of a folder, but not its folders.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            // Not the file itself: it is read-only in Go's cache, and ours will be removed.
            fs::write(to.join(entry.file_name()), fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// The lines of `reader`, read on a thread of their own so that time can be shown meanwhile.
fn lines_of(reader: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(reader).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Shows how far a build is until its output ends. Returns what it said last, for an error.
fn follow(lines: &Receiver<String>, progress: &dyn Progress) -> String {
    const TICK: Duration = Duration::from_millis(500);
    let start = Instant::now();
    let mut seen = Seen::default();
    loop {
        match lines.recv_timeout(TICK) {
            Ok(line) => seen.take(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let elapsed = human(start.elapsed());
        progress.update(&format!("{elapsed}: {}", seen.summary()));
    }
    Vec::from(seen.said).join("\n")
}

/// What a build has said so far.
#[derive(Default)]
struct Seen {
    downloads: u32,
    packages: u32,
    /// The package that was compiled last.
    latest: String,
    /// What it said besides: if it fails, why.
    said: VecDeque<String>,
}

impl Seen {
    /// How many lines an error shows.
    const KEPT: usize = 12;

    fn take(&mut self, line: String) {
        if line.starts_with("go: downloading ") {
            self.downloads += 1;
        } else if !line.contains([' ', ':']) {
            self.packages += 1;
            self.latest = line;
        } else {
            // Other packages are compiled on meanwhile: their names must not push it out.
            if self.said.len() == Self::KEPT {
                self.said.pop_front();
            }
            self.said.push_back(line);
        }
    }

    fn summary(&self) -> String {
        match (self.downloads, self.packages) {
            (0, 0) => "looking at what is built already".to_owned(),
            (downloads, 0) => format!("{downloads} modules downloaded"),
            (_, packages) => format!("{packages} packages compiled, {}", self.latest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert!(is_older("go1.25.9", "1.26.0"));
        assert!(is_older("go1.9", "1.26.0"));
        assert!(is_older("go1.26.0", "1.26.1"));
        assert!(!is_older("go1.26.0", "1.26.0"));
        assert!(!is_older("go1.26", "1.26.0"));
        assert!(!is_older("go1.26rc2", "1.26.0"));
        assert!(!is_older("go1.27.1", "1.26.3"));
        assert!(!is_older("devel go1.28-abcdef", "1.26.0"));
    }

    #[test]
    fn a_module_says_what_to_build() {
        let text = "module m\n\ngo 1.26.0\n\ntool (\n\ta/server/v3\n\tk8s.io/kubernetes/cmd/kube-apiserver\n)\n\n\
                    require (\n\tk8s.io/kubernetes v1.36.1 // indirect\n)\n";
        let module = Module::parse(text).unwrap();
        assert_eq!(module.go, "1.26.0");
        assert_eq!(
            module.tools,
            ["a/server/v3", "k8s.io/kubernetes/cmd/kube-apiserver"]
        );
        assert_eq!(
            module.programs().collect::<Vec<_>>(),
            ["server", "kube-apiserver"]
        );
        assert_eq!(module.summary(), "etcd, kube-apiserver v1.36.1");
        assert!(module.linker_flags().ends_with("gitVersion=v1.36.1"));
        assert!(Module::parse("module m\ngo 1.26.0\n").is_err());
    }

    #[test]
    fn one_tool_needs_no_block() {
        let text = "module m\n\ngo 1.26.0\n\ntool helm.sh/helm/v4/cmd/helm\n";
        let module = Module::parse(text).unwrap();
        assert_eq!(module.programs().collect::<Vec<_>>(), ["helm"]);
        assert_eq!(module.linker_flags(), "-s -w");
        assert_eq!((module.tags, module.kept), (None, None));
    }

    #[test]
    fn comments_name_the_tags_what_is_set_and_what_is_kept() {
        let text = "module m\n\ngo 1.26.0\n\n// Smaller.\n// -tags one,two\n// -keep c/d\n// -X e.F=1\n\ntool a/b\n";
        let module = Module::parse(text).unwrap();
        assert_eq!(module.tags.as_deref(), Some("one,two"));
        assert_eq!(module.kept.as_deref(), Some("c/d"));
        assert_eq!(module.linker_flags(), "-s -w -X e.F=1");
    }

    #[test]
    fn a_build_is_summed_up() {
        let mut seen = Seen::default();
        assert_eq!(seen.summary(), "looking at what is built already");
        seen.take("go: downloading k8s.io/api v0.36.1".to_owned());
        assert_eq!(seen.summary(), "1 modules downloaded");
        seen.take("k8s.io/api/core/v1".to_owned());
        assert_eq!(seen.summary(), "1 packages compiled, k8s.io/api/core/v1");
        seen.take("a/b: /tool/compile: signal: killed".to_owned());
        for n in 0..99 {
            seen.take(format!("k8s.io/api/v{n}"));
        }
        assert_eq!(seen.summary(), "100 packages compiled, k8s.io/api/v98");
        assert_eq!(seen.said, ["a/b: /tool/compile: signal: killed"]);
    }
}
