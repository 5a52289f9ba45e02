//! `kubectl gate <TAB>`: what may stand where the cursor is.
//!
//! What comes in: the words behind `kubectl gate`, the last of which is to be completed. What goes
//! out: lines as kubectl reads them from programs called `kubectl_complete-…`: a word, a tab, what it
//! means; and last how the shell is to go on. What cannot be known is left out: a shell that
//! completes has no place for errors.

use std::time::Duration;

use anyhow::Result;
use clap::builder::StyledStr;
use clap::{Arg, Args, Command, FromArgMatches};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};
use serde::de::DeserializeOwned;
use sluice_crds::{
    Approval, Gate, GatePolicy, GatedSource, Gatekeeper, Pipeline, PromotionStrategy, RevertCommit,
    Rollout,
};
use tokio::time::timeout;

use crate::arguments::{Globals, Kind};
use crate::cluster::{self, Connection, Use};
use crate::outcome::Outcome;
use crate::output;

/// How long the API server may take, for each request and for all of them: who presses TAB waits.
const PATIENCE: &str = "2s";
const PATIENCE_FOR_ALL: Duration = Duration::from_secs(2);
/// How the shell goes on, in the words of kubectl: with files, or with nothing else.
const WITH_FILES: &str = ":0";
const NOTHING_ELSE: &str = ":4";
/// What takes the name of a file.
const FILES: [&str; 4] = ["FILE", "FILES", "FOLDER", "PATH"];

#[derive(Debug, Args)]
pub(crate) struct Complete {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// What may stand there.
#[derive(Debug, PartialEq)]
enum Wanted {
    /// One of these, with what each means.
    Words(Vec<(String, String)>),
    /// The name of a file.
    File,
    /// The name of an object of one of these kinds.
    Names(Vec<Names>),
    Nothing,
}

/// The names of a kind, behind a prefix. No kind: namespaces.
type Names = (Option<Kind>, &'static str);

const GATES: Names = (Some(Kind::Gate), "");
const SOURCES: Names = (Some(Kind::Source), "gatedsource/");
const GATEKEEPERS: Names = (Some(Kind::Gatekeeper), "gatekeeper/");
const PIPELINES: Names = (Some(Kind::Pipeline), "");
const PROMOTIONS: Names = (Some(Kind::Pipeline), "pipeline/");
const STRATEGIES: Names = (Some(Kind::Strategy), "");
const STRATEGIES_BY_KIND: Names = (Some(Kind::Strategy), "promotionstrategy/");
const REVERTS: Names = (Some(Kind::Revert), "");
const ROLLOUTS: Names = (Some(Kind::Rollout), "");
const ROLLOUTS_BY_KIND: Names = (Some(Kind::Rollout), "rollout/");
const NAMESPACES: Names = (None, "");

impl Complete {
    /// Of the arguments of `program`.
    pub(super) async fn run(&self, program: &Command) -> Result<Outcome> {
        let (last, before) = match self.words.split_last() {
            Some((last, before)) => (last.as_str(), before),
            None => ("", &[][..]),
        };
        let (candidates, go_on) = match Place::after(program, before).wanted(last) {
            Wanted::Words(words) => (words, NOTHING_ELSE),
            Wanted::File => (Vec::new(), WITH_FILES),
            Wanted::Names(kinds) => {
                let found = names(program, before, &kinds);
                let found = timeout(PATIENCE_FOR_ALL, found).await;
                (found.unwrap_or_default(), NOTHING_ELSE)
            }
            Wanted::Nothing => (Vec::new(), NOTHING_ELSE),
        };
        for (word, meaning) in candidates.iter().filter(|(word, _)| word.starts_with(last)) {
            match meaning.is_empty() {
                true => output::line(word)?,
                false => output::line(format_args!("{word}\t{meaning}"))?,
            }
        }
        output::line(go_on)?;
        Ok(Outcome::Yes)
    }
}

/// Where the cursor is.
struct Place<'p> {
    program: &'p Command,
    /// The command that was given.
    command: Option<&'p Command>,
    /// The words behind it that are no options.
    positional: Vec<&'p str>,
    /// The option whose value is to be completed.
    open: Option<&'p Arg>,
}

impl<'p> Place<'p> {
    fn after(program: &'p Command, words: &'p [String]) -> Self {
        let mut place = Self {
            program,
            command: None,
            positional: Vec::new(),
            open: None,
        };
        for word in words {
            place.read(word);
        }
        place
    }

    fn read(&mut self, word: &'p str) {
        if self.open.take().is_some() {
            return;
        }
        let mut options = self.options();
        let (option, has_value) = if let Some(long) = word.strip_prefix("--") {
            let name = long.split('=').next();
            (options.find(|it| it.get_long() == name), long.contains('='))
        } else if let Some(rest) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            let mut rest = rest.chars();
            let name = rest.next();
            (
                options.find(|it| it.get_short() == name),
                rest.next().is_some(),
            )
        } else {
            match self.command {
                None => self.command = self.program.find_subcommand(word),
                Some(command) => match command.find_subcommand(word) {
                    Some(inner) if self.positional.is_empty() => self.command = Some(inner),
                    Some(_) | None => self.positional.push(word),
                },
            }
            return;
        };
        self.open = option.filter(|it| it.get_action().takes_values() && !has_value);
    }

