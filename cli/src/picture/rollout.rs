//! A Rollout for a terminal: how many pods have the new version, and its batches.
//!
//! What comes in: the view of a Rollout, what the terminal can show, a zone and the present instant. What goes
//! out: text.

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use sluice_core::delivery::rollout::view::{Batch, Phase};
use sluice_core::delivery::rollout::{KIND, View};
use sluice_core::revision::short;
use sluice_core::text::words::clean;
use sluice_crds::rollout::{BatchDecision, Held, HookRecord, MetricRecord, RollingState};

use super::terminal::Look;
use crate::instant::{Zone, length};
use crate::output::{table_with_causes, widths, wrapped};

mod bars;
#[cfg(test)]
mod tests;

/// The columns before everything but the headline.
const INDENT: usize = 2;
/// The most characters of what others have written.
const LONGEST: usize = 300;
/// The blanks between two columns of a table.
const GAP: usize = 3;
/// The place of the gates among the titles.
const GATES: usize = 4;
/// The titles of the table of batches: the last one is for sentences.
const TITLES: [&str; 8] = [
    "BATCH", "PODS", "STATE", "LET OUT", "BY", "WAITED", "WORKED", "BECAUSE",
];

/// What a picture is drawn with.
struct Pen<'p> {
    view: &'p View,
    look: Look,
    zone: &'p Zone,
    now: Timestamp,
}

/// The picture.
pub(crate) fn rollout(view: &View, look: Look, zone: &Zone, now: Timestamp) -> String {
    let pen = Pen {
        view,
        look,
        zone,
        now,
    };
    let mut text = String::new();
    for line in wrapped(&pen.headline(), look.width) {
        text += &format!("{line}\n");
    }
    let trouble = view.trouble.iter();
    let red = AnsiColor::Red.on_default().bold();
    pen.paragraphs(trouble.map(|it| format!("{red}!{red:#} {it}")), &mut text);
    for line in pen.bars() {
        text += &format!("{:INDENT$}{line}\n", "");
    }
    let room = look.width.saturating_sub(INDENT);
    let table = table_with_causes(pen.table(room), Some(room));
    if !table.is_empty() {
        text.push('\n');
        table
            .lines()
            .for_each(|line| text += &format!("{:INDENT$}{line}\n", ""));
    }
    let ending = pen.ending();
    if !ending.is_empty() {
        text.push('\n');
    }
    pen.paragraphs(ending, &mut text);
    text
}

/// Green, yellow or red; plain where nothing is said by it.
fn style(phase: Phase) -> Style {
    match phase {
        Phase::Done | Phase::Passed => AnsiColor::Green.on_default(),
        Phase::Held => AnsiColor::Yellow.on_default().bold(),
        Phase::Failed | Phase::Stopped => AnsiColor::Red.on_default().bold(),
        Phase::Waiting => AnsiColor::BrightBlack.on_default(),
        Phase::Initializing | Phase::Rolling | Phase::Verifying | Phase::Finalizing => Style::new(),
    }
}

