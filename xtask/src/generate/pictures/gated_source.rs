//! `docs/pictures/gated-source.svg`: how a change reaches a cluster through a gated source.
//!
//! What comes in: nothing. What goes out: the picture of the README, in which boxes are objects and
//! arrows are the way of a commit.

use super::super::Generated;
use super::Canvas;

const PATH: &str = "docs/pictures/gated-source.svg";

const WIDTH: u32 = 920;
const HEIGHT: u32 = 280;
const BOX: (u32, u32) = (190, 96);
/// Between two boxes, where an arrow is drawn.
const GAP: u32 = 46;
const LEFT: u32 = 10;
const TOP: u32 = 150;
/// Of the gate, which stands over the arrow that it guards.
const GATE_TOP: u32 = 12;

const TITLE: &str = "How a gated source holds a commit back";
const DESCRIPTION: &str = "Flux polls the GitRepository app-upstream, whose newest commit is 9d8c7b6. \
    The GatedSource app asks the Gate production, which is closed until Monday at nine, so the \
    GitRepository app stays pinned to commit 4f2a9c1. The Kustomization app applies that commit and \
    corrects drift, whether the gate is open or closed.";

/// An object: its kind, its name, what it is for, and what it says in the example.
struct Object {
    kind: &'static str,
    name: &'static str,
    says: [&'static str; 2],
    class: &'static str,
}

/// From where changes come to where they go.
const WAY: [Object; 4] = [
    Object {
        kind: "GitRepository",
        name: "app-upstream",
        says: ["yours; Flux polls it", "newest: 9d8c7b6"],
        class: "flux",
    },
    Object {
        kind: "GatedSource",
        name: "app",
        says: ["asks before it moves on", "9d8c7b6 waits"],
        class: "ours",
    },
    Object {
        kind: "GitRepository",
        name: "app",
        says: ["made by Sluice, pinned", "serves 4f2a9c1"],
        class: "flux",
    },
    Object {
        kind: "Kustomization",
        name: "app",
        says: ["yours; applies 4f2a9c1", "and corrects drift"],
        class: "flux",
    },
];

const GATE: Object = Object {
    kind: "Gate",
    name: "production",
    says: ["Closed until Mon 09:00", "no deploys on Fridays"],
    class: "ours",
};

const STYLE: &str = "\
.kind { font-size: 11px; fill: #6b7280 }
.asks { stroke: #059669; stroke-dasharray: 5 4 }
@media (prefers-color-scheme: dark) { .kind { fill: #9ca3af } }
";

/// The picture.
pub(super) fn file() -> Generated {
    let mut canvas = Canvas::new(WIDTH);
    let (width, height) = BOX;
    let left = |place: u32| LEFT + place * (width + GAP);
    for (place, object) in (0..).zip(&WAY) {
        object.draw(&mut canvas, left(place), TOP);
        if place > 0 {
            let middle = TOP + height / 2;
            let (from, to) = ((left(place) - GAP, middle), (left(place), middle));
            arrow(&mut canvas, "", from, to);
        }
    }
    GATE.draw(&mut canvas, left(1), GATE_TOP);
    let middle = left(1) + width / 2;
    arrow(
        &mut canvas,
        "asks",
        (middle, TOP),
        (middle, GATE_TOP + height),
    );
    canvas.finish(PATH, HEIGHT, STYLE, (TITLE, DESCRIPTION))
}

impl Object {
    fn draw(&self, canvas: &mut Canvas, left: u32, top: u32) {
        let Self {
            kind,
            name,
            says,
            class,
        } = self;
        canvas.rect(class, (left, top), BOX);
        let lines = [
            ("kind", *kind),
            ("name", *name),
            ("", says[0]),
            ("", says[1]),
        ];
        for ((class, text), line) in lines.into_iter().zip(0u32..) {
            canvas.text(class, (left + 12, top + 22 + line * 20), text);
        }
    }
}

fn arrow(canvas: &mut Canvas, class: &str, (x1, y1): (u32, u32), (x2, y2): (u32, u32)) {
    canvas.add(format_args!(
        "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
    ));
}
