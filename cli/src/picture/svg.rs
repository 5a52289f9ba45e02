//! The picture for a page: the same days, drawn to the second.

use std::fmt::Write;

use jiff::Timestamp;
use jiff::civil::Date;

use super::{Kind, Picture, part_of, whole};
use crate::instant::Zone;

/// The height of a row, the width of an hour, the width of a day's name.
const ROW: usize = 22;
const HOUR: usize = 26;
const LABEL: usize = 96;
const MARGIN: usize = 16;
/// The width of the hours beside a day, and how many characters that is.
const NOTE: usize = 128;
const ROOM: usize = 16;
const WIDTH: usize = MARGIN * 2 + LABEL + HOUR * 24 + NOTE;

/// All pictures, one below the other.
pub(crate) fn svg(pictures: &[Picture]) -> String {
    let mut body = String::new();
    let mut y = MARGIN;
    for picture in pictures {
        y = draw(picture, &mut body, y);
    }
    y = legend(pictures, &mut body, y);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" \
         font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n{body}</svg>\n",
        height = y + MARGIN
    )
}

fn color(kind: Kind) -> &'static str {
    match kind {
        Kind::Open => "#2ea043",
        Kind::Closed => "#8e1519",
        Kind::ForcedOpen => "#56d364",
        Kind::ForcedClosed => "#ff7b72",
        Kind::Unknown => "#6e40c9",
    }
}

fn draw(picture: &Picture, body: &mut String, top: usize) -> usize {
    let mut y = top + ROW / 2;
    let (state, change) = picture.first_change();
    let state = state
        .map(|state| format!(" is {state}"))
        .unwrap_or_default();
    let until = change
        .map(|at| format!(" until {}", picture.zone.text(at)))
        .unwrap_or_default();
    text(
        body,
        MARGIN,
        y,
        "#f0f6fc",
        &format!("{}{state}{until}", picture.name),
    );
    y += ROW;
    for hour in (0..=24).step_by(3) {
        text(
            body,
            MARGIN + LABEL + hour * HOUR - 6,
            y,
            "#8b949e",
            &hour.to_string(),
        );
    }
    y += ROW / 3;
    for day in picture.days() {
        row(picture, day, body, y);
        y += ROW;
    }
    y += ROW / 2;
    for (heading, causes) in picture.causes() {
        for cause in causes {
            text(
                body,
                MARGIN,
                y + 4,
                "#8b949e",
                &format!("{heading}: {cause}"),
            );
            y += ROW - 4;
        }
    }
    y + ROW / 2
}

fn row(picture: &Picture, day: Date, body: &mut String, y: usize) {
    text(
        body,
        MARGIN,
        y + 15,
        "#f0f6fc",
        &day.strftime("%a %d %b").to_string(),
    );
    let beside = MARGIN + LABEL + HOUR * 24 + 12;
    text(body, beside, y + 15, "#8b949e", &picture.hours(day, ROOM));
    for (span, stretch) in picture.within(whole(day, &picture.zone)) {
        let (from, to) = (
            x(span.start, day, &picture.zone),
            x(span.end, day, &picture.zone),
        );
        let fill = color(Kind::of(stretch));
        // Writing to a String does not fail.
        let _ = writeln!(
            body,
            "<rect x=\"{from:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{}\" fill=\"{fill}\"/>",
            y + 2,
            (to - from).max(0.1),
            ROW - 4
        );
    }
    if whole(day, &picture.zone).contains(picture.now) {
        let x = x(picture.now, day, &picture.zone);
        let _ = writeln!(
            body,
            "<line x1=\"{x:.1}\" y1=\"{y}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"#f0f6fc\" stroke-width=\"2\"/>",
            y + ROW
        );
    }
}

/// How far to the right an instant of `day` is: by the clocks on the wall.
#[allow(clippy::cast_precision_loss, reason = "minutes of a day, and pixels")]
fn x(at: Timestamp, day: Date, zone: &Zone) -> f64 {
    let hour = (0..24u16).find(|hour| part_of(day, *hour, 24, zone).contains(at));
    let left = (MARGIN + LABEL) as f64;
    let Some(hour) = hour else {
        return left + (HOUR * 24) as f64;
    };
    let span = part_of(day, hour, 24, zone);
    let share = at.duration_since(span.start).as_secs_f64()
        / span.end.duration_since(span.start).as_secs_f64();
    left + (f64::from(hour) + share) * HOUR as f64
}

fn legend(pictures: &[Picture], body: &mut String, y: usize) -> usize {
    let meanings = [
        (Kind::Open, "open"),
        (Kind::Closed, "closed"),
        (Kind::ForcedOpen, "forced open"),
        (Kind::ForcedClosed, "forced closed"),
        (Kind::Unknown, "closed, as far as is known here"),
    ];
    let drawn = || {
        pictures
            .iter()
            .flat_map(|picture| &picture.stretches.list)
            .map(Kind::of)
    };
    let mut x = MARGIN;
    for (kind, meaning) in meanings
        .into_iter()
        .filter(|(kind, _)| drawn().any(|drawn| drawn == *kind))
    {
        let fill = color(kind);
        let _ = writeln!(
            body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{fill}\"/>"
        );
        text(body, x + 18, y + 10, "#8b949e", meaning);
        x += 18 + (meaning.len() + 3) * 8;
    }
    y + ROW / 2
}

fn text(body: &mut String, x: usize, y: usize, fill: &str, words: &str) {
    let words = words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let _ = writeln!(
        body,
        "<text x=\"{x}\" y=\"{y}\" fill=\"{fill}\">{words}</text>"
    );
}
