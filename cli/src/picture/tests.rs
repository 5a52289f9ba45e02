use std::path::Path;

use jiff::Timestamp;
use jiff::civil::Date;
use rstest::rstest;
use sluice_core::gate::Identity;
use sluice_core::offline::simulate::{Key, Scene};
use sluice_core::time::span::Span;
use sluice_crds::State;

use super::clocks::clock_text;
use super::days::*;
use super::*;
use crate::files::{Content, Input, Source};
use crate::instant::Zone;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The gates of a YAML text, for so many days from `from` on, as they look at `now`.
fn pictures(yaml: &str, days: u16, from: &str, now: &str) -> Vec<Picture> {
    let source = Source {
        origin: "test".to_owned(),
        text: Ok(Content::Text(yaml.to_owned())),
        asked_for: true,
    };
    let input = Input::new(&[source], "default");
    assert!(input.findings().is_empty(), "{:?}", input.findings());
    let world = input.world;
    let picture = |key: &&Key| {
        let mut scene = Scene::new(&world, key, Identity::Trusted, at(from)).unwrap();
        let zone = Zone::of(&scene);
        let span = Span {
            start: at(from),
            end: Picture::end(at(from), days, &zone),
        };
        let stretches = scene.stretches(span);
        Picture {
            name: key.name.clone(),
            zone,
            now: at(now),
            span,
            stretches,
        }
    };
    world.gate_names().iter().map(picture).collect()
}

fn plain(pictures: &[Picture], look: Look) -> String {
    anstream::adapter::strip_str(&terminal(pictures, look)).to_string()
}

fn examples(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// The week that the README shows, in which somebody forces the gate on Friday night.
fn freeze() -> Vec<Picture> {
    let forced = "
  annotations:
    sluice.dev/force: open
    sluice.dev/force-by: alice@example.com
    sluice.dev/force-reason: hotfix 4711
    sluice.dev/force-until: 2026-12-18T15:30:00Z
";
    let yaml = examples("no-deploy-fridays.yaml");
    let gate = yaml.rfind("  name: production\n").unwrap() + "  name: production".len();
    let yaml = format!("{}{}{}", &yaml[..gate], forced.trim_end(), &yaml[gate..]);
    pictures(&yaml, 5, "2026-12-18T14:10:00Z", "2026-12-18T14:10:00Z")
}

const UNICODE: bool = true;

#[rstest]
#[case("at-60", 60, UNICODE)]
#[case("at-80", 80, UNICODE)]
#[case("at-120", 120, UNICODE)]
#[case("ascii-at-80", 80, !UNICODE)]
fn a_week_reads_well_at_any_width(#[case] name: &str, #[case] width: usize, #[case] unicode: bool) {
    let yaml = examples("no-deploy-fridays.yaml") + "---\n" + &examples("holidays.yaml");
    let pictures = pictures(&yaml, 7, "2026-12-16T11:20:00Z", "2026-12-16T11:20:00Z");
    let drawn = plain(&pictures, Look { width, unicode });
    assert!(
        drawn.lines().all(|line| line.chars().count() <= width),
        "{drawn}"
    );
    assert_eq!(drawn.is_ascii(), !unicode);
    insta::assert_snapshot!(name, drawn);
}

/// A gate that changes too often to be looked at up to the end.
#[test]
fn what_was_not_looked_at_is_not_known() {
    let from = "2026-12-14T00:00:00Z";
    let mut pictures = pictures(&examples("no-deploy-fridays.yaml"), 7, from, from);
    let known = at("2026-12-16T12:00:00Z");
    let stretches = &mut pictures[0].stretches;
    stretches.list.retain(|stretch| stretch.span.end <= known);
    stretches.cut_off = Some(known);
    let look = Look {
        width: 120,
        unicode: true,
    };
    let text = plain(&pictures, look);
    let until_when = "It changes too often to be shown beyond Wed 2026-12-16 12:00";
    assert!(text.contains(until_when), "{text}");
    let last = text.lines().find(|line| line.starts_with("Sun 20 Dec"));
    assert!(last.is_some_and(|day| day.ends_with("not known")), "{text}");
    let drawn = svg(&pictures);
    assert_eq!(drawn.matches(until_when).count(), 2, "{drawn}");
}

#[test]
fn a_force_stands_out() {
    insta::assert_snapshot!(plain(
        &freeze(),
        Look {
            width: 120,
            unicode: true
        }
    ));
}

#[test]
fn colors_are_those_of_traffic_lights() {
    insta::assert_snapshot!(
        terminal(
            &freeze(),
            Look {
                width: 80,
                unicode: true
            }
        )
        .replace('\u{1b}', "ESC")
    );
}

#[test]
fn a_page_shows_the_same_days() {
    insta::assert_snapshot!(svg(&freeze()));
}

const NIGHTLY: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: nightly}
spec:
  schedule:
    timeZone: America/New_York
    open: [{cron: 30 1 * * *, duration: 1h}]
