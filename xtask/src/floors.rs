//! `cargo xtask floors`: which crate may depend on which, and which room of a crate on which.
//!
//! What comes in: what the Cargo.toml files ask for, and the sources of the crates with [`rooms`]. What
//! goes out: every edge that leads up or sideways, and everything under the pure floors that does I/O.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use crate::cargo::{Metadata, cargo, metadata, output, root};

pub(crate) mod rooms;

/// A crate of ours and the crates of ours that it may ask for, for tests as well. The floors of
/// CONTRIBUTING.md.
pub(crate) const FLOORS: [(&str, &str); 11] = [
    ("sluice-crds", ""),
    ("sluice-core", "sluice-crds"),
    ("sluice-egress", ""),
    ("sluice-watching", "sluice-crds"),
    ("sluice-clusters", "sluice-egress sluice-watching"),
    (
        "sluice-gatekeepers",
        "sluice-crds sluice-core sluice-egress sluice-watching",
    ),
    ("sluice-forges", "sluice-egress"),
    (
        "gate-controller",
        "sluice-crds sluice-core sluice-egress sluice-watching sluice-clusters sluice-gatekeepers \
         sluice-forges",
    ),
    ("kubectl-gate", "sluice-crds sluice-core"),
    (
        "sluice-tests",
        "sluice-crds sluice-core sluice-egress sluice-watching sluice-clusters sluice-gatekeepers \
         sluice-forges gate-controller kubectl-gate",
    ),
    (
        "xtask",
        "sluice-crds sluice-core sluice-egress sluice-watching sluice-clusters sluice-gatekeepers \
         sluice-forges gate-controller kubectl-gate sluice-tests",
    ),
];

/// The crates that decide and describe, and do nothing else.
const PURE: [&str; 2] = ["sluice-crds", "sluice-core"];

/// What a pure crate must not have under it: runtimes, clients, sockets.
const IMPURE: [&str; 6] = [
    "tokio",
    "kube-client",
    "kube-runtime",
    "reqwest",
    "hyper",
    "rustls",
];

/// Checks all edges between our crates, the trees of the pure ones, and the edges between rooms.
pub(crate) fn check() -> Result<String> {
    let mut broken = wrong_edges(&metadata()?);
    for package in PURE {
        broken.extend(impurities(package, &dependencies(package)?));
    }
    broken.extend(rooms::broken(root())?);
    ensure!(
        broken.is_empty(),
        "floors are broken:\n  {}",
        broken.join("\n  ")
    );
    Ok(format!(
        "{} crates, {} of them pure; {} rooms",
        FLOORS.len(),
        PURE.len(),
        rooms::count()
    ))
}

fn wrong_edges(metadata: &Metadata) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in &metadata.packages {
        let name = &package.name;
        let Some((_, allowed)) = FLOORS.iter().find(|(floor, _)| floor == name) else {
            wrong.push(format!(
                "{name} stands on no floor: add it to xtask/src/floors.rs"
            ));
            continue;
        };
        let ours = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.path.is_some());
        let may = |name: &str| allowed.split(' ').any(|allowed| allowed == name);
        for dependency in ours.filter(|dependency| !may(&dependency.name)) {
            wrong.push(format!("{name} must not depend on {}", dependency.name));
        }
    }
    wrong
}

/// The names of everything that `package` is built from, when it is built alone: in a build of
/// the whole workspace features of others would be counted against it.
fn dependencies(package: &str) -> Result<BTreeSet<String>> {
    let arguments = [
        "tree", "--edges", "normal", "--prefix", "none", "--format", "{p}",
    ];
    let text = output(cargo().args(arguments).args(["--package", package]))?;
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    Ok(names.map(str::to_owned).collect())
}

fn impurities(package: &str, dependencies: &BTreeSet<String>) -> Vec<String> {
    IMPURE
        .into_iter()
        .filter(|name| dependencies.contains(*name))
        .map(|name| {
            format!("{package} must stay pure, and has {name} under it: cargo tree -p {package} -i {name}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(name: &str, dependencies: &str) -> Metadata {
        let json = format!(
            r#"{{"packages": [{{"name": "{name}", "dependencies": {dependencies}}}],
                "target_directory": "t"}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn an_edge_that_leads_up_is_named() {
        let wrong = workspace(
            "sluice-core",
            r#"[{"name": "gate-controller", "path": "/p"}]"#,
        );
        assert_eq!(
            wrong_edges(&wrong),
            ["sluice-core must not depend on gate-controller"]
        );
        let right = workspace(
            "sluice-core",
            r#"[{"name": "sluice-crds", "path": "/p"}, {"name": "serde", "path": null}]"#,
        );
        assert!(wrong_edges(&right).is_empty());
    }

    #[test]
    fn a_new_crate_needs_a_floor() {
        let wrong = wrong_edges(&workspace("sluice-plans", "[]"));
        assert!(
            wrong[0].starts_with("sluice-plans stands on no floor"),
            "{wrong:?}"
        );
    }

    #[test]
    fn every_floor_names_known_floors_below_it() {
        for (index, (name, allowed)) in FLOORS.iter().enumerate() {
            let below: Vec<_> = FLOORS[..index].iter().map(|(below, _)| *below).collect();
            let mut allowed = allowed.split_whitespace();
            assert!(allowed.all(|other| below.contains(&other)), "{name}");
        }
    }

    #[test]
    fn a_client_under_a_pure_crate_is_named() {
        let tree = ["serde", "kube-client"].map(str::to_owned).into();
        let wrong = impurities("sluice-core", &tree);
        assert_eq!(wrong.len(), 1);
        assert!(wrong[0].contains("has kube-client under it"));
    }
}
