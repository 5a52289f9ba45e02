//! How many pods each workload of a Rollout has, as bars.

use anstyle::AnsiColor;
use sluice_core::delivery::rollout::View;
use sluice_core::delivery::rollout::view::Member;
use sluice_crds::rollout::Mode;

use super::{Pen, painted};
use crate::output::characters;

/// The columns of a bar.
const BAR: usize = 20;

impl Pen<'_> {
    /// A line for each workload.
    pub(super) fn bars(&self) -> Vec<String> {
        let View {
            target, sources, ..
        } = self.view;
        let is_pair = !sources.is_empty();
        let called = |member: &Member, role: &str| match is_pair {
            true => format!("{role} {}", member.name),
            false => format!("{} {}", member.kind, member.name),
        };
        let mut lines = vec![(called(target, "target"), self.of_target())];
        let old = sources.iter();
        lines.extend(old.map(|it| (called(it, "source"), self.of_source(it))));
        let width = lines.iter().map(|(name, _)| characters(name)).max();
        let width = width.unwrap_or_default();
        let lines = lines.into_iter();
        lines
            .map(|(name, said)| format!("{name:width$}  {said}").trim_end().to_owned())
            .collect()
    }

    /// As many pods as a whole bar stands for.
    fn whole(&self) -> u32 {
        let view = self.view;
        let counts = [view.size, view.original, view.updated];
        let counts = counts.into_iter().flatten().map(pods);
        let members = view.sources.iter().chain([&view.target]);
        counts
            .chain(members.filter_map(|it| it.pods))
            .max()
            .unwrap_or_default()
    }

    /// A bar: what is good of it, the rest of what is there, and what is not there. None: there is nothing to
    /// compare with.
    fn bar(&self, good: u32, there: u32) -> Option<String> {
        let whole = usize::try_from(self.whole()).ok().filter(|it| *it > 0)?;
        // One pod of many is seen, and all but one are not all.
        let cells = |pods: u32| {
            let pods = usize::try_from(pods).unwrap_or(whole).min(whole);
            match pods {
                0 => 0,
                pods if pods == whole => BAR,
                pods => (pods * BAR / whole).clamp(1, BAR - 1),
            }
        };
        let (full, half, none) = match self.look.unicode {
            true => ("█", "▒", "░"),
            false => ("#", "+", "."),
        };
        let good_cells = cells(good.min(there));
        let there_cells = cells(there).max(good_cells);
        Some(format!(
            "{}{}{}",
            painted(AnsiColor::Green.on_default(), &full.repeat(good_cells)),
            painted(
                AnsiColor::Yellow.on_default(),
                &half.repeat(there_cells - good_cells)
            ),
            painted(
                AnsiColor::BrightBlack.on_default(),
                &none.repeat(BAR - there_cells)
            )
        ))
    }

    fn of_target(&self) -> String {
        let view = self.view;
        let Some(updated) = view.updated else {
            let there = view.target.pods;
            return there
                .map(|pods| self.counted(0, pods, &pods.to_string()))
                .unwrap_or_default();
        };
        let (updated, ready) = (pods(updated), view.ready.map(pods));
        let available = match ready {
            None => String::new(),
            Some(_) if updated == 0 => String::new(),
            Some(ready) if ready >= updated => ", all available".to_owned(),
            Some(ready) => format!(", {ready} available"),
        };
        let size = view.size.unwrap_or_default();
        let said = match view.mode {
            Some(Mode::Update) => format!("{updated} of {size} have the new version{available}"),
            Some(Mode::Scale) => format!("{updated}, to be {size}{available}"),
            Some(Mode::Pair) | None => format!("{updated} of {size}{available}"),
        };
        self.counted(ready.unwrap_or(updated), updated, &said)
    }

    /// Of the old version the pods that are there are as good as they were.
    fn of_source(&self, source: &Member) -> String {
        match source.pods {
            Some(pods) => self.counted(pods, pods, &pods.to_string()),
            None => String::new(),
        }
    }

    fn counted(&self, good: u32, there: u32, said: &str) -> String {
        match self.bar(good, there) {
            Some(bar) => format!("{bar}  {said}"),
            None => said.to_owned(),
        }
    }
}

fn pods(count: i32) -> u32 {
    u32::try_from(count).unwrap_or_default()
}