    /// What may stand behind the command, or before it.
    fn options(&self) -> impl Iterator<Item = &'p Arg> + use<'p> {
        let command = self.command.unwrap_or(self.program);
        let all = command.get_arguments();
        all.filter(|argument| !argument.is_hide_set() && !argument.is_positional())
    }

    fn wanted(&self, last: &str) -> Wanted {
        if let Some(option) = self.open {
            return value_of(option);
        }
        if last.starts_with('-') {
            let word = |it: &Arg| {
                let long = format!("--{}", it.get_long()?);
                Some(meaning(&long, it.get_help()))
            };
            return Wanted::Words(self.options().filter_map(word).collect());
        }
        let Some(command) = self.command else {
            return commands_of(self.program);
        };
        // A command that does nothing without another one, such as `retry`.
        if command.has_subcommands() && command.get_positionals().next().is_none() {
            return commands_of(command);
        }
        let is_first = self.positional.is_empty();
        match command.get_name() {
            "get" => self.of_get(),
            "why" => Wanted::Names(vec![
                GATES,
                SOURCES,
                PROMOTIONS,
                STRATEGIES_BY_KIND,
                ROLLOUTS_BY_KIND,
            ]),
            "calendar" => Wanted::Names(vec![GATES, SOURCES, PROMOTIONS]),
            "check" => Wanted::Names(vec![GATES]),
            "pipeline" if is_first => Wanted::Names(vec![PIPELINES]),
            "pause" | "resume" | "retry" | "objects" | "versions" => Wanted::Names(vec![PIPELINES]),
            "promotion" | "accept" | "revert" if is_first => Wanted::Names(vec![STRATEGIES]),
            "fixed" if is_first => Wanted::Names(vec![REVERTS]),
            "rollout" if is_first => Wanted::Names(vec![ROLLOUTS]),
            "wait" if is_first => Wanted::Names(vec![GATES, STRATEGIES_BY_KIND, ROLLOUTS_BY_KIND]),
            "open" | "close" | "reset" if is_first => Wanted::Names(vec![GATES]),
            "approve" | "reject" if is_first => Wanted::Names(vec![GATES, GATEKEEPERS]),
            _ => {
                let mut positionals = command.get_positionals();
                let own = positionals.nth(self.positional.len());
                own.map_or(Wanted::Nothing, value_of)
            }
        }
    }

    /// Kinds first, and then names of that kind.
    fn of_get(&self) -> Wanted {
        const KINDS: [(&str, &str); 9] = [
            ("gates", "when changes may go out"),
            ("gatekeepers", "what opens and closes gates"),
            ("sources", "gated sources: what gates hold back"),
            ("approvals", "what people have said of revisions"),
            ("policies", "gates for whole namespaces"),
            (
                "pipelines",
                "which revision is on its way to which environment",
            ),
            (
                "promotionstrategies",
                "which commit has reached which environment branch",
            ),
            ("reverts", "which environment branch was brought back"),
            ("rollouts", "how much of a new version is out"),
        ];
        match self.positional.first() {
            Some(first) => {
                let kind = Kind::of(first).unwrap_or(Kind::Gate);
                Wanted::Names(vec![(Some(kind), "")])
            }
            None => {
                let kinds = KINDS.map(|(word, meaning)| (word.to_owned(), meaning.to_owned()));
                Wanted::Words(kinds.into())
            }
        }
    }
}

/// The commands that may stand behind another one.
fn commands_of(command: &Command) -> Wanted {
    let shown = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let words = shown.map(|command| meaning(command.get_name(), command.get_about()));
    Wanted::Words(words.collect())
}

/// What an option or a positional argument takes.
fn value_of(argument: &Arg) -> Wanted {
    let possible = argument.get_possible_values();
    if !possible.is_empty() {
        let shown = possible.iter().filter(|value| !value.is_hide_set());
        let words = shown.map(|value| meaning(value.get_name(), value.get_help()));
        return Wanted::Words(words.collect());
    }
    let names = argument.get_value_names().unwrap_or_default();
    if names.iter().any(|name| FILES.contains(&name.as_str())) {
        return Wanted::File;
    }
    match argument.get_long() {
        Some("namespace") => Wanted::Names(vec![NAMESPACES]),
        Some("gate") => Wanted::Names(vec![GATES]),
        Some("revision-of") => Wanted::Names(vec![SOURCES, STRATEGIES_BY_KIND]),
        Some("pipeline") => Wanted::Names(vec![PIPELINES]),
        _ => Wanted::Nothing,
    }
}

/// A word, with the first line of what it means.
fn meaning(word: &str, help: Option<&StyledStr>) -> (String, String) {
    let help = help.map(ToString::to_string).unwrap_or_default();
    let first = help.lines().next().unwrap_or_default();
    (word.to_owned(), first.to_owned())
}

