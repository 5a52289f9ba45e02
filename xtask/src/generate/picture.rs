//! `docs/pictures/gated-source.svg`: how a change reaches a cluster through a gated source.
//!
//! What comes in: nothing. What goes out: the picture of the README, in which boxes are objects and
//! arrows are the way of a commit.

use std::fmt::Write;

use super::Generated;

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
text { font: 13px system-ui, sans-serif; fill: #1f2937 }
.kind { font-size: 11px; fill: #6b7280 }
.name { font-weight: 600; font-size: 14px }
rect { stroke-width: 1.5; rx: 8 }
.flux { fill: #eff6ff; stroke: #3b82f6 }
.ours { fill: #ecfdf5; stroke: #059669 }
line { stroke: #6b7280; stroke-width: 2; marker-end: url(#head) }
.asks { stroke: #059669; stroke-dasharray: 5 4 }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb } .kind { fill: #9ca3af }
  .flux { fill: #172554 } .ours { fill: #022c22 }
}
";

/// The picture.
pub(super) fn file() -> Generated {
    Generated {
        path: PATH.into(),
        content: draw(),
    }
}

fn draw() -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" role=\"img\" aria-labelledby=\"title description\">\n\
         <!-- Made by `cargo xtask generate`: change the code instead. -->\n\
         <title id=\"title\">{TITLE}</title>\n<desc id=\"description\">{DESCRIPTION}</desc>\n\
         <style>\n{STYLE}</style>\n\
         <defs><marker id=\"head\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 0L10 5L0 10z\" fill=\"#6b7280\"/>\
         </marker></defs>\n"
    );
    let (width, height) = BOX;
    let left = |place: u32| LEFT + place * (width + GAP);
    for (place, object) in (0..).zip(&WAY) {
        object.draw(&mut svg, left(place), TOP);
        if place > 0 {
            let middle = TOP + height / 2;
            arrow(
                &mut svg,
                "",
                (left(place) - GAP, middle),
                (left(place), middle),
            );
        }
    }
    GATE.draw(&mut svg, left(1), GATE_TOP);
    let middle = left(1) + width / 2;
    arrow(&mut svg, "asks", (middle, TOP), (middle, GATE_TOP + height));
    svg.push_str("</svg>\n");
    svg
}

impl Object {
    fn draw(&self, svg: &mut String, left: u32, top: u32) {
        let Self {
            kind,
            name,
            says,
            class,
        } = self;
        let (width, height) = BOX;
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/>"
        );
        let lines = [
            ("kind", *kind),
            ("name", *name),
            ("", says[0]),
            ("", says[1]),
        ];
        for ((class, text), line) in lines.into_iter().zip(0u32..) {
            let (x, y) = (left + 12, top + 22 + line * 20);
            let _ = writeln!(
                svg,
                "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"
            );
        }
    }
}

fn arrow(svg: &mut String, class: &str, from: (u32, u32), to: (u32, u32)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
    );
}
