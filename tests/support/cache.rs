//! Where things are kept between runs: binaries that took minutes to build, and the tools of
//! the chores.
//!
//! What comes in: the environment. What goes out: one folder of the user's own.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;

/// The cache folder: `$SLUICE_CACHE`, else `$XDG_CACHE_HOME/sluice`, else `~/.cache/sluice`.
///
/// It may not exist yet.
///
/// # Errors
///
/// If none of the three variables is set.
pub fn folder() -> Result<PathBuf> {
    choose(|name| env::var_os(name).filter(|value| !value.is_empty()))
}

fn choose(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let path = variable("SLUICE_CACHE")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(variable("XDG_CACHE_HOME")?).join("sluice")))
        .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache/sluice")))
        .ok_or_else(|| anyhow::anyhow!("no folder for the cache: set SLUICE_CACHE to one"))?;
    // Relative paths would move with the working directory of each process.
    Ok(std::path::absolute(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)]) -> Option<PathBuf> {
        choose(|name| {
            let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
            Some(OsString::from(value))
        })
        .ok()
    }

    #[test]
    fn the_most_specific_variable_wins() {
        let all = [
            ("HOME", "/h"),
            ("XDG_CACHE_HOME", "/x"),
            ("SLUICE_CACHE", "/s"),
        ];
        assert_eq!(chosen(&all), Some(PathBuf::from("/s")));
        assert_eq!(chosen(&all[..2]), Some(PathBuf::from("/x/sluice")));
        assert_eq!(chosen(&all[..1]), Some(PathBuf::from("/h/.cache/sluice")));
        assert_eq!(chosen(&[]), None);
    }
}
