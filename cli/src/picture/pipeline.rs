//! A Pipeline for a terminal: its environments beside each other, or one below the other where they do not
//! fit.
//!
//! What comes in: the view of a Pipeline, what the terminal can show, a zone and the present instant. What
//! goes out: text.

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use sluice_core::delivery::pipeline::{EnvironmentView, Needs, View, VoteView, target_name};
use sluice_core::revision::short;
use sluice_core::text::words::clean;
use sluice_crds::approval::Vote;
use sluice_crds::pipeline::{EnvironmentState, PullRequestRecord, TargetStatus};
use sluice_crds::pull_request::PullRequestState;

use super::terminal::Look;
use crate::instant::{Zone, age};
use crate::output::{characters, wrapped};

/// The columns before everything.
const INDENT: usize = 2;
/// The columns between two environments.
const GAP: usize = 2;
/// An environment that has fewer columns than this is not drawn beside others.
const NARROW: usize = 24;
/// The most characters of what people have written.
const LONGEST: usize = 200;

/// What a picture is drawn with.
struct Pen<'p> {
    look: Look,
    zone: &'p Zone,
    now: Timestamp,
}

/// An environment: its head, and what is said below it.
struct Block {
    head: String,
    lines: Vec<String>,
}

/// The picture.
pub(crate) fn pipeline(view: &View, look: Look, zone: &Zone, now: Timestamp) -> String {
    let pen = Pen { look, zone, now };
    let mut text = String::new();
    for line in wrapped(&pen.headline(view), look.width) {
        text += &format!("{line}\n");
    }
    for line in pen.troubles(view) {
        for line in wrapped(&line, look.width.saturating_sub(INDENT)) {
            text += &format!("{:INDENT$}{line}\n", "");
        }
    }
    let blocks: Vec<Block> = view.environments.iter().map(|it| pen.block(it)).collect();
    text += &pen.beside(&blocks).unwrap_or_else(|| pen.stacked(&blocks));
    // What people have to open is said in full.
    for (environment, url) in view.environments.iter().filter_map(to_open) {
        text += &format!("pull request for {environment}: {url}\n");
    }
    text
}

/// An environment whose pull request is open, and its page.
fn to_open(environment: &EnvironmentView) -> Option<(&str, &str)> {
    let is_open = environment.state == Some(EnvironmentState::PullRequestOpen);
    let promotion = environment.promotion.as_ref().filter(|_| is_open)?;
    let url = promotion.pull_request.as_ref()?.url.as_deref()?;
    Some((&environment.name, url))
}

/// What an environment is marked with, and its color.
fn mark(environment: &EnvironmentView, unicode: bool) -> (char, Style) {
    let (drawn, plain, style) = match (environment.state, environment.needs) {
        (Some(EnvironmentState::Unknown) | None, _) => ('?', '?', AnsiColor::Magenta.on_default()),
        (Some(EnvironmentState::Waiting | EnvironmentState::Suspended), _) => {
            ('○', 'o', AnsiColor::BrightBlack.on_default())
        }
        (Some(_), Needs::Nothing) => ('✔', '+', AnsiColor::Green.on_default().bold()),
        (Some(_), Needs::Time) => ('●', '*', AnsiColor::Yellow.on_default()),
        (Some(_), Needs::Person) => ('◆', '!', AnsiColor::Yellow.on_default().bold()),
        (Some(_), Needs::Repair) => ('✖', 'x', AnsiColor::Red.on_default().bold()),
    };
    (if unicode { drawn } else { plain }, style)
}

/// The revisions that its targets run, each once.
pub(crate) fn revisions(targets: &[TargetStatus]) -> String {
    let mut known: Vec<String> = Vec::new();
    for target in targets {
        let revision = target.revision.as_deref().map_or("?".to_owned(), short);
        if !known.contains(&revision) {
            known.push(revision);
        }
    }
    known.join(", ")
}

/// A pull request as people name it, such as `platform/apps#412`. A page that is not of a known form is
/// named by its address.
fn called(url: &str) -> String {
    let known = || {
        let (_, path) = url.strip_prefix("https://")?.split_once('/')?;
        let ways = ["/pulls/", "/pull/", "/-/merge_requests/", "/pull-requests/"];
        let found = ways.iter().find_map(|way| path.split_once(way))?;
        let (repository, number) = found;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| format!("{repository}#{number}"))
    };
    known().unwrap_or_else(|| url.to_owned())
}

