//! What kubectl runs for `kubectl gate <TAB>`: it looks for a program of this name on the PATH.
//!
//! What comes in: the words behind `kubectl gate`, the last of which is to be completed. What goes
//! out: what `kubectl-gate __complete` says, which lies beside this program or on the PATH.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let plugin = format!("kubectl-gate{}", env::consts::EXE_SUFFIX);
    let beside = env::current_exe().ok();
    let beside = beside.and_then(|own| Some(own.parent()?.join(&plugin)));
    let program = beside.filter(|path| path.exists());
    let program = program.unwrap_or_else(|| PathBuf::from(plugin));
    let status = Command::new(program)
        .args(["__complete", "--"])
        .args(env::args_os().skip(1))
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) | Err(_) => ExitCode::FAILURE,
    }
}
