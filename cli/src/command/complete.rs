//! `kubectl gate <TAB>`: what may stand where the cursor is.
//!
//! What comes in: the words behind `kubectl gate`, the last of which is to be completed. What goes
//! out: lines as kubectl reads them from programs called `kubectl_complete-…`: a word, a tab, what it
//! means; and last how the shell is to go on. What cannot be known is left out: a shell that
//! completes has no place for errors.

use std::time::Duration;

use anyhow::Result;
use clap::{Arg, Args, Command, CommandFactory};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};
use serde::de::DeserializeOwned;
use sluice_crds::{Approval, Gate, GatePolicy, GatedSource, Gatekeeper};
use tokio::time::timeout;

use super::get::Listed;
use crate::arguments::{Arguments, Color, Globals};
use crate::cluster::{self, Connection, Use};
use crate::outcome::Outcome;
use crate::output;

/// How long the API server may take, for each request and for all of them: who presses TAB waits.
const PATIENCE: &str = "2s";
const PATIENCE_FOR_ALL: Duration = Duration::from_secs(2);
/// How the shell goes on, in the words of kubectl: with files, or with nothing else.
const FILES: &str = ":0";
const NOTHING_ELSE: &str = ":4";
/// What takes the name of a file.
const NAMES_OF_FILES: [&str; 4] = ["FILE", "FILES", "FOLDER", "PATH"];

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
    /// The name of an object of some kind, behind a prefix.
    Names(Vec<(Kind, &'static str)>),
    Nothing,
}

/// What has a name in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gate,
    Gatekeeper,
    Source,
    Approval,
    Policy,
    Namespace,
}

