//! The arguments that several commands share. Each command's own ones are in its file.
//!
//! What comes in: words of the command line. What goes out: options as kubectl has them, what a
//! question is about, and names of objects. Uses no other room.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sluice_core::offline::simulate::DEFAULT_NAMESPACE;

mod about;
mod commit;
mod names;

pub(crate) use about::{About, Asker, consumer, require, revision, set, setting};
pub(crate) use commit::{Commit, commit};
pub(crate) use names::{
    Kind, gate_name, gate_names, gatekeeper_name, listed, pipeline_name, promotion_name,
    revert_name, rollout_name, rollout_of, source_name, split, strategies, strategy_name,
    strategy_of,
};

/// As kubectl has them.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// The kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the service account of the
    /// pod]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The context in the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// The cluster in the kubeconfig, instead of the one of the context
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) cluster: Option<String>,

    /// The user in the kubeconfig, instead of the one of the context
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) user: Option<String>,

    /// The namespace [default: the one of the context, and `default` for files]
    #[arg(long, short = 'n', global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// The user to act as
    #[arg(long = "as", global = true, value_name = "USER")]
    pub(crate) as_user: Option<String>,

    /// A group to act as; may be given more than once
    #[arg(
        long = "as-group",
        global = true,
        value_name = "GROUP",
        requires = "as_user"
    )]
    pub(crate) as_group: Vec<String>,

    /// How long to wait for an answer from the API server, such as 30s; 0 waits forever
    #[arg(long, global = true, value_name = "DURATION", default_value = "30s")]
    pub(crate) request_timeout: String,

    /// When to color the output
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

impl Globals {
    /// The namespace of objects in files that name none.
    pub(crate) fn namespace_of_files(&self) -> &str {
        self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }
}

/// FILES, for the commands that need no cluster.
#[derive(Debug, Args)]
pub(crate) struct Files {
    /// YAML or JSON files, folders of them, or - for standard input. All kinds of Sluice are read,
    /// with the Namespaces and ConfigMaps that they need, and calendars (.ics); anything else is skipped
    #[arg(long = "filename", short = 'f', value_name = "FILES", num_args = 1.., required = true)]
    pub(crate) paths: Vec<PathBuf>,
}

/// When output is colored.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, if NO_COLOR is not set.
    Auto,
    Always,
    Never,
}

impl Color {
    pub(crate) fn set(self) {
        let choice = match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::AlwaysAnsi,
            Color::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}
