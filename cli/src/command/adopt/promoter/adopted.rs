//! All of it: what is printed, and what is lost.

use std::collections::BTreeSet;

use super::access::{self, access};
use super::commit_status;
use super::guard::{self, Guard};
use super::order::{self, Order};
use super::others::{Other, other};
use super::strategy::strategy;
use super::theirs::{Found, Theirs};
use crate::converted::Converted;
use crate::output;

/// Why nothing is printed in the place of what is for a strategy.
const NOT_PRINTED: &str = "its PromotionStrategy is not printed";

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

/// The namespaces and names of accesses.
type Accesses<'f> = BTreeSet<(&'f str, &'f str)>;

impl Adopted {
    pub(super) fn of(found: &Found) -> Self {
        let mut adopted = Self::default();
        let accesses = adopted.accesses(found);
        let guards = Guard::all(found);
        for theirs in found.kind("PromotionStrategy") {
            adopted.strategy(theirs, found, &accesses, &guards);
        }
        adopted.without_strategy(found);
        for theirs in found.kind("CommitStatus") {
            match commit_status::is_left_out(theirs) {
                Some(why) => adopted.lose(theirs, why.to_owned()),
                None => {
                    adopted.take(theirs, commit_status::commit_status(theirs));
                }
            }
        }
        adopted.others(found);
        adopted
    }

    /// Those that are printed. A provider that none needs is told.
    fn accesses<'f>(&mut self, found: &'f Found) -> Accesses<'f> {
        let mut accesses = Accesses::new();
        for repository in found.kind("GitRepository") {
            if self.take(repository, access(repository, found)) {
                accesses.insert((repository.namespace.as_str(), repository.name.as_str()));
            }
        }
        for provider in found.all().filter(|it| access::is_provider(it)) {
            if !found
                .kind("GitRepository")
                .any(|it| access::is_at(it, provider))
            {
                let what = "no GitRepository in these files names it, so nothing is made of it";
                self.lose(provider, what.to_owned());
            }
        }
        accesses
    }

    /// A strategy, and what stands in the place of its checks.
    fn strategy(
        &mut self,
        theirs: &Theirs,
        found: &Found,
        accesses: &Accesses<'_>,
        guards: &[Guard<'_>],
    ) {
        let own: Vec<_> = guards.iter().filter(|it| it.is_for(theirs)).collect();
        let order = Order::of(theirs, found);
        let access = (theirs.namespace.as_str(), theirs.names("gitRepositoryRef"));
        let converted = strategy(theirs, accesses.contains(&access), &own, &order);
        let is_printed = self.take(theirs, converted);
        for guard in own {
            self.guard(guard, is_printed);
        }
        for of in order.by {
            match order::told(&of.kind) {
                Some(what) if is_printed => self.lose(of, what.to_owned()),
                _ => self.refuse(of, NOT_PRINTED.to_owned()),
            }
        }
    }

    /// What is for a strategy that there is not.
    fn without_strategy(&mut self, found: &Found) {
        let is_for_one = |it: &&Theirs| guard::is_one(&it.kind) || order::told(&it.kind).is_some();
        for of in found.all().filter(is_for_one) {
            let mut all = found.kind("PromotionStrategy");
            if !all.any(|it| of.is_about(it)) {
                let name = of.names("promotionStrategyRef");
                let why = format!(
                    "there is no PromotionStrategy {name} in these files; name its file, too"
                );
                self.refuse(of, why);
            }
        }
    }

    fn others(&mut self, found: &Found) {
        for of in found.all() {
            match other(of) {
                Some(Other::Lost(what)) => self.lose(of, what),
                Some(Other::Refused(why)) => self.refuse(of, why),
                None => {}
            }
        }
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
            Ok(_) if !is_printed => self.refuse(guard.of, NOT_PRINTED.to_owned()),
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