";

#[rstest]
#[case::skipped("2026-03-07T17:00:00Z", "2026-03-08", "01:30-03:30", [Cell::All(Kind::Open), Cell::Skipped, Cell::Skipped, Cell::All(Kind::Open), Cell::All(Kind::Closed)])]
#[case::repeated("2026-10-31T17:00:00Z", "2026-11-01", "01:30-01:30*", [Cell::Partly, Cell::All(Kind::Closed), Cell::All(Kind::Closed), Cell::All(Kind::Closed), Cell::All(Kind::Closed)])]
fn the_days_on_which_clocks_change_are_drawn_by_the_clocks(
    #[case] from: &str,
    #[case] day: &str,
    #[case] hours: &str,
    #[case] from_half_past_one: [Cell; 5],
) {
    let picture = pictures(NIGHTLY, 3, from, from).remove(0);
    let day: Date = day.parse().unwrap();
    assert_eq!(picture.cells(day, 48)[3..8], from_half_past_one);
    let open = picture.spans_on(day, |kind| kind == Kind::Open);
    let clock = |at| clock_text(at, day, &picture.zone);
    assert_eq!(
        format!("{}-{}", clock(open[0].start), clock(open[0].end)),
        hours
    );
    let covered: Vec<Span> = (0..48)
        .map(|part| part_of(day, part, 48, &picture.zone))
        .collect();
    assert!(covered.windows(2).all(|pair| pair[0].end == pair[1].start));
}

#[test]
fn a_day_that_a_zone_skips_is_empty() {
    let apia = NIGHTLY.replace("America/New_York", "Pacific/Apia");
    let picture = pictures(&apia, 3, "2011-12-29T10:00:00Z", "2011-12-29T10:00:00Z").remove(0);
    let lost = picture.cells("2011-12-30".parse().unwrap(), 48);
    assert!(lost.iter().all(|cell| *cell == Cell::Skipped), "{lost:?}");
    let drawn = plain(
        &[picture],
        Look {
            width: 80,
            unicode: true,
        },
    );
    assert!(drawn.contains("no such day"), "{drawn}");
}

#[test]
fn what_nobody_here_knows_is_not_drawn_as_closed() {
    let mut picture =
        pictures(NIGHTLY, 1, "2026-11-20T00:00:00Z", "2026-11-20T00:00:00Z").remove(0);
    for stretch in &mut picture.stretches.list {
        stretch.unknown = stretch.answer.state == State::Closed;
    }
    let drawn = plain(
        &[picture],
        Look {
            width: 80,
            unicode: true,
        },
    );
    assert!(drawn.contains("???"), "{drawn}");
    assert!(
        drawn.contains("? closed, as far as is known here"),
        "{drawn}"
    );
    // Headings end before the column in which days begin.
    assert!(drawn.contains("\nnot known:  nightly: "), "{drawn}");
}