fn painted(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

impl Pen<'_> {
    fn dot(&self) -> &'static str {
        if self.look.unicode { " · " } else { " - " }
    }

    /// Sentences, each in lines of its own.
    fn paragraphs(&self, all: impl IntoIterator<Item = String>, text: &mut String) {
        let room = self.look.width.saturating_sub(INDENT);
        for line in all.into_iter().flat_map(|it| wrapped(&it, room)) {
            *text += &format!("{:INDENT$}{line}\n", "");
        }
    }

    /// An instant: of this day its time alone.
    fn when(&self, at: Timestamp) -> String {
        let local = |at: Timestamp| at.to_zoned(self.zone.zone.clone());
        match local(at).date() == local(self.now).date() {
            true => local(at).strftime("%H:%M").to_string(),
            false => self.zone.wall(at),
        }
    }

    /// How long ago.
    fn since(&self, at: Timestamp) -> i64 {
        self.now.duration_since(at).as_secs().max(0)
    }

    fn headline(&self) -> String {
        let view = self.view;
        let mut parts = vec![format!("{KIND} {}/{}", view.namespace, view.name)];
        parts.extend(view.revision.as_deref().map(short));
        parts.push(self.state());
        let progress = view.progress.as_ref();
        parts.extend(progress.map(|progress| format!("{progress} batches")));
        parts.push(format!("times in {}", self.zone.name));
        parts.join(self.dot())
    }

    /// The words of the API, and their color.
    fn state(&self) -> String {
        let Some(state) = self.view.state else {
            return "no controller has looked at it yet".to_owned();
        };
        let style = match state {
            RollingState::RolloutSucceed => AnsiColor::Green.on_default().bold(),
            RollingState::RolloutFailing | RollingState::RolloutFailed => {
                AnsiColor::Red.on_default().bold()
            }
            RollingState::RolloutDeleting | RollingState::RolloutAbandoned => {
                AnsiColor::Yellow.on_default().bold()
            }
            RollingState::VerifyingSpec
            | RollingState::Initializing
            | RollingState::RollingInBatches
            | RollingState::Finalising => Style::new(),
        };
        let batch = self.view.batch_state;
        let batch = batch.filter(|_| state == RollingState::RollingInBatches);
        let batch = batch.map(|batch| format!(", {}", batch.as_str()));
        format!(
            "{}{}",
            painted(style, state.as_str()),
            batch.unwrap_or_default()
        )
    }

    /// Of a spec that is refused there are no batches. Where there is no room for the gates beside the rest, they
    /// are in the sentence below.
    fn table(&self, room: usize) -> Vec<Vec<String>> {
        let wide = self.rows(true);
        let all = widths(&wide);
        let numbers = all.len().saturating_sub(1);
        let beside: usize = all.iter().take(numbers).sum();
        match beside.saturating_sub(GAP) <= room {
            true => wide,
            false => self.rows(false),
        }
    }

    fn rows(&self, with_gates: bool) -> Vec<Vec<String>> {
        let batches = self.view.batches.iter();
        let rows = batches.map(|batch| self.row(batch, with_gates));
        let head = TITLES.map(str::to_owned);
        let mut rows: Vec<Vec<String>> = std::iter::once(head.into()).chain(rows).collect();
        if self.view.batches.is_empty() {
            rows.clear();
        }
        if !with_gates {
            rows.iter_mut().for_each(|row| drop(row.remove(GATES)));
        }
        rows
    }

    fn row(&self, batch: &Batch, with_gates: bool) -> Vec<String> {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let decision = batch.decision.as_ref();
        let count = batch.pods.map(|pods| pods.to_string());
        let gates = decision.map(|it| self.gates(it));
        let time = |seconds: Option<i64>| or_none(seconds.filter(|it| *it > 0).map(length));
        let is_by_gates = decision.is_some_and(|it| !it.decided_by.is_empty());
        let let_out = gates.clone().filter(|_| !with_gates && is_by_gates);
        let let_out = let_out.map(|gates| format!("let out by {gates}"));
        let said = let_out.into_iter().chain(self.because(batch));
        vec![
            batch.batch.to_string(),
            count
                .or_else(|| batch.replicas.clone())
                .unwrap_or_else(|| "rest".to_owned()),
            painted(style(batch.phase), batch.phase.as_str()),
            or_none(decision.map(|it| self.when(it.at.0))),
            or_none(gates),
            time(self.waited(batch)),
            time(self.worked(batch)),
            said.collect::<Vec<_>>().join("; "),
        ]
    }

    /// The gates that have let a batch out. One in its own namespace is named without it.
    fn gates(&self, decision: &BatchDecision) -> String {
        let own = format!("{}/", self.view.namespace);
        let all = decision.decided_by.iter();
        let all = all.map(|gate| gate.strip_prefix(&own).unwrap_or(gate));
        match all.collect::<Vec<_>>().as_slice() {
            [] => "no gate".to_owned(),
            gates => gates.join(", "),
        }
    }

    /// How long it was held, up to now.
    fn waited(&self, batch: &Batch) -> Option<i64> {
        let held = self.view.held.as_ref();
        let held = held.filter(|_| batch.phase == Phase::Held);
        let now = held.map(|held| self.since(held.since.0));
        match (batch.waited, now) {
            (None, None) => None,
            (before, now) => Some(before.unwrap_or(0) + now.unwrap_or(0)),
        }
    }

    /// How long it has taken without that, up to now.
    fn worked(&self, batch: &Batch) -> Option<i64> {
        let began = batch.began.as_ref().filter(|_| is_under_way(batch));
        let now = began.map(|began| self.since(began.0) - batch.waited.unwrap_or(0));
        batch.worked.or(now)
    }

    /// What is said of a batch beside its numbers.
    fn because(&self, batch: &Batch) -> Vec<String> {
        let message = self.view.message.as_ref();
        let message = message.filter(|_| is_under_way(batch));
        // What it waits for is said already.
        let is_said = |it: &&MetricRecord| {
            let name = format!("metric {} ", it.name);
            !message.is_some_and(|message| message.contains(&name))
        };
        let metrics = batch.metrics.iter().filter(is_said);
        let metrics = metrics.map(|it| self.metric(it, batch));
        let hooks = batch.hooks.iter().map(hook);
        let last = batch.last.filter(|_| batch.phase == Phase::Waiting);
        let last = last.map(|last| format!("lastBatchToRollout is {last}"));
        let said = message.cloned().into_iter().chain(hooks).chain(metrics);
        said.chain(last).collect()
    }

    fn metric(&self, metric: &MetricRecord, batch: &Batch) -> String {
        let value = metric.value.as_deref().unwrap_or("has no value");
        let since = metric.within_since.as_ref();
        let since = match since.filter(|_| is_under_way(batch)) {
            Some(since) => format!(", in its range for {}", length(self.since(since.0))),
            None => String::new(),
        };
        format!("metric {} {value}{since}", metric.name)
    }

    /// What holds it, how long it has left, and how it ends.
    fn ending(&self) -> Vec<String> {
        let lines = [self.held(), self.deadline(), self.outcome(), self.left()];
        lines.into_iter().flatten().collect()
    }

    fn held(&self) -> Option<String> {
        let held = self.view.held.as_ref()?;
        let by = held.by.as_ref().map(|by| format!(" by {by}"));
        let since = (self.when(held.since.0), length(self.since(held.since.0)));
        let said = clean(because(held), LONGEST);
        let until = self.view.until.as_ref();
        let until = until.filter(|at| at.0 > self.now && !said.contains(&self.zone.wall(at.0)));
        let until = until.map(|at| format!("; the answer may change {}", self.when(at.0)));
        let style = AnsiColor::Yellow.on_default().bold();
        Some(format!(
            "{} since {} ({}){} ({}): {said}{}",
            painted(style, "Held"),
            since.0,
            since.1,
            by.unwrap_or_default(),
            held.reason,
            until.unwrap_or_default()
        ))
    }

    fn deadline(&self) -> Option<String> {
        let deadline = self.view.deadline.as_ref()?.0;
        let left = |from: Timestamp| length(deadline.duration_since(from).as_secs());
        Some(match &self.view.held {
            Some(held) => format!(
                "Deadline: {} without progress; it stands still while held",
                left(held.since.0)
            ),
            None => format!(
                "Deadline: {} (in {}), unless there is progress",
                self.when(deadline),
                left(self.now)
            ),
        })
    }

    fn outcome(&self) -> Option<String> {
        let outcome = self.view.outcome.as_ref()?;
        let (style, word) = match self.view.state? {
            RollingState::RolloutFailed => (AnsiColor::Red.on_default().bold(), "Failed"),
            RollingState::RolloutFailing => (AnsiColor::Red.on_default().bold(), "Fails"),
            RollingState::VerifyingSpec
            | RollingState::Initializing
            | RollingState::RollingInBatches
            | RollingState::Finalising
            | RollingState::RolloutSucceed
            | RollingState::RolloutAbandoned
            | RollingState::RolloutDeleting => (Style::new(), "Note"),
        };
        Some(format!(
            "{} ({}): {}",
            painted(style, word),
            outcome.reason,
            clean(&outcome.message, LONGEST)
        ))
    }

    /// What becomes of the pods, and what a person can do.
    fn left(&self) -> Option<String> {
        let view = self.view;
        let name = &view.name;
        Some(match (view.state?, view.reverted) {
            _ if view.outdated => {
                "Another spec or run is asked for, and not looked at yet.".to_owned()
            }
            (RollingState::RolloutDeleting, true) => {
                "It is deleted: the old version is brought back first.".to_owned()
            }
            (RollingState::RolloutDeleting, false) => {
                "It is deleted: what a batch has half done is settled first.".to_owned()
            }
            (RollingState::RolloutFailing, true) => "The old version is brought back.".to_owned(),
            (RollingState::RolloutFailed, _) if view.is_refused() => {
                "No workload was changed. Another spec begins another run.".to_owned()
            }
            (RollingState::RolloutFailed, true) => format!(
                "The old version was brought back. To begin another run: kubectl gate retry rollout {name}"
            ),
            (RollingState::RolloutFailed, false) => format!(
                "What is out stays out. To begin another run: kubectl gate retry rollout {name}"
            ),
            (
                RollingState::VerifyingSpec
                | RollingState::Initializing
                | RollingState::RollingInBatches
                | RollingState::Finalising
                | RollingState::RolloutFailing
                | RollingState::RolloutSucceed
                | RollingState::RolloutAbandoned,
                _,
            ) => return None,
        })
    }
}

