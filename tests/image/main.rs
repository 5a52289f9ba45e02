//! The Dockerfile, held to rules: no daemon runs where the tests run, so what can be judged from
//! the text is judged from the text.
//!
//! What comes in: `Dockerfile`, `.dockerignore` and the workspace's `Cargo.toml`. What goes out:
//! every rule that they break.

mod dockerfile;
mod rules;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use dockerfile::Dockerfile;

fn read(name: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

fn ours() -> Result<Dockerfile> {
    Dockerfile::parse(&read("Dockerfile")?)
}

#[test]
fn our_image_breaks_no_rule() -> Result<()> {
    assert_eq!(rules::broken(&ours()?), Vec::<String>::new());
    Ok(())
}

/// What to change in our Dockerfile, into what, and what the complaint about it says.
const MISTAKES: [(&str, &str, &str); 18] = [
    ("rust:1.95.0-alpine3.23", "rust:latest", "moves"),
    ("rust:1.95.0-alpine3.23", "rust", "moves"),
    ("rust:1.95.0-alpine3.23", "rust:alpine", "moves"),
    (
        "static-debian13:nonroot",
        "static-debian13:debug-nonroot",
        "has a shell",
    ),
    (
        "gcr.io/distroless/static-debian13:nonroot",
        "debian:13",
        "has a shell",
    ),
    ("USER 65532:65532", "USER root", "runs as"),
    ("USER 65532:65532", "USER nonroot", "runs as"),
    ("USER 65532:65532", "USER 0", "runs as"),
    ("USER 65532:65532", "# nobody", "runs as"),
    ("USER 65532:65532", "RUN true", "has a shell"),
    (
        "COPY crds/ crds/",
        "ADD https://example.com/a.tar.gz .",
        "ADD",
    ),
    ("COPY crds/ crds/", "COPY . .", "copies everything"),
    ("COPY crds/ crds/", "COPY crds/* crds/", "copies everything"),
    ("--locked ", "", "--locked"),
    ("! grep INTERP /out/headers", "true", "static"),
    (
        "[\"/gate-controller\"]",
        "/gate-controller",
        "needs a shell",
    ),
    ("ENTRYPOINT", "CMD", "no ENTRYPOINT"),
    ("org.opencontainers.image.licenses", "licenses", "no label"),
];

#[test]
fn a_broken_rule_is_named() -> Result<()> {
    let text = read("Dockerfile")?;
    for (what, with, expected) in MISTAKES {
        let changed = text.replace(what, with);
        assert_ne!(changed, text, "the Dockerfile does not hold {what:?}");
        let broken = rules::broken(&Dockerfile::parse(&changed)?);
        assert!(
            broken.iter().any(|rule| rule.contains(expected)),
            "{what:?} became {with:?}: {broken:?}"
        );
    }
    Ok(())
}

#[test]
fn the_builder_sees_what_is_copied_and_nothing_else() -> Result<()> {
    let mut allowed: Vec<_> = read(".dockerignore")?
        .lines()
        .filter_map(|line| line.strip_prefix('!').map(str::to_owned))
        .collect();
    let mut copied = ours()?.copied_from_outside();
    allowed.sort();
    copied.sort();
    assert_eq!(copied, allowed);
    Ok(())
}

#[test]
fn the_whole_workspace_is_there_for_cargo() -> Result<()> {
    let copied = ours()?.copied_from_outside();
    let manifest = read("Cargo.toml")?;
    let members = manifest
        .lines()
        .find_map(|line| line.strip_prefix("members = ["))
        .context("Cargo.toml has no line with members")?;
    for member in members.trim_end_matches(']').split(',') {
        let member = member.trim().trim_matches('"');
        assert!(
            copied.iter().any(|path| path == member),
            "COPY {member}/ is missing"
        );
    }
    Ok(())
}

#[test]
fn the_image_has_the_version_of_the_workspace() -> Result<()> {
    let manifest = read("Cargo.toml")?;
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("version = "))
        .context("Cargo.toml has no version")?;
    let given = ours()?.last_stage().default_of("VERSION");
    assert_eq!(given.as_deref(), Some(version.trim_matches('"')));
    Ok(())
}