impl Pen<'_> {
    /// An instant: of this day its hour alone.
    fn when(&self, at: Timestamp) -> String {
        let local = |at: Timestamp| at.to_zoned(self.zone.zone.clone());
        match local(at).date() == local(self.now).date() {
            true => local(at).strftime("%H:%M").to_string(),
            false => self.zone.wall(at),
        }
    }

    fn dot(&self) -> &'static str {
        if self.look.unicode { " · " } else { " - " }
    }

    fn headline(&self, view: &View) -> String {
        let mut parts = vec![view.name.clone()];
        parts.push(match view.app.name == view.name {
            true => view.app.kind.clone(),
            false => format!("{} {}", view.app.kind, view.app.name),
        });
        if view.suspended {
            parts.push("suspended".to_owned());
        }
        match &view.run {
            None => parts.push("no run yet".to_owned()),
            Some(run) => {
                let (since, ago) = (self.when(run.since.0), age(run.since.0, self.now));
                parts.push(format!("run of {} since {since} ({ago})", run.short));
                parts.push(match &run.completed_at {
                    Some(at) => format!("complete since {}", self.when(at.0)),
                    None => format!("{} at {}", run.state.as_str(), run.environment),
                });
            }
        }
        let zone = format!("times in {}", self.zone.name);
        parts.push(zone);
        parts.join(self.dot())
    }

    fn troubles(&self, view: &View) -> Vec<String> {
        let style = AnsiColor::Red.on_default().bold();
        let wrong = view.troubles.iter().cloned();
        let away = view.clusters.iter().filter(|it| !it.reachable).map(|it| {
            let why = it.message.as_deref().unwrap_or("it does not answer");
            let since = self.when(it.since.0);
            format!("{} cannot be read since {since}: {why}", it.cluster)
        });
        let all = wrong.chain(away);
        all.map(|line| format!("{style}!{style:#} {line}"))
            .collect()
    }

    fn block(&self, environment: &EnvironmentView) -> Block {
        let (mark, style) = mark(environment, self.look.unicode);
        let runs = revisions(&environment.targets);
        let head = format!("{} {style}{mark}{style:#} {runs}", environment.name);
        let mut lines = targets(&environment.targets);
        lines.extend(environment.votes.iter().map(|vote| self.vote(vote)));
        let request = environment.promotion.as_ref();
        let request = request.and_then(|it| Some((it.pull_request.as_ref()?, it.at.0)));
        lines.extend(request.and_then(|(request, at)| self.pull_request(request, at)));
        lines.extend(self.waits(environment));
        Block { head, lines }
    }

    fn vote(&self, vote: &VoteView) -> String {
        let verb = match vote.decision {
            Vote::Approve => "approved by",
            Vote::Reject => "rejected by",
        };
        let at = vote.at.as_ref().map(|at| format!(" {}", self.when(at.0)));
        let why = vote.reason.as_deref();
        let why = why.map(|why| format!(": {}", clean(why, LONGEST)));
        let by = clean(&vote.by, LONGEST);
        format!(
            "{verb} {by}{}{}",
            at.unwrap_or_default(),
            why.unwrap_or_default()
        )
    }

    fn pull_request(&self, request: &PullRequestRecord, at: Timestamp) -> Option<String> {
        let url = called(request.url.as_deref()?);
        let state = match request.state.as_ref()? {
            PullRequestState::Pending => "not open yet:",
            PullRequestState::Open => "open:",
            PullRequestState::Merged => "merged:",
            PullRequestState::Closed => "closed:",
            PullRequestState::AlreadyInBase => "not needed:",
            PullRequestState::Missing => "missing:",
        };
        Some(format!("{state} {url} {}", self.when(at)))
    }

    /// What it waits for, in its own words, and until when.
    fn waits(&self, environment: &EnvironmentView) -> Vec<String> {
        let state = match environment.state {
            None | Some(EnvironmentState::Passed | EnvironmentState::Waiting) => return Vec::new(),
            Some(state) => state.as_str(),
        };
        let until = environment.until.as_ref();
        let until = until.map(|at| format!("the answer may change {}", self.when(at.0)));
        let said = format!("{state}: {}", environment.message);
        [Some(said), until].into_iter().flatten().collect()
    }

    /// Beside each other. None: they do not fit.
    fn beside(&self, blocks: &[Block]) -> Option<String> {
        let gaps = GAP * blocks.len().saturating_sub(1);
        let room = self.look.width.checked_sub(INDENT + gaps)?;
        let widths = widths(blocks, room)?;
        let mut columns = Vec::new();
        for (block, width) in blocks.iter().zip(&widths) {
            let lines = block.lines.iter().flat_map(|line| wrapped(line, *width));
            let lines: Vec<String> = lines.collect();
            if lines.iter().any(|line| characters(line) > *width) {
                return None;
            }
            columns.push(lines);
        }
        let mut text = self.heads(blocks, &widths);
        let rows = columns.iter().map(Vec::len).max().unwrap_or_default();
        for row in 0..rows {
            let mut line = " ".repeat(INDENT);
            for (lines, width) in columns.iter().zip(&widths) {
                let cell = lines.get(row).map_or("", String::as_str);
                let blanks = width + GAP - characters(cell);
                line += &format!("{cell}{:blanks$}", "");
            }
            text += &format!("{}\n", line.trim_end());
        }
        Some(text)
    }

    /// The heads, with an arrow from each to the next.
    fn heads(&self, blocks: &[Block], widths: &[usize]) -> String {
        let (dash, tip) = if self.look.unicode {
            ("─", "▶")
        } else {
            ("-", ">")
        };
        let mut line = " ".repeat(INDENT);
        for (place, (block, width)) in blocks.iter().zip(widths).enumerate() {
            line += &block.head;
            if place + 1 < blocks.len() {
                let dashes = dash.repeat(width + GAP - characters(&block.head) - 3);
                line += &format!(" {dashes}{tip} ");
            }
        }
        line + "\n"
    }

    /// One below the other.
    fn stacked(&self, blocks: &[Block]) -> String {
        let (beside, tip) = if self.look.unicode {
            ("│", "▼")
        } else {
            ("|", "v")
        };
        let mut text = String::new();
        for (place, block) in blocks.iter().enumerate() {
            let is_last = place + 1 == blocks.len();
            let lead = if is_last { " " } else { beside };
            text += &format!("{:INDENT$}{}\n", "", block.head);
            let room = self.look.width.saturating_sub(INDENT + 2);
            for line in block.lines.iter().flat_map(|line| wrapped(line, room)) {
                text += &format!("{:INDENT$}{lead} {line}\n", "");
            }
            if !is_last {
                text += &format!("{:INDENT$}{tip}\n", "");
            }
        }
        text
    }
}

