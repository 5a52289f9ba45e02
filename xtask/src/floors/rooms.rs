//! Which room of a crate may use which other room.
//!
//! What comes in: the sources of the crates that have rooms. What goes out: every use that the table
//! does not have, and every line of the table that nobody needs.
//!
//! A room is a module at the top of a crate, with everything inside it. Modules under `#[cfg(test)]`
//! are left out, with their files: a test may ask a room above, as those of gates simulate and lint
//! what they judge. The top itself (`lib.rs`, `main.rs`) may use every room.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use source::{Source, Use};

mod source;

/// A crate with rooms.
pub(crate) struct House {
    /// Where its sources are, below the folder of the workspace.
    pub(crate) folder: &'static str,
    /// The module at its top: `lib` or `main`.
    pub(crate) top: &'static str,
    /// Each room, and the rooms that it uses: all of them in rows before its own.
    pub(crate) rooms: &'static [(&'static str, &'static str)],
    /// A room, and the one module that it uses of a room in a row after its own.
    exceptions: &'static [(&'static str, &'static str)],
}

/// The table, from the ground up. The first lines of each room's module say the same.
#[rustfmt::skip] // A row is a line.
pub(crate) const HOUSES: [House; 6] = [
    House {
        folder: "core/src",
        top: "lib",
        rooms: &[
            ("text",       ""),
            ("revision",   ""),
            ("operation",  ""),
            ("time",       "text"),
            ("flux",       "revision"),
            ("verdict",    "revision time"),
            ("evidence",   "text time verdict"),
            ("gatekeeper", "text revision time verdict evidence"),
            ("gate",       "text time verdict gatekeeper"),
            ("delivery",   "text revision time flux verdict evidence gatekeeper gate"),
            ("offline",    "text revision time verdict gatekeeper gate delivery"),
        ],
        exceptions: &[],
    },
    House {
        folder: "egress/src",
        top: "lib",
        rooms: &[
            ("destination", ""),
            ("places",      ""),
            ("address",     "destination"),
            ("outcome",     "address"),
            ("trust",       "outcome"),
            ("endpoints",   "outcome"),
            ("names",       "address outcome endpoints"),
            ("turns",       "places"),
            ("request",     "outcome turns"),
            ("secrets",     "outcome request"),
            ("way_out",     "address outcome trust endpoints names turns request"),
            ("download",    "outcome request way_out"),
        ],
        exceptions: &[],
    },
    House {
        folder: "clusters/src",
        top: "lib",
        rooms: &[
            ("wanted",     ""),
            ("bounds",     ""),
            ("kubeconfig", ""),
            ("held",       "wanted bounds"),
            ("sight",      "wanted kubeconfig held"),
            ("reference",  "wanted sight"),
            ("crowd",      "wanted bounds sight"),
            ("secret",     "wanted sight reference"),
            ("connection", "bounds kubeconfig"),
            ("site",       "wanted bounds kubeconfig held sight reference secret connection"),
            ("fleet",      "wanted bounds held sight reference crowd secret connection site"),
        ],
        exceptions: &[],
    },
    House {
        folder: "forges/src",
        top: "lib",
        rooms: &[
            ("address",          ""),
            ("names",            ""),
            ("outcome",          ""),
            ("pulls",            "names outcome"),
            ("call",             "address outcome"),
            ("git",              "address names outcome call"),
            ("bitbucket_server", "address names outcome pulls call"),
            ("gitea",            "address names outcome pulls call"),
            ("github",           "address names outcome pulls call"),
            ("gitlab",           "address names outcome pulls call"),
            ("forge",            "address names outcome pulls call git bitbucket_server gitea github gitlab"),
        ],
        exceptions: &[],
    },
    House {
        folder: "gate-controller/src",
        top: "lib",
        rooms: &[
            ("cluster",    ""),
            ("observe",    "cluster"),
            ("lease",      "cluster observe"),
            ("tell",       "cluster observe"),
            ("artifacts",  "cluster observe lease tell"),
            ("serve",      "cluster observe tell"),
            ("act",        "cluster observe lease tell artifacts"),
            ("controller", "cluster observe lease tell artifacts serve act"),
        ],
        exceptions: &[],
    },
    House {
        folder: "cli/src",
        top: "main",
        rooms: &[
            ("clock",     ""),
            ("outcome",   ""),
            ("output",    ""),
            ("arguments", ""),
            ("instant",   "clock"),
            ("files",     "output"),
            ("converted", "output"),
            ("picture",   "output instant"),
            ("cluster",   "clock arguments instant"),
            ("view",      "arguments instant cluster"),
            ("explain",   "output instant view"),
            ("command",   "clock outcome output arguments instant files converted picture cluster view explain"),
        ],
        exceptions: &[],
    },
];

/// How many rooms there are.
pub(super) fn count() -> usize {
    HOUSES.iter().map(|house| house.rooms.len()).sum()
}

/// What is wrong with the rooms of the workspace at `root`.
pub(super) fn broken(root: &Path) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for house in HOUSES {
        let (rooms, uses) = house.read(root)?;
        broken.extend(house.misplaced(&rooms));
        broken.extend(house.forbidden(&uses));
        broken.extend(house.unused(&uses));
    }
    Ok(broken)
}

impl House {
    /// The rooms that there are, and all that they use of each other: file by file, as the compiler
    /// finds them from the top on.
    fn read(&self, root: &Path) -> Result<(Vec<String>, Vec<Use>)> {
        let read = |name: &str, module: &[String]| {
            let file = format!("{}/{name}.rs", self.folder);
            let text = fs::read_to_string(root.join(&file));
            let text = text.with_context(|| format!("cannot read the module {file}"))?;
            Source::read(&file, &text, module).with_context(|| format!("{file} is not Rust"))
        };
        let top = read(self.top, &[])?;
        let (mut modules, mut uses) = (top.modules.clone(), top.uses);
        while let Some(module) = modules.pop() {
            let source = read(&module.join("/"), &module)?;
            modules.extend(source.modules);
            uses.extend(source.uses);
        }
        Ok((top.modules.concat(), uses))
    }

