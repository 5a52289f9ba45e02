//! The path of a repository's address, taken apart as each forge makes it.

use percent_encoding::percent_decode_str;

/// A path, taken apart.
pub(super) struct Parts {
    /// What the forge itself is below.
    pub(super) below: Vec<String>,
    pub(super) owner: String,
    pub(super) name: String,
}

impl Parts {
    fn new(below: &[&str], owner: &str, name: &str) -> Option<Self> {
        Some(Self {
            below: below.iter().map(|part| (*part).to_owned()).collect(),
            owner: owner.to_owned(),
            name: name.to_owned(),
        })
    }

    pub(super) fn of_github(parts: &[&str]) -> Option<Self> {
        match parts {
            [owner, name] => Self::new(&[], owner, name),
            _ => None,
        }
    }

    pub(super) fn of_gitea(parts: &[&str]) -> Option<Self> {
        match parts {
            [below @ .., owner, name] => Self::new(below, owner, name),
            _ => None,
        }
    }

    /// Groups may be as deep as a path of the host, so that only the address of the API distinguishes the two.
    pub(super) fn of_gitlab(parts: &[&str]) -> Option<Self> {
        if let [below @ .., "api", "v4", "projects", project] = parts {
            let project = percent_decode_str(project).decode_utf8().ok()?;
            let (owner, name) = project.rsplit_once('/').unwrap_or(("", &*project));
            let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
            return match (owner.is_empty(), is_number) {
                (true, false) => None,
                (true, true) | (false, _) => Self::new(below, owner, name),
            };
        }
        match parts {
            [_, ..] if parts.contains(&"-") => None,
            [owner @ .., name] if !owner.is_empty() => Self::new(&[], &owner.join("/"), name),
            _ => None,
        }
    }

    pub(super) fn of_bitbucket(parts: &[&str]) -> Option<Self> {
        let parts = match parts {
            [parts @ .., "browse"] => parts,
            parts => parts,
        };
        match parts {
            [below @ .., "projects", key, "repos", name] => Self::new(below, key, name),
            [below @ .., "users", user, "repos", name] => {
                Self::new(below, &format!("~{user}"), name)
            }
            [below @ .., "scm", key, name] => Self::new(below, key, name),
            _ => None,
        }
    }
}