impl Complete {
    pub(super) async fn run(&self) -> Result<Outcome> {
        let (last, before) = match self.words.split_last() {
            Some((last, before)) => (last.as_str(), before),
            None => ("", &[][..]),
        };
        let mut program = Arguments::command();
        program.build();
        let place = Place::after(&program, before);
        let wanted = place.wanted(last);
        let (candidates, go_on) = match wanted {
            Wanted::Words(words) => (words, NOTHING_ELSE),
            Wanted::File => (Vec::new(), FILES),
            Wanted::Names(kinds) => {
                let globals = place.globals();
                let found = timeout(PATIENCE_FOR_ALL, names(&globals, &kinds)).await;
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
    positional: Vec<String>,
    /// The options that were given, with their values.
    given: Vec<(&'p Arg, Option<String>)>,
    /// The option whose value is to be completed.
    open: Option<&'p Arg>,
}

impl<'p> Place<'p> {
    fn after(program: &'p Command, words: &[String]) -> Self {
        let mut place = Self {
            program,
            command: None,
            positional: Vec::new(),
            given: Vec::new(),
            open: None,
        };
        for word in words {
            place.read(word);
        }
        place
    }

    fn read(&mut self, word: &str) {
        if let Some(option) = self.open.take() {
            self.given.push((option, Some(word.to_owned())));
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let option = self.options().find(|it| it.get_long() == Some(name));
            self.option(option, value);
        } else if let Some(short) = word.strip_prefix('-').and_then(|rest| rest.chars().next()) {
            let value = word.get(2..).filter(|rest| !rest.is_empty());
            let option = self.options().find(|it| it.get_short() == Some(short));
            self.option(option, value.map(str::to_owned));
        } else if self.command.is_none() {
            self.command = self.program.find_subcommand(word);
        } else {
            self.positional.push(word.to_owned());
        }
    }

    fn option(&mut self, option: Option<&'p Arg>, value: Option<String>) {
        let Some(option) = option else { return };
        match (option.get_action().takes_values(), value) {
            (true, None) => self.open = Some(option),
            (_, value) => self.given.push((option, value)),
        }
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
            return Wanted::Words(self.options().filter_map(option_words).collect());
        }
        let Some(command) = self.command else {
            let commands = self.program.get_subcommands();
            let shown = commands.filter(|command| !command.is_hide_set());
            return Wanted::Words(shown.map(command_words).collect());
        };
        self.positional_of(command)
    }

    fn positional_of(&self, command: &Command) -> Wanted {
        let gates = [(Kind::Gate, "")];
        let gates_and_sources = [(Kind::Gate, ""), (Kind::Source, "gatedsource/")];
        match command.get_name() {
            "get" => self.of_get(),
            "why" | "calendar" => Wanted::Names(gates_and_sources.into()),
            "check" => Wanted::Names(gates.into()),
            "open" | "close" | "reset" | "wait" if self.positional.is_empty() => {
                Wanted::Names(gates.into())
            }
            "approve" | "reject" if self.positional.is_empty() => {
                Wanted::Names(vec![(Kind::Gate, ""), (Kind::Gatekeeper, "gatekeeper/")])
            }
            _ => {
                let mut positionals = command.get_positionals();
                let own = positionals.nth(self.positional.len());
                own.map_or(Wanted::Nothing, value_of)
            }
        }
    }

    /// Kinds first, and then names of that kind.
    fn of_get(&self) -> Wanted {
        const KINDS: [(&str, &str); 5] = [
            ("gates", "when changes may go out"),
            ("gatekeepers", "what opens and closes gates"),
            ("sources", "gated sources: what gates hold back"),
            ("approvals", "what people have said of revisions"),
            ("policies", "gates for whole namespaces"),
        ];
        let Some(first) = self.positional.first() else {
            let kinds = KINDS.map(|(word, meaning)| (word.to_owned(), meaning.to_owned()));
            return Wanted::Words(kinds.into());
        };
        let kind = match Listed::of(first) {
            None | Some(Listed::Gates) => Kind::Gate,
            Some(Listed::Gatekeepers) => Kind::Gatekeeper,
            Some(Listed::Sources) => Kind::Source,
            Some(Listed::Approvals) => Kind::Approval,
            Some(Listed::Policies) => Kind::Policy,
        };
        Wanted::Names(vec![(kind, "")])
    }

    /// The global options that were given, for whoever asks the API server.
    fn globals(&self) -> Globals {
        let all = |name: &str| -> Vec<String> {
            let given = self
                .given
                .iter()
                .filter(|(option, _)| option.get_long() == Some(name));
            given.filter_map(|(_, value)| value.clone()).collect()
        };
        let last = |name: &str| all(name).pop();
        Globals {
            kubeconfig: last("kubeconfig").map(Into::into),
            context: last("context"),
            cluster: last("cluster"),
            user: last("user"),
            namespace: last("namespace"),
            as_user: last("as"),
            as_group: all("as-group"),
            request_timeout: PATIENCE.to_owned(),
            color: Color::Never,
        }
    }
}

/// What an option or a positional argument takes.
fn value_of(argument: &Arg) -> Wanted {
    let possible = argument.get_possible_values();
    if !possible.is_empty() {
        let shown = possible.iter().filter(|value| !value.is_hide_set());
        let words = shown.map(|value| {
            let meaning = value.get_help().map(ToString::to_string);
            (value.get_name().to_owned(), meaning.unwrap_or_default())
        });
        return Wanted::Words(words.collect());
    }
    let names = argument.get_value_names().unwrap_or_default();
    if names
        .iter()
        .any(|name| NAMES_OF_FILES.contains(&name.as_str()))
    {
        return Wanted::File;
    }
    match argument.get_long() {
        Some("namespace") => Wanted::Names(vec![(Kind::Namespace, "")]),
        Some("gate") => Wanted::Names(vec![(Kind::Gate, "")]),
        Some("revision-of") => Wanted::Names(vec![(Kind::Source, "gatedsource/")]),
        _ => Wanted::Nothing,
    }
}

fn command_words(command: &Command) -> (String, String) {
    let about = command.get_about().map(ToString::to_string);
    (command.get_name().to_owned(), about.unwrap_or_default())
}

fn option_words(option: &Arg) -> Option<(String, String)> {
    let help = option.get_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    let first = help.lines().next().unwrap_or_default().to_owned();
    Some((format!("--{}", option.get_long()?), first))
}

/// The names of what there is, as far as the API server says so in time.
async fn names(globals: &Globals, kinds: &[(Kind, &'static str)]) -> Vec<(String, String)> {
    let Ok(connection) = cluster::connect(globals, Use::Requests).await else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (kind, prefix) in kinds {
        let found = kind.names(&connection).await;
        all.extend(
            found
                .into_iter()
                .map(|name| (format!("{prefix}{name}"), String::new())),
        );
    }
    all
}

impl Kind {
    async fn names(self, connection: &Connection) -> Vec<String> {
        let client = || connection.client.clone();
        let here = &connection.namespace;
        match self {
            Kind::Gate => listed(&Api::<Gate>::namespaced(client(), here)).await,
            Kind::Gatekeeper => listed(&Api::<Gatekeeper>::namespaced(client(), here)).await,
            Kind::Source => listed(&Api::<GatedSource>::namespaced(client(), here)).await,
            Kind::Approval => listed(&Api::<Approval>::namespaced(client(), here)).await,
            Kind::Policy => listed(&Api::<GatePolicy>::all(client())).await,
            Kind::Namespace => listed(&Api::<Namespace>::all(client())).await,
        }
    }
}

async fn listed<K: Clone + DeserializeOwned + std::fmt::Debug>(api: &Api<K>) -> Vec<String> {
    let found = api.list_metadata(&ListParams::default()).await;
    let found = found.map(|list| list.items).unwrap_or_default();
    found
        .into_iter()
        .filter_map(|it| it.metadata.name)
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn wanted(words: &[&str]) -> Wanted {
        let mut program = Arguments::command();
        program.build();
        let (last, before) = words.split_last().unwrap();
        let before: Vec<String> = before.iter().map(|word| (*word).to_owned()).collect();
        Place::after(&program, &before).wanted(last)
    }

    #[rstest]
    #[case(&["why", ""], vec![(Kind::Gate, ""), (Kind::Source, "gatedsource/")])]
    #[case(&["-n", "apps", "open", ""], vec![(Kind::Gate, "")])]
    #[case(&["get", "gatekeepers", "-A", ""], vec![(Kind::Gatekeeper, "")])]
    #[case(&["get", "-n", ""], vec![(Kind::Namespace, "")])]
    #[case(&["check", "a", "--namespace=apps", ""], vec![(Kind::Gate, "")])]
    fn names_are_those_of_the_kind_that_is_meant(
        #[case] words: &[&str],
        #[case] expected: Vec<(Kind, &'static str)>,
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
    fn options_go_to_whoever_asks_the_api_server() {
        let mut program = Arguments::command();
        program.build();
        let words = ["-n", "apps", "why", "--context=east", "--as", "alice"];
        let words = words.map(str::to_owned);
        let globals = Place::after(&program, &words).globals();
        assert_eq!(globals.namespace.as_deref(), Some("apps"));
        assert_eq!(globals.context.as_deref(), Some("east"));
        assert_eq!(globals.as_user.as_deref(), Some("alice"));
    }
}
