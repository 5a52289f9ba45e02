//! The command line: what all commands share. Each command's own arguments are in its file.

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, ValueEnum};

use crate::command::Command;
use crate::outcome;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Ask, force and picture the gates of a cluster, or of files.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-gate",
    bin_name = "kubectl gate",
    version,
    styles = STYLES,
    after_help = outcome::HELP,
    disable_help_subcommand = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) globals: Globals,
}

/// As kubectl has them.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// The kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod's own account]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<std::path::PathBuf>,

    /// The context of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// The cluster of the kubeconfig, instead of the context's
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) cluster: Option<String>,

    /// The user of the kubeconfig, instead of the context's
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) user: Option<String>,

    /// The namespace [default: the context's, and `default` for files]
    #[arg(long, short = 'n', global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// The user to act as
    #[arg(long = "as", global = true, value_name = "USER")]
    pub(crate) as_user: Option<String>,

    /// A group to act as a member of; may be given more than once
    #[arg(
        long = "as-group",
        global = true,
        value_name = "GROUP",
        requires = "as_user"
    )]
    pub(crate) as_group: Vec<String>,

    /// How long to wait for an answer of the API server, such as 30s; 0 waits for ever
    #[arg(long, global = true, value_name = "DURATION", default_value = "30s")]
    pub(crate) request_timeout: String,

    /// Whether to color the output
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

/// When output is colored.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
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