/// Each target with what it runs, and why it does not run it healthily. Versions that all targets share
/// are said once, below them.
fn targets(targets: &[TargetStatus]) -> Vec<String> {
    let first = targets.first().map(|target| &target.versions);
    let shared = first.filter(|first| targets.iter().all(|it| it.versions == **first));
    let mut lines = Vec::new();
    for target in targets {
        let mut line = target_name(target);
        match &target.revision {
            Some(revision) => line += &format!(" {}", short(revision)),
            None => line += " ?",
        }
        if let Some(attempted) = &target.attempted {
            line += &format!(", was told to run {}", short(attempted));
        }
        if let Some(error) = &target.error {
            line += &format!(": {error}");
        }
        lines.push(line);
        if shared.is_none() {
            lines.extend(versions(target).map(|line| format!("  {line}")));
        }
    }
    if shared.is_some() {
        lines.extend(targets.first().into_iter().flat_map(versions));
    }
    lines
}

fn versions(target: &TargetStatus) -> impl Iterator<Item = String> {
    let versions = target.versions.iter();
    versions.map(|(name, text)| format!("{name} {text}"))
}

/// How wide each environment is drawn in so much room. None: one would be too narrow.
fn widths(blocks: &[Block], room: usize) -> Option<Vec<usize>> {
    let least = |block: &Block| characters(&block.head) + 3;
    let natural = |block: &Block| {
        let lines = block.lines.iter().map(|line| characters(line));
        lines.chain([least(block)]).max().unwrap_or_default()
    };
    let most = blocks.iter().map(natural).max()?;
    let capped = |cap: usize| -> Vec<usize> {
        let width = |block| natural(block).min(cap.max(least(block)));
        blocks.iter().map(width).collect()
    };
    let fits = |widths: &Vec<usize>| widths.iter().sum::<usize>() <= room;
    let caps = (NARROW.min(most)..=most).rev();
    caps.map(capped).find(fits)
}

#[cfg(test)]
mod tests;
