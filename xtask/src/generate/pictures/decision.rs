//! `docs/pictures/decision.svg`: the way of one decision, from a window's start to a pinned child.
//!
//! What comes in: the steps, in their order. What goes out: a picture in which each step has its file
//! and its function, and each arrow what is handed on. Each of these is looked up in the sources, so
//! that a picture of code that has moved is not drawn.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::super::Generated;
use super::Canvas;
use crate::cargo::root;

const PATH: &str = "docs/pictures/decision.svg";

const WIDTH: u32 = 960;
const MARGIN: u32 = 16;
const BOX: (u32, u32) = (560, 46);
/// Between two boxes, where an arrow is drawn.
const GAP: u32 = 26;
/// Where the texts beside a box begin.
const BESIDE: u32 = MARGIN + BOX.0 + 20;

const STYLE: &str = "\
.code { font: 12px ui-monospace, Menlo, Consolas, monospace }
.pure { fill: #ecfdf5; stroke: #059669 }
.acts { fill: #eff6ff; stroke: #3b82f6 }
@media (prefers-color-scheme: dark) { .pure { fill: #022c22 } .acts { fill: #172554 } }
";

/// One step on the way.
struct Step {
    file: &'static str,
    /// A function of that file.
    function: &'static str,
    does: &'static str,
    /// A type that is handed to the next step. It is named in this step's file. None: only the news.
    hands_on: Option<&'static str>,
}

/// The way of a commit through a gate that a window opens.
const STEPS: [Step; 14] = [
    Step {
        file: "gate-controller/src/act/queue.rs",
        function: "take",
        does: "at 09:00 a window starts: the gate is due",
        hands_on: Some("Work"),
    },
    Step {
        file: "gate-controller/src/act/reconcile/gate.rs",
        function: "look",
        does: "the gate, from the caches, with its gatekeepers",
        hands_on: Some("Timestamp"),
    },
    Step {
        file: "core/src/time/timeline.rs",
        function: "at",
        does: "which window covers this instant, and until when",
        hands_on: Some("Moment"),
    },
    Step {
        file: "core/src/gatekeeper/schedule/kind.rs",
        function: "opinion",
        does: "the gatekeeper is open",
        hands_on: Some("Opinion"),
    },
    Step {
        file: "core/src/gate/report.rs",
        function: "report",
        does: "the gate is open: what its status has to say",
        hands_on: Some("Report"),
    },
    Step {
        file: "gate-controller/src/act/reconcile/status.rs",
        function: "write",
        does: "the status, onto the version it was decided from",
        hands_on: None,
    },
    Step {
        file: "gate-controller/src/act/waker.rs",
        function: "concerned",
        does: "everything that names the gate is woken",
        hands_on: Some("Work"),
    },
    Step {
        file: "gate-controller/src/act/reconcile/gated_source/gather.rs",
        function: "gather",
        does: "sources, children and gates, from the caches",
        hands_on: Some("Given"),
    },
    Step {
        file: "core/src/delivery/gated_source/considered.rs",
        function: "consider",
        does: "what is new, and what the gates say of it",
        hands_on: Some("Considered"),
    },
    Step {
        file: "core/src/delivery/choice.rs",
        function: "choose",
        does: "the newest change that every gate set admits",
        hands_on: Some("Choice"),
    },
    Step {
        file: "gate-controller/src/tell/decisions.rs",
        function: "act",
        does: "the decision, in log, audit and events",
        hands_on: Some("Answer"),
    },
    Step {
        file: "core/src/delivery/gated_source/report.rs",
        function: "report",
        does: "the status, and what to do to children",
        hands_on: Some("Report"),
    },
    Step {
        file: "gate-controller/src/act/reconcile/consumer.rs",
        function: "apply",
        does: "the status first: that is the act",
        hands_on: Some("Act"),
    },
    Step {
        file: "gate-controller/src/act/reconcile/gated_source/flux.rs",
        function: "child",
        does: "then the child is pinned, and Flux does the rest",
        hands_on: None,
    },
];

/// The picture.
pub(super) fn file() -> Result<Generated> {
    let mut canvas = Canvas::new(WIDTH);
    let mut top = MARGIN;
    let mut spoken = Vec::new();
    for (place, step) in STEPS.iter().enumerate() {
        step.check()?;
        top = step.draw(&mut canvas, top, place + 1 == STEPS.len());
        spoken.push(format!("{} ({}): {}.", step.file, step.function, step.does));
    }
    let title = "The way of one decision, from a window's start to a pinned child";
    let height = top + MARGIN;
    Ok(canvas.finish(PATH, height, STYLE, (title, &spoken.join(" "))))
}

impl Step {
    /// That there is this file, with this function, and that it names what it hands on.
    fn check(&self) -> Result<()> {
        let file = self.file;
        let text = fs::read_to_string(root().join(file));
        let text = text.with_context(|| format!("the decision's way leads through {file}"))?;
        let has = |word: &str| {
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.into_iter().any(|other| other == word)
        };
        let declared = format!("fn {}", self.function);
        ensure!(
            text.contains(&declared),
            "{file} has no `{declared}` any more"
        );
        if let Some(word) = self.hands_on {
            ensure!(has(word), "{file} does not name `{word}` any more");
        }
        Ok(())
    }

    /// Draws the step, and says where the next one begins.
    fn draw(&self, canvas: &mut Canvas, top: u32, is_last: bool) -> u32 {
        let (width, height) = BOX;
        let class = if self.file.starts_with("core/") {
            "pure"
        } else {
            "acts"
        };
        canvas.rect(class, (MARGIN, top), BOX);
        canvas.text("code", (MARGIN + 12, top + 19), self.file);
        let function = format!("{}()", self.function);
        canvas.text("code name", (MARGIN + 12, top + 37), &function);
        canvas.text("", (BESIDE, top + 27), self.does);
        let end = top + height;
        if is_last {
            return end;
        }
        let (x, to) = (MARGIN + width / 2, end + GAP);
        canvas.add(format_args!(
            "<line x1=\"{x}\" y1=\"{end}\" x2=\"{x}\" y2=\"{to}\"/>"
        ));
        canvas.text(
            "code",
            (x + 12, end + 17),
            self.hands_on.unwrap_or_default(),
        );
        end + GAP
    }
}
