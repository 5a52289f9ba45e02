//! All of it: what is printed, and what is lost.

use std::collections::BTreeSet;

use super::access::access;
use super::commit_status::commit_status;
use super::guard::Guard;
use super::strategy::strategy;
use super::theirs::{Found, Theirs};
use crate::converted::Converted;
use crate::output;

/// What becomes of what there is.
#[derive(Default)]
pub(super) struct Adopted {
    /// In the order in which they are printed.
    pub(super) documents: Vec<Converted>,
    /// What is lost, of which object.
    lost: Vec<(String, String)>,
    /// In the place of how many objects nothing is printed.
    pub(super) refused: usize,
}

/// What its controllers make for themselves.
const MADE: [&str; 3] = ["ChangeTransferPolicy", "PullRequest", "RevertCommit"];

impl Adopted {
    pub(super) fn of(found: &Found) -> Self {
        let mut adopted = Self::default();
        let mut accesses = BTreeSet::new();
        for repository in found.kind("GitRepository") {
            if adopted.take(repository, access(repository, found)) {
                accesses.insert((repository.namespace.as_str(), repository.name.as_str()));
            }
        }
        let guards = Guard::all(found);
        for theirs in found.kind("PromotionStrategy") {
            let own: Vec<_> = guards.iter().filter(|it| it.is_for(theirs)).collect();
            let access = (theirs.namespace.as_str(), theirs.names("gitRepositoryRef"));
            let is_printed =
                adopted.take(theirs, strategy(theirs, accesses.contains(&access), &own));
            for guard in own {
                adopted.guard(guard, is_printed);
            }
        }
        for guard in &guards {
            let mut all = found.kind("PromotionStrategy");
            if !all.any(|it| guard.is_for(it)) {
                let name = guard.of.names("promotionStrategyRef");
                let why = format!(
                    "there is no PromotionStrategy {name} in these files; name its file, too"
                );
                adopted.refuse(guard.of, why);
            }
        }
        for theirs in found.kind("CommitStatus") {
            adopted.take(theirs, commit_status(theirs));
        }
        for theirs in found.kind("ControllerConfiguration") {
            let what = "titles and texts of pull requests are Sluice's own, and intervals are flags and fields";
            adopted.lose(theirs, what.to_owned());
        }
        for theirs in found.all().filter(|it| MADE.contains(&it.kind.as_str())) {
            let what = "Sluice makes its own. Open pull requests are found by their branches";
            adopted.lose(theirs, what.to_owned());
        }
        adopted
    }

    /// Whether there is something to print.
    fn take(&mut self, of: &Theirs, converted: Result<Converted, Vec<String>>) -> bool {
        match converted {
            Ok(converted) => {
                self.add(of, converted);
                true
            }
            Err(mistakes) => {
                self.refused += 1;
                let begin = format!("{of}: ");
                let said = |mistake: String| match mistake.strip_prefix(&begin) {
                    Some(rest) => rest.to_owned(),
                    None => mistake,
                };
                mistakes.into_iter().for_each(|it| self.lose(of, said(it)));
                false
            }
        }
    }

    fn guard(&mut self, guard: &Guard<'_>, is_printed: bool) {
        match &guard.by {
            Err(why) => self.refuse(guard.of, why.clone()),
            Ok(_) if !is_printed => {
                self.refuse(guard.of, "its PromotionStrategy is not printed".to_owned());
            }
            Ok(gates) => {
                for document in &gates.documents {
                    self.add(guard.of, document.clone());
                }
            }
        }
    }

    fn add(&mut self, of: &Theirs, converted: Converted) {
        let lost = converted.comments.iter().filter(|it| it.is_lost);
        let lost: Vec<_> = lost.map(|it| it.text.clone()).collect();
        lost.into_iter().for_each(|what| self.lose(of, what));
        self.documents.push(converted);
    }

    fn refuse(&mut self, of: &Theirs, why: String) {
        self.refused += 1;
        self.lose(of, why);
    }

    fn lose(&mut self, of: &Theirs, what: String) {
        let row = (of.to_string(), what);
        if !self.lost.contains(&row) {
            self.lost.push(row);
        }
    }

    /// What is lost. None: nothing is.
    pub(super) fn table(&self, columns: Option<usize>) -> Option<String> {
        if self.lost.is_empty() {
            return None;
        }
        let head = ["OBJECT", "LOST"].map(str::to_owned).to_vec();
        let rows = self
            .lost
            .iter()
            .map(|(of, what)| vec![of.clone(), what.clone()]);
        let rows = [head].into_iter().chain(rows).collect();
        Some(output::table_with_causes(rows, columns))
    }
}
