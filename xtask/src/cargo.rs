//! Calling cargo and other programs in the workspace.
//!
//! What comes in: arguments. What goes out: success, or an error that names the command.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use sluice_tests::programs::Program;

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// `cargo`, the one that runs us, in the workspace.
pub(crate) fn cargo() -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root());
    // Set by the `cargo run` that started us, about our own package: not meant for others.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a command, its output going where ours goes.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    eprintln!("$ {line}");
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {line}"))?;
    ensure!(status.success(), "{line}: {status}");
    Ok(())
}

/// The same. `listen` is told each line of its standard output, too.
pub(crate) fn watch(command: &mut Command, mut listen: impl FnMut(&str)) -> Result<()> {
    let line = line(command);
    eprintln!("$ {line}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {line}"))?;
    for said in child
        .stdout
        .take()
        .map(BufReader::new)
        .into_iter()
        .flat_map(|it| it.split(b'\n'))
    {
        // What cannot be read any more has ended, too.
        let Ok(said) = said else { break };
        let said = String::from_utf8_lossy(&said);
        println!("{said}");
        listen(&said);
    }
    let status = child.wait()?;
    ensure!(status.success(), "{line}: {status}");
    Ok(())
}

/// Runs a command and returns its standard output. What it says on standard error is shown if it
/// fails.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {line}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{line}: {}: {said}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("{line} wrote no text"))
}

/// A command as one would type it.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let mut words = vec![name.to_string_lossy()];
    words.extend(
        command
            .get_args()
            .map(|argument| argument.to_string_lossy()),
    );
    words.join(" ")
}

/// What `cargo metadata` knows about the workspace alone.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    /// The packages of the workspace.
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
}

/// A package of the workspace.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// What a `Cargo.toml` asks for.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// The folder of a package that comes from no registry.
    pub(crate) path: Option<PathBuf>,
}

/// Asks cargo about the workspace.
pub(crate) fn metadata() -> Result<Metadata> {
    let text = output(cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    serde_json::from_str(&text).context("cannot read what cargo metadata wrote")
}

/// A program of ours: the file that its environment variable names, else built now.
pub(crate) fn program(program: Program) -> Result<PathBuf> {
    match env::var_os(program.variable()).filter(|path| !path.is_empty()) {
        Some(path) => Ok(std::path::absolute(path)?),
        None => Ok(build(&[program])?.join(program.name())),
    }
}

/// Builds programs of ours as we were built ourselves: for development, or for release. Returns the
/// folder that they lie in.
pub(crate) fn build(programs: &[Program]) -> Result<PathBuf> {
    let packages = programs.iter().map(|program| program.name());
    build_packages(packages, !cfg!(debug_assertions))
}

/// Builds ourselves for release. Returns the program.
pub(crate) fn ourselves_released() -> Result<PathBuf> {
    Ok(build_packages([], true)?.join("xtask"))
}

fn build_packages<'a>(
    packages: impl IntoIterator<Item = &'a str>,
    release: bool,
) -> Result<PathBuf> {
    let mut command = cargo();
    // Together with ourselves, who are built already: alone they would ask for fewer features of
    // what we share, and minutes of dependencies would be built a second time.
    command.args(["build", "--package", "xtask"]);
    for package in packages {
        command.args(["--package", package]);
    }
    command.args(release.then_some("--release"));
    run(&mut command)?;
    let folder = if release { "release" } else { "debug" };
    Ok(metadata()?.target_directory.join(folder))
}
