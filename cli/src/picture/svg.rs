//! The picture for a page: the same days, drawn to the second.

use std::fmt::Write;

use jiff::Timestamp;
use jiff::civil::Date;

use super::clocks;
use super::closing::{Causes, closing};
use super::days::{Kind, Picture, part_of, whole};
use super::hours::days_text;
use crate::instant::Zone;
use crate::output;

/// The height of a row, the width of an hour, the width of a day's name.
const ROW: usize = 22;
const HOUR: usize = 26;
const LABEL: usize = 96;
const MARGIN: usize = 16;
/// The width of the hours beside a day, and how many characters that is.
const NOTE: usize = 176;
const ROOM: usize = 22;
pub(super) const WIDTH: usize = MARGIN * 2 + LABEL + HOUR * 24 + NOTE;
/// How many characters there are from one margin to the other.
const COLUMNS: usize = (WIDTH - MARGIN * 2) * 10 / 73;
/// How far the lines of a text stand in that follow the first.
const INDENT: usize = 18;

const BRIGHT: &str = "#f0f6fc";
const DIM: &str = "#8b949e";

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
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"calendar-title \
         calendar-days\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" \
         font-size=\"12\">\n{}\
         <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n{body}</svg>\n",
        spoken(pictures),
        height = y + MARGIN
    )
}

/// The title, and all days in words, for people who cannot see the picture.
fn spoken(pictures: &[Picture]) -> String {
    let names: Vec<&str> = pictures.iter().map(|picture| &*picture.name).collect();
    let title = format!("The coming days of {}", names.join(", "));
    let mut days = String::new();
    for picture in pictures {
        let all = picture.days();
        if let (Some(first), Some(last)) = (all.first(), all.last()) {
            let when = days_text(*first, *last, &picture.zone);
            days.push_str(&format!("{}, {when}.\n", picture.name));
        }
        for day in all {
            let causes = closing(picture, day);
            let because = match causes.is_empty() {
                true => String::new(),
                false => format!(" ({})", causes.join("; ")),
            };
            let hours = picture.hours(day, usize::MAX);
            days.push_str(&format!("{}: {hours}{because}.\n", named(day)));
        }
        days.extend(picture.cut_off());
    }
    format!(
        "<title id=\"calendar-title\">{}</title>\n<desc id=\"calendar-days\">{}</desc>\n",
        escaped(&title),
        escaped(days.trim_end())
    )
}

fn color(kind: Kind) -> &'static str {
    match kind {
        Kind::Open => "#2ea043",
        Kind::Closed => "#8e1519",
        Kind::ForcedOpen => "#56d364",
        Kind::ForcedClosed => "#ff7b72",
        Kind::Conditional => "#1f6feb",
        Kind::Unknown => "#6e40c9",
    }
}

fn draw(picture: &Picture, body: &mut String, top: usize) -> usize {
    let headline = picture.headline(|state| state.to_string(), true);
    let headline = format!("{}{headline}", picture.name);
    let mut y = paragraph(body, top + ROW / 2, BRIGHT, &headline) + 4;
    for hour in (0..=24).step_by(3) {
        let x = MARGIN + LABEL + hour * HOUR - 6;
        text(body, x, y, DIM, &hour.to_string());
    }
    y += ROW / 3;
    // Causes are written below, where there is room for them.
    let beside = Causes::of(picture, 0);
    for day in picture.days() {
        y = row(picture, day, &beside, body, y);
    }
    y += ROW;
    for (heading, causes) in picture.causes() {
        for cause in causes {
            let number = beside.number(cause).map(|number| format!("{number} "));
            let number = number.unwrap_or_default();
            y = paragraph(body, y, DIM, &format!("{heading}: {number}{cause}"));
        }
    }
    if let Some(until_when) = picture.cut_off() {
        y = paragraph(body, y, DIM, &until_when);
    }
    y + ROW / 2
}

/// Draws a day, and returns where the next one begins.
fn row(picture: &Picture, day: Date, beside: &Causes<'_>, body: &mut String, y: usize) -> usize {
    text(body, MARGIN, y + 15, BRIGHT, &named(day));
    let causes = beside.beside(day);
    let room = ROOM.saturating_sub(causes.chars().count() + 1);
    let note = format!("{} {causes}", picture.hours(day, room));
    let left = MARGIN + LABEL + HOUR * 24 + 12;
    text(body, left, y + 15, DIM, note.trim_end());
    let whole = whole(day, &picture.zone);
    let x = |at| x(at, day, &picture.zone);
    for (span, stretch) in picture.within(whole) {
        let (from, to) = (x(span.start), x(span.end));
        // Writing to a String does not fail.
        let _ = writeln!(
            body,
            "<rect x=\"{from:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{}\" fill=\"{}\"><title>{}</title></rect>",
            y + 2,
            (to - from).max(0.1),
            ROW - 4,
            color(Kind::of(stretch)),
            escaped(&stretch.causes.join("; "))
        );
    }
    if whole.contains(picture.now) {
        let x = x(picture.now);
        let _ = writeln!(
            body,
            "<line x1=\"{x:.1}\" y1=\"{y}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"{BRIGHT}\" stroke-width=\"2\"/>",
            y + ROW
        );
    }
    let mut next = y + ROW;
    for change in clocks::changes(day, &picture.zone) {
        let words = change.text(note.contains(clocks::SECOND_TIME));
        text(body, MARGIN + LABEL, next + 12, DIM, &words);
        next += ROW - 4;
    }
    next
}

fn named(day: Date) -> String {
    day.strftime("%a %d %b").to_string()
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
    let drawn = |kind: &Kind| {
        let stretches = pictures.iter().flat_map(|picture| &picture.stretches.list);
        stretches.map(Kind::of).any(|drawn| drawn == *kind)
    };
    let mut x = MARGIN;
    for kind in Kind::ALL.into_iter().filter(drawn) {
        let _ = writeln!(
            body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{}\"/>",
            color(kind)
        );
        text(body, x + 18, y + 10, DIM, kind.meaning());
        x += 18 + (kind.meaning().len() + 3) * 8;
    }
    y + ROW / 2
}

/// Lines as long as there is room, and where the next one begins.
fn paragraph(body: &mut String, top: usize, fill: &str, words: &str) -> usize {
    let mut y = top;
    for (n, line) in output::wrapped(words, COLUMNS - 2).iter().enumerate() {
        let x = MARGIN + if n == 0 { 0 } else { INDENT };
        text(body, x, y, fill, line.trim_start());
        y += ROW - 4;
    }
    y
}

fn text(body: &mut String, x: usize, y: usize, fill: &str, words: &str) {
    let _ = writeln!(
        body,
        "<text x=\"{x}\" y=\"{y}\" fill=\"{fill}\">{}</text>",
        escaped(words)
    );
}

fn escaped(words: &str) -> String {
    let words = words.replace('&', "&amp;");
    words.replace('<', "&lt;").replace('>', "&gt;")
}