/// The global options among words that need not be complete.
fn globals(program: &Command, words: &[String]) -> Option<Globals> {
    let words = [program.get_name()]
        .into_iter()
        .chain(words.iter().map(String::as_str));
    let read = program
        .clone()
        .ignore_errors(true)
        .try_get_matches_from(words);
    let globals = Globals::from_arg_matches(&read.ok()?).ok()?;
    Some(Globals {
        request_timeout: PATIENCE.to_owned(),
        ..globals
    })
}

/// The names of what there is, as far as the API server says so in time.
async fn names(program: &Command, before: &[String], kinds: &[Names]) -> Vec<(String, String)> {
    let Some(globals) = globals(program, before) else {
        return Vec::new();
    };
    let Ok(connection) = cluster::connect(&globals, Use::Requests).await else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (kind, prefix) in kinds {
        let found = of_kind(*kind, &connection).await.into_iter();
        all.extend(found.map(|name| (format!("{prefix}{name}"), String::new())));
    }
    all
}

async fn of_kind(kind: Option<Kind>, connection: &Connection) -> Vec<String> {
    match kind {
        Some(Kind::Gate) => listed::<Gate>(&connection.here()).await,
        Some(Kind::Gatekeeper) => listed::<Gatekeeper>(&connection.here()).await,
        Some(Kind::Source) => listed::<GatedSource>(&connection.here()).await,
        Some(Kind::Approval) => listed::<Approval>(&connection.here()).await,
        Some(Kind::Policy) => listed::<GatePolicy>(&connection.all()).await,
        Some(Kind::Pipeline) => listed::<Pipeline>(&connection.here()).await,
        Some(Kind::Strategy) => listed::<PromotionStrategy>(&connection.here()).await,
        Some(Kind::Revert) => listed::<RevertCommit>(&connection.here()).await,
        Some(Kind::Rollout) => listed::<Rollout>(&connection.here()).await,
        None => listed::<Namespace>(&connection.all()).await,
    }
}

async fn listed<K: Clone + DeserializeOwned + std::fmt::Debug>(api: &Api<K>) -> Vec<String> {
    let found = api.list_metadata(&ListParams::default()).await;
    let found = found.map(|list| list.items).unwrap_or_default().into_iter();
    found.filter_map(|it| it.metadata.name).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn wanted(words: &[&str]) -> Wanted {
        let program = crate::command::program();
        let (last, before) = words.split_last().unwrap();
        let before: Vec<String> = before.iter().map(|word| (*word).to_owned()).collect();
        Place::after(&program, &before).wanted(last)
    }

    #[rstest]
    #[case(&["why", ""], vec![GATES, SOURCES, PROMOTIONS, STRATEGIES_BY_KIND, ROLLOUTS_BY_KIND])]
    #[case(&["rollout", ""], vec![ROLLOUTS])]
    #[case(&["retry", "rollout", ""], vec![ROLLOUTS])]
    #[case(&["pipeline", "retry", ""], vec![PIPELINES])]
    #[case(&["revert", ""], vec![STRATEGIES])]
    #[case(&["fixed", ""], vec![REVERTS])]
    #[case(&["pipeline", ""], vec![PIPELINES])]
    #[case(&["pipeline", "pause", ""], vec![PIPELINES])]
    #[case(&["approve", "--pipeline", ""], vec![PIPELINES])]
    #[case(&["reject", "people", "--revision-of", ""], vec![SOURCES, STRATEGIES_BY_KIND])]
    #[case(&["-n", "apps", "open", ""], vec![GATES])]
    #[case(&["get", "gatekeepers", "-A", ""], vec![(Some(Kind::Gatekeeper), "")])]
    #[case(&["get", "-n", ""], vec![NAMESPACES])]
    #[case(&["check", "a", "--namespace=apps", ""], vec![GATES])]
    fn names_are_those_of_the_kind_that_is_meant(
        #[case] words: &[&str],
        #[case] expected: Vec<Names>,
    ) {
        assert_eq!(wanted(words), Wanted::Names(expected));
    }

    #[rstest]
    #[case(&["lint", "-f", ""], Wanted::File)]
    #[case(&["open", "production", ""], Wanted::Nothing)]
    #[case(&["open", "production", "--reason", ""], Wanted::Nothing)]
    fn the_rest_is_left_to_the_shell(#[case] words: &[&str], #[case] expected: Wanted) {
        assert_eq!(wanted(words), expected);
    }

    #[test]
    fn a_command_that_needs_another_one_names_those() {
        let Wanted::Words(words) = wanted(&["retry", ""]) else {
            panic!("no words")
        };
        let words: Vec<_> = words.iter().map(|(word, _)| word.as_str()).collect();
        assert_eq!(words, ["rollout"]);
    }

    #[test]
    fn options_go_to_the_one_who_asks_the_api_server() {
        let program = crate::command::program();
        let words = ["-n", "apps", "why", "--context=east", "--as", "alice"];
        let words = words.map(str::to_owned);
        let globals = globals(&program, &words).unwrap();
        assert_eq!(globals.namespace.as_deref(), Some("apps"));
        assert_eq!(globals.context.as_deref(), Some("east"));
        assert_eq!(globals.as_user.as_deref(), Some("alice"));
    }
}