    /// Rooms that are not in the table, and the other way round.
    fn misplaced(&self, rooms: &[String]) -> Vec<String> {
        let (folder, table) = (self.folder, file!());
        let new = rooms.iter().filter(|room| !self.has(room)).map(|room| {
            format!("{folder}: {room} is in no table: add it to {table}, with the rooms it may use")
        });
        let known = |room: &str| rooms.iter().any(|other| other == room);
        let gone = self.rooms.iter().filter(|(room, _)| !known(room));
        let gone =
            gone.map(|(room, _)| format!("{folder}: no room {room}: take it out of {table}"));
        new.chain(gone).collect()
    }

    fn forbidden(&self, uses: &[Use]) -> Vec<String> {
        let allowed = |one: &&Use| self.edges().any(|edge| one.is_along(edge));
        let forbidden = uses.iter().filter(|one| !allowed(one));
        let message = |Use { place, room, path }: &Use| {
            let remedy = if path.split("::").next().is_some_and(|first| self.has(first)) {
                "move what both need below both, or into one of them"
            } else {
                "name it by its room, not at the top of the crate"
            };
            format!("{place}: {room} must not use {path}: {remedy}")
        };
        forbidden.map(message).collect()
    }

    /// What the table allows and nobody needs: left in, it would let two rooms entangle unseen.
    fn unused(&self, uses: &[Use]) -> Vec<String> {
        let (folder, table) = (self.folder, file!());
        let needed = |edge| uses.iter().any(|one| one.is_along(edge));
        let unused = self.edges().filter(|edge| !needed(*edge));
        let message = |(room, part)| {
            format!(
                "{folder}/{room}.rs: {room} may use {part}, and does not: take that out of {table}, \
                 and out of the first lines of the room"
            )
        };
        unused.map(message).collect()
    }

    fn has(&self, room: &str) -> bool {
        self.rooms.iter().any(|(name, _)| *name == room)
    }

    /// Every room with each of what it may use.
    fn edges(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let rows = self.rooms.iter();
        let edges = rows.flat_map(|(room, uses)| uses.split(' ').map(move |other| (*room, other)));
        let edges = edges.filter(|(_, other)| !other.is_empty());
        edges.chain(self.exceptions.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUSE: House = House {
        folder: "h/src",
        top: "lib",
        rooms: &[("low", ""), ("middle", "low"), ("high", "low middle")],
        exceptions: &[("middle", "high::nested")],
    };

    fn uses(module: &str, text: &str) -> Vec<Use> {
        let module: Vec<_> = module.split("::").map(str::to_owned).collect();
        let file = format!("h/src/{}.rs", module.join("/"));
        Source::read(&file, text, &module).unwrap().uses
    }

    #[test]
    fn a_use_that_leads_up_is_named_with_its_place_and_a_remedy() {
        let uses = uses("low::words", "use std::fmt;\n\nuse crate::high::Thing;");
        assert_eq!(
            HOUSE.forbidden(&uses),
            ["h/src/low/words.rs:3: low must not use high::Thing: \
              move what both need below both, or into one of them"]
        );
    }

    #[test]
    fn rooms_of_the_table_may_be_used() {
        let uses = uses(
            "high",
            "use crate::{low, middle::Thing}; use crate::high::a;",
        );
        assert_eq!(HOUSE.forbidden(&uses), [""; 0]);
    }

    #[test]
    fn an_exception_is_for_one_module() {
        let right = uses("middle", "use crate::high::nested::{self, Thing};");
        assert_eq!(HOUSE.forbidden(&right), [""; 0]);
        for text in ["use crate::high::other;", "use crate::high::nested_too;"] {
            assert_eq!(HOUSE.forbidden(&uses("middle", text)).len(), 1, "{text}");
        }
    }

    #[test]
    fn what_the_top_exports_again_is_taken_from_its_room() {
        for text in ["use crate::Thing;", "use crate::*;", "use crate::{self};"] {
            let wrong = HOUSE.forbidden(&uses("high", text));
            assert!(wrong[0].contains("name it by its room, not"), "{wrong:?}");
        }
    }

    #[test]
    fn an_edge_or_exception_that_nobody_needs_is_named() {
        let mut all = uses("middle", "use crate::low; use crate::high::nested;");
        all.extend(uses("high", "use crate::low;"));
        let unused = HOUSE.unused(&all);
        assert_eq!(unused.len(), 1);
        assert!(
            unused[0].starts_with("h/src/high.rs: high may use middle, and does not: take"),
            "{unused:?}"
        );
        assert_eq!(HOUSE.unused(&[]).len(), 4);
    }

    #[test]
    fn a_new_room_needs_a_place_and_one_that_is_gone_leaves_it() {
        let rooms = ["low", "middle", "new"].map(str::to_owned);
        let wrong = HOUSE.misplaced(&rooms);
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].starts_with("h/src: new is in no table: add it to xtask/"));
        assert!(wrong[1].starts_with("h/src: no room high: take"));
    }

    #[test]
    fn every_row_names_rooms_above_it_in_the_table() {
        for house in HOUSES {
            for (index, (room, uses)) in house.rooms.iter().enumerate() {
                let mut below = house.rooms[..index].iter().map(|(below, _)| *below);
                let known = |other| below.any(|below| below == other);
                assert!(uses.split_whitespace().all(known), "{room}: {uses}");
            }
        }
    }
}
