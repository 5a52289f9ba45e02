//! `docs/pictures/house.svg`: the crates, floor by floor, with their rooms and what each uses.
//!
//! What comes in: the tables of the floors' check, and the first sentence of each room. What goes out:
//! a list from the roof to the ground. A bow leads from a room to one that it uses; what follows from
//! other bows is left out. No bow leads up: the check of the floors refuses that.

use std::fs;

use anyhow::{Context, Result};

use super::super::Generated;
use super::{Canvas, first_sentence};
use crate::cargo::root;
use crate::floors::{FLOORS, rooms::HOUSES};

const PATH: &str = "docs/pictures/house.svg";

const WIDTH: u32 = 960;
const MARGIN: u32 = 16;
/// The height of a room's row.
const ROW: u32 = 24;
/// Where bows end, and names begin.
const NAMES: u32 = 196;
const PURPOSES: u32 = 304;
/// How many characters of a purpose fit.
const LONGEST: usize = 86;

const STYLE: &str = "\
.floor { fill: #f9fafb; stroke: #d1d5db }
path.way { stroke: #059669; stroke-width: 1.2 }
@media (prefers-color-scheme: dark) { .floor { fill: #111827; stroke: #374151 } }
";

/// A crate of the product, from the ground up: its name, its folder, and what it is.
const CRATES: [(&str, &str, &str); 9] = [
    ("sluice-crds", "crds", "the API"),
    ("sluice-core", "core", "the decisions, pure"),
    ("sluice-egress", "egress", "the one way out"),
    ("sluice-watching", "watching", "what an API server holds"),
    ("sluice-clusters", "clusters", "other clusters"),
    ("sluice-gatekeepers", "gatekeepers", "the evidence"),
    ("sluice-forges", "forges", "the forges, for pull requests"),
    (
        "gate-controller",
        "gate-controller",
        "the only one that writes",
    ),
    ("kubectl-gate", "cli", "the plugin"),
];

/// A room, what it is for, and the places in the list of those that it uses.
struct Room {
    name: &'static str,
    purpose: String,
    uses: Vec<usize>,
}

/// The picture.
pub(super) fn file() -> Result<Generated> {
    let mut canvas = Canvas::new(WIDTH);
    let mut top = MARGIN;
    let mut spoken = String::from("From the roof to the ground:");
    for (package, folder, what) in CRATES.into_iter().rev() {
        let rooms = rooms(folder)?;
        let below = FLOORS.iter().find(|(name, _)| *name == package);
        let below = below.map(|(_, below)| below.replace(' ', ", "));
        let below = below.unwrap_or_default();
        top = draw(&mut canvas, top, (package, folder, what, &below), &rooms);
        let names: Vec<_> = rooms.iter().map(|room| room.name).collect();
        spoken += &format!(" {package}, {what}: {}.", names.join(", "));
    }
    let title = "The crates of Sluice and their rooms";
    Ok(canvas.finish(PATH, top, STYLE, (title, &spoken)))
}

/// The rooms of the crate in `folder`, from the roof down. One without rooms is a row without a name.
fn rooms(folder: &str) -> Result<Vec<Room>> {
    let sources = format!("{folder}/src");
    let purpose = |module: &str| -> Result<String> {
        let path = root().join(format!("{sources}/{module}.rs"));
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        Ok(first_sentence(&text))
    };
    let Some(house) = HOUSES.iter().find(|house| house.folder == sources) else {
        let purpose = purpose("lib")?;
        let (name, uses) = ("", Vec::new());
        return Ok(vec![Room {
            name,
            purpose,
            uses,
        }]);
    };
    let table: Vec<_> = house.rooms.iter().rev().collect();
    let place = |name: &str| table.iter().position(|(other, _)| *other == name);
    let direct = |name: &str| -> Vec<usize> {
        let row = table.iter().find(|(other, _)| *other == name);
        let uses = row.map_or("", |(_, uses)| uses);
        uses.split_whitespace().filter_map(place).collect()
    };
    // Rows of the table name rooms of earlier rows alone, so that this ends.
    let reaches = |from: usize, to: usize| {
        let mut open = direct(table[from].0);
        while let Some(next) = open.pop() {
            if next == to {
                return true;
            }
            open.extend(direct(table[next].0));
        }
        false
    };
    let room = |(name, _): &&(&'static str, &str)| {
        let all = direct(name);
        let implied = |to: &usize| all.iter().any(|other| reaches(*other, *to));
        Ok(Room {
            name,
            purpose: purpose(name)?,
            uses: all.iter().copied().filter(|to| !implied(to)).collect(),
        })
    };
    table.iter().map(room).collect()
}

/// Draws a crate, and says where the next one begins.
fn draw(
    canvas: &mut Canvas,
    top: u32,
    (package, folder, what, below): (&str, &str, &str, &str),
    rooms: &[Room],
) -> u32 {
    let count = u32::try_from(rooms.len()).unwrap_or(u32::MAX);
    let height = (count + 1) * ROW + MARGIN;
    canvas.rect("floor", (MARGIN, top), (WIDTH - 2 * MARGIN, height));
    let line = top + 20;
    canvas.text("name", (2 * MARGIN, line), package);
    let below = if below.is_empty() {
        "none of ours"
    } else {
        below
    };
    let about = format!("{folder}/: {what}; depends on {below}");
    canvas.text("small", (NAMES, line), &about);
    let middle = |place: usize| {
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        top + 20 + (place + 1) * ROW
    };
    for (place, room) in rooms.iter().enumerate() {
        canvas.text("name", (NAMES, middle(place)), room.name);
        canvas.text("", (PURPOSES, middle(place)), &shortened(&room.purpose));
        for to in &room.uses {
            bow(canvas, middle(place) - 4, middle(*to) - 6);
        }
    }
    top + height + MARGIN / 2
}

/// From a room to one further down, the further to the left the longer it is.
fn bow(canvas: &mut Canvas, from: u32, to: u32) {
    let (start, reach) = (NAMES - 6, (to - from) * 2 / 3);
    let left = start.saturating_sub(reach.max(18)).max(MARGIN);
    canvas.add(format_args!(
        "<path class=\"way\" d=\"M{start} {from}C{left} {from} {left} {to} {start} {to}\"/>"
    ));
}

/// As much of a purpose as fits, up to the end of a part of the sentence.
fn shortened(purpose: &str) -> String {
    if purpose.chars().count() <= LONGEST {
        return purpose.to_owned();
    }
    let fits: String = purpose.chars().take(LONGEST).collect();
    let end = fits.rfind([',', ';', ':']).or_else(|| fits.rfind(' '));
    format!("{} …", &fits[..end.unwrap_or(fits.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_is_on_the_floors_and_every_house_is_drawn() {
        for (package, _, _) in CRATES {
            assert!(FLOORS.iter().any(|(name, _)| *name == package), "{package}");
        }
        for house in HOUSES {
            let drawn =
                |(_, folder, _): &(&str, &str, &str)| format!("{folder}/src") == house.folder;
            assert!(CRATES.iter().any(drawn), "{}", house.folder);
        }
    }

    #[test]
    fn no_bow_leads_up_and_none_follows_from_others() {
        for house in HOUSES {
            let folder = house.folder.trim_end_matches("/src");
            for (place, room) in rooms(folder).unwrap().iter().enumerate() {
                assert!(!room.purpose.is_empty(), "{folder}/{}", room.name);
                assert!(
                    room.uses.iter().all(|to| *to > place),
                    "{folder}/{}",
                    room.name
                );
            }
        }
    }

    #[test]
    fn a_long_purpose_ends_at_a_part_of_the_sentence() {
        let long = format!("What is short, {}", "word ".repeat(40));
        assert!(shortened(&long).ends_with('…'));
        assert!(shortened(&long).chars().count() <= LONGEST + 2);
        assert_eq!(shortened("short"), "short");
    }
}