#[test]
fn what_the_revision_decides_is_neither_open_nor_closed() {
    let yaml = "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: hours}
spec: {schedule: {open: [{cron: 0 9 * * *, duration: 8h}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: eyes}
spec: {approval: {required: 2, validFor: 2h}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: production}
spec: {gatekeepers: [{name: hours}, {name: eyes}]}
";
    let from = "2026-11-20T00:00:00Z";
    let pictures = pictures(yaml, 2, from, from);
    for width in [60, 80, 120] {
        let drawn = plain(
            &pictures,
            Look {
                width,
                unicode: true,
            },
        );
        assert!(drawn.contains("▒▒▒"), "{drawn}");
        assert!(drawn.contains(" maybe"), "{drawn}");
        assert!(drawn.contains("\ndepends:    "), "{drawn}");
        assert!(drawn.contains("▒ depends on the revision"), "{drawn}");
        let fits = drawn.lines().all(|line| line.chars().count() <= width);
        assert!(fits, "{drawn}");
    }
}

const NIGHT: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: night}
spec:
  schedule:
    timeZone: America/New_York
    open: [{cron: 0 22 * * *, duration: 8h}]
";

#[test]
fn a_night_that_is_open_has_its_hours() {
    let from = "2026-03-07T05:00:00Z";
    let pictures = pictures(NIGHT, 3, from, from);
    insta::assert_snapshot!(plain(
        &pictures,
        Look {
            width: 80,
            unicode: true
        }
    ));
}

#[rstest]
#[case::skipped("2026-03-08T05:00:00Z", "the clocks skip 02:00-03:00")]
#[case::repeated("2026-11-01T04:00:00Z", "the clocks show 01:00-02:00 twice; * marks")]
fn what_the_clocks_do_is_told(#[case] from: &str, #[case] expected: &str) {
    let pictures = pictures(NIGHTLY, 2, from, from);
    for width in [60, 80, 120] {
        let drawn = plain(
            &pictures,
            Look {
                width,
                unicode: true,
            },
        );
        assert_eq!(drawn.matches(expected).count(), 1, "{drawn}");
    }
    assert_eq!(svg(&pictures).matches(expected).count(), 1);
}

/// A freeze with a long reason for each day of the week.
#[rstest]
#[case(60)]
#[case(80)]
#[case(100)]
#[case(120)]
fn every_day_says_what_closes_it_at_any_width(#[case] width: usize) {
    let yaml = examples("no-deploy-fridays.yaml").replace(
        "No deploys on Fridays",
        "Nothing is deployed on a Friday, because nobody is there on the weekend to repair it",
    );
    let from = "2026-12-17T00:00:00Z";
    let pictures = pictures(&yaml, 4, from, from);
    let drawn = plain(
        &pictures,
        Look {
            width,
            unicode: true,
        },
    );
    assert!(!drawn.contains('…'), "{drawn}");
    let day = |name: &str| drawn.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(day("Fri 18 Dec").ends_with("[1]"), "{drawn}");
    assert!(day("Sat 19 Dec").ends_with("[2]"), "{drawn}");
    assert!(
        drawn.contains("[1] no-deploy-fridays: closed by window"),
        "{drawn}"
    );
    let fits = drawn.lines().all(|line| line.chars().count() <= width);
    assert!(fits, "{drawn}");
}

#[test]
fn a_page_can_be_heard_and_clips_nothing() {
    let reason = "Nothing is deployed on a Friday & nobody is there on the weekend to repair it, so that it waits until Monday at nine";
    let yaml = examples("no-deploy-fridays.yaml").replace("No deploys on Fridays", reason);
    let from = "2026-12-17T00:00:00Z";
    let page = svg(&pictures(&yaml, 4, from, from));
    assert!(
        page.contains("<title id=\"calendar-title\">The coming days of production</title>"),
        "{page}"
    );
    assert!(
        page.contains("Sat 19 Dec: closed (no-deploy-fridays: closed by window 'year-end'"),
        "{page}"
    );
    assert!(
        page.contains("production is Closed from Thu 2026-12-17 00:00"),
        "{page}"
    );
    let texts = page
        .lines()
        .filter_map(|line| line.strip_prefix("<text x=\""));
    for text in texts {
        let (x, rest) = text.split_once('"').unwrap();
        let words = rest
            .split_once('>')
            .unwrap()
            .1
            .replace("</text>", "")
            .replace("&amp;", "&");
        let right = x.parse::<f64>().unwrap() + 7.3 * words.chars().count() as f64;
        assert!(right <= svg::WIDTH as f64, "{words}");
    }
}
