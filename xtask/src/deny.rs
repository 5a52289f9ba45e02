//! `cargo xtask deny`: licences, sources, bans and known flaws of all dependencies.
//!
//! What comes in: `deny.toml` and `Cargo.lock`. What goes out: what cargo-deny finds. It is
//! installed into the cache if it is not there.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sluice_tests::cache;

use crate::cargo::{cargo, root, run};

/// The version that `deny.toml` is written for.
const VERSION: &str = "0.20.2";

/// Names the folder of advisory databases. Read by `deny.toml` too.
const DATABASES: &str = "SLUICE_ADVISORY_DATABASES";

/// With the value `required`, the checks against known flaws may not be left out.
const ADVISORIES: &str = "SLUICE_ADVISORIES";

/// Runs all checks of cargo-deny; those against known flaws only where their database is, unless
/// they are required.
pub(crate) fn check() -> Result<String> {
    let program = install()?;
    let databases = databases()?;
    let known = holds_database(&databases);
    let required = env::var_os(ADVISORIES).is_some_and(|value| value == "required");
    ensure!(
        known || !required,
        "{ADVISORIES}=required, and there is no database of advisories in {}: run `cargo deny fetch db` \
         where there is a network, or name the folder of one in {DATABASES}",
        databases.display()
    );
    // It reads every crate of Cargo.lock, those for other systems among them, which no build here
    // has downloaded.
    run(cargo().args(["fetch", "--quiet"]))?;
    let mut command = Command::new(program);
    command.current_dir(root()).env(DATABASES, &databases);
    command.args(["--offline", "check", "licenses", "bans", "sources"]);
    if known {
        command.arg("advisories");
    }
    run(&mut command)?;
    Ok(if known {
        "licences, bans, sources, advisories".to_owned()
    } else {
        format!(
            "licences, bans, sources; advisories SKIPPED: no database in {} (cargo deny fetch db)",
            databases.display()
        )
    })
}

/// The program, installed on first use.
fn install() -> Result<PathBuf> {
    let folder = cache::folder()?.join(format!("tools/cargo-deny-{VERSION}"));
    let program = folder.join("bin/cargo-deny");
    if !program.is_file() {
        let package = format!("cargo-deny@{VERSION}");
        let mut command = cargo();
        command
            // Not optimized: it runs for seconds, and would be built for minutes.
            .args(["install", "--quiet", "--locked", "--debug"])
            .args([&package, "--root"])
            .arg(&folder);
        run(&mut command).context("cargo-deny is not there and cannot be installed")?;
    }
    Ok(program)
}

/// The folder named by the environment, else cargo-deny's own.
fn databases() -> Result<PathBuf> {
    let named = |name| {
        env::var_os(name)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    };
    named(DATABASES)
        .or_else(|| Some(named("CARGO_HOME")?.join("advisory-dbs")))
        .or_else(|| Some(named("HOME")?.join(".cargo/advisory-dbs")))
        .with_context(|| format!("no home folder: set {DATABASES}"))
}

/// Whether cargo-deny has ever fetched a database to `folder`.
fn holds_database(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    names.any(|name| name.to_string_lossy().starts_with("advisory-db-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fetched_database_counts() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!holds_database(&folder.path().join("nowhere")));
        assert!(!holds_database(folder.path()));
        fs::create_dir(folder.path().join("advisory-db-3157b0e258782691")).unwrap();
        assert!(holds_database(folder.path()));
    }
}