/// Why it is held, without what stands before it: which batch waits, and for which gate.
fn because(held: &Held) -> &str {
    let said = held.message.as_str();
    let said = said.split_once(" waits: ").map_or(said, |(_, said)| said);
    let by = held.by.as_deref().unwrap_or_default();
    let own = said.strip_prefix("held back by ");
    let own = own.and_then(|it| it.strip_prefix(by)?.strip_prefix(": "));
    own.unwrap_or(said)
}

fn is_under_way(batch: &Batch) -> bool {
    match batch.phase {
        Phase::Initializing | Phase::Rolling | Phase::Verifying | Phase::Finalizing => true,
        Phase::Waiting
        | Phase::Held
        | Phase::Done
        | Phase::Passed
        | Phase::Stopped
        | Phase::Failed => false,
    }
}

fn hook(hook: &HookRecord) -> String {
    let HookRecord {
        name,
        status,
        attempts,
        error,
        ..
    } = hook;
    let said = match (status, error) {
        (Some(status), _) => status.to_string(),
        (None, Some(error)) => clean(error, LONGEST),
        (None, None) => "no answer".to_owned(),
    };
    let tries = if *attempts > 1 {
        format!(", {attempts} tries")
    } else {
        String::new()
    };
    format!("hook {name}: {said}{tries}")
}
