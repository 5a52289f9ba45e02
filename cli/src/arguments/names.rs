//! How objects are named on the command line: as kubectl names them.

use anyhow::{Result, bail};

use super::about::consumer;

/// What `get` lists, and other commands name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Gate,
    Gatekeeper,
    Source,
    Approval,
    Policy,
    Pipeline,
    Strategy,
    Revert,
    Rollout,
}

impl Kind {
    /// The words for each. The first is the one that `get -o name` prints.
    #[rustfmt::skip] // A row is a line.
    const WORDS: [(Self, &[&str]); 9] = [
        (Self::Gate, &["gate", "gates", "gt"]),
        (Self::Gatekeeper, &["gatekeeper", "gatekeepers", "gk"]),
        (Self::Source, &["gatedsource", "gatedsources", "gs", "source", "sources"]),
        (Self::Approval, &["approval", "approvals", "apv"]),
        (Self::Policy, &["gatepolicy", "gatepolicies", "gp", "policy", "policies"]),
        (Self::Pipeline, &["pipeline", "pipelines", "pipe"]),
        (Self::Strategy, &["promotionstrategy", "promotionstrategies", "promo", "strategy", "strategies"]),
        (Self::Revert, &["revertcommit", "revertcommits", "rvc", "revert", "reverts"]),
        (Self::Rollout, &["rollout", "rollouts", "gro"]),
    ];

    /// What a word stands for.
    pub(crate) fn of(word: &str) -> Option<Self> {
        let mut all = Self::WORDS.iter();
        Some(all.find(|(_, words)| words.contains(&word))?.0)
    }

    /// An object as `get -o name` prints it.
    pub(crate) fn named(self, name: &str) -> String {
        let words = Self::WORDS.iter().filter(|(kind, _)| *kind == self);
        let word: String = words.map(|(_, words)| words[0]).collect();
        format!("{word}.sluice.dev/{name}")
    }
}

/// The two parts of `kind/name`: the kind in lower case and without its group, with which
/// `get -o name` prints it. None: the text is not of that form.
pub(crate) fn split(text: &str) -> Option<(String, &str)> {
    let (kind, name) = text.split_once('/')?;
    let kind = kind.split('.').next()?.to_ascii_lowercase();
    (!name.is_empty() && !name.contains('/')).then_some((kind, name))
}

/// The kind and the name in a text such as `gatekeeper/release`. None: it is not of that form, or
/// the kind is not one of Sluice.
fn kind_and_name(text: &str) -> Option<(Kind, &str)> {
    let (kind, name) = split(text)?;
    Some((Kind::of(&kind)?, name))
}

/// The name of a gate, also as `gate/NAME` or as `get -o name` prints it.
pub(crate) fn gate_name(text: &str) -> Result<String> {
    match kind_and_name(text) {
        Some((Kind::Gate, name)) => Ok(name.to_owned()),
        None if !text.is_empty() && !text.contains('/') => Ok(text.to_owned()),
        _ => bail!("`{text}` names no gate; write its name, and its namespace as -n NAMESPACE"),
    }
}

/// The names of several gates.
pub(crate) fn gate_names<'t>(texts: impl IntoIterator<Item = &'t String>) -> Result<Vec<String>> {
    texts.into_iter().map(|text| gate_name(text)).collect()
}

/// The name of a gated source, as `gatedsource/NAME` or as `get -o name` prints it. None: the text
/// names something else.
pub(crate) fn source_name(text: &str) -> Option<String> {
    let (kind, name) = kind_and_name(text)?;
    (kind == Kind::Source).then(|| name.to_owned())
}

/// The name of a pipeline, also as `pipeline/NAME` or as `get -o name` prints it.
pub(crate) fn pipeline_name(text: &str) -> Result<String> {
    match kind_and_name(text) {
        Some((Kind::Pipeline, name)) => Ok(name.to_owned()),
        None if !text.is_empty() && !text.contains('/') => Ok(text.to_owned()),
        _ => bail!("`{text}` names no pipeline; write its name, and its namespace as -n NAMESPACE"),
    }
}

/// A pipeline as `pipeline/NAME`, or one environment of it as `pipeline/NAME/ENVIRONMENT`. None: the text
/// names something else.
pub(crate) fn promotion_name(text: &str) -> Option<(String, Option<String>)> {
    let (kind, rest) = text.split_once('/')?;
    let kind = kind.split('.').next()?.to_ascii_lowercase();
    let (name, environment) = match rest.split_once('/') {
        Some((name, environment)) => (name, Some(environment)),
        None => (rest, None),
    };
    let is_whole =
        !name.is_empty() && environment.is_none_or(|it| !it.is_empty() && !it.contains('/'));
    let is_pipeline = Kind::of(&kind) == Some(Kind::Pipeline);
    (is_pipeline && is_whole).then(|| (name.to_owned(), environment.map(str::to_owned)))
}

/// The name of a promotion strategy, also as `promotionstrategy/NAME` or as `get -o name` prints it.
pub(crate) fn strategy_name(text: &str) -> Result<String> {
    plain(text, Kind::Strategy, "promotion strategy")
}

/// The name of a revert, also as `revertcommit/NAME` or as `get -o name` prints it.
pub(crate) fn revert_name(text: &str) -> Result<String> {
    plain(text, Kind::Revert, "RevertCommit")
}

/// The name of a rollout, also as `rollout/NAME` or as `get -o name` prints it.
pub(crate) fn rollout_name(text: &str) -> Result<String> {
    plain(text, Kind::Rollout, "rollout")
}

/// The name of a rollout, with its kind. None: the text names something else.
pub(crate) fn rollout_of(text: &str) -> Option<&str> {
    let (kind, name) = kind_and_name(text)?;
    (kind == Kind::Rollout).then_some(name)
}

fn plain(text: &str, kind: Kind, word: &str) -> Result<String> {
    match kind_and_name(text) {
        Some((found, name)) if found == kind => Ok(name.to_owned()),
        None if !text.is_empty() && !text.contains('/') => Ok(text.to_owned()),
        _ => bail!("`{text}` names no {word}; write its name, and its namespace as -n NAMESPACE"),
    }
}

/// A promotion strategy as `promotionstrategy/NAME`, perhaps with the branch of an environment behind it.
/// None: the text names something else.
pub(crate) fn strategy_of(text: &str) -> Option<(String, Option<String>)> {
    let (kind, rest) = text.split_once('/')?;
    let kind = kind.split('.').next()?.to_ascii_lowercase();
    let (name, branch) = match rest.split_once('/') {
        Some((name, branch)) => (name, Some(branch)),
        None => (rest, None),
    };
    let is_whole = !name.is_empty() && branch.is_none_or(|it| !it.is_empty());
    let is_strategy = Kind::of(&kind) == Some(Kind::Strategy);
    (is_strategy && is_whole).then(|| (name.to_owned(), branch.map(str::to_owned)))
}

/// The promotion strategies among names, each with those of its environments that are named behind it, up
/// to the next name with a kind; and all other names. No environment: all of them.
pub(crate) fn strategies(names: &[String]) -> (Vec<(String, Vec<String>)>, Vec<&String>) {
    let (mut found, mut others): (Vec<(String, Vec<String>)>, Vec<&String>) = Default::default();
    let mut is_behind = false;
    for text in names {
        if let Some((name, branch)) = strategy_of(text) {
            found.push((name, branch.into_iter().collect()));
            is_behind = true;
            continue;
        }
        is_behind &= split(text).is_none_or(|(kind, _)| Kind::of(&kind).is_none())
            && consumer(text).is_err();
        is_behind &= promotion_name(text).is_none();
        match found.last_mut().filter(|_| is_behind) {
            Some((_, environments)) => environments.push(text.clone()),
            None => others.push(text),
        }
    }
    (found, others)
}

/// The name of a gatekeeper, as `gatekeeper/NAME`. None: the text names something else.
pub(crate) fn gatekeeper_name(text: &str) -> Option<&str> {
    let (kind, name) = kind_and_name(text)?;
    (kind == Kind::Gatekeeper).then_some(name)
}

/// What `get` is to list, and the names, behind their kind or each with it. No kind: gates.
pub(crate) fn listed(what: &[String]) -> Result<(Kind, Vec<String>)> {
    let kind = what.first().and_then(|word| Kind::of(word));
    let names = if kind.is_some() { &what[1..] } else { what };
    let sources: Option<Vec<String>> = names.iter().map(|name| source_name(name)).collect();
    match (kind, sources) {
        (None, Some(names)) if !names.is_empty() => Ok((Kind::Source, names)),
        (Some(Kind::Pipeline), _) => {
            let names = names.iter().map(|name| pipeline_name(name));
            Ok((Kind::Pipeline, names.collect::<Result<_>>()?))
        }
        (None | Some(Kind::Gate), _) => Ok((Kind::Gate, gate_names(names)?)),
        (Some(kind), _) => Ok((kind, names.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_as_kubectl_names_them() {
        for text in [
            "production",
            "gate/production",
            "gate.sluice.dev/production",
        ] {
            assert_eq!(gate_name(text).unwrap(), "production");
        }
        for text in ["gatedsource/app", "gs/app", "GatedSource/app"] {
            assert_eq!(source_name(text).unwrap(), "app");
        }
        for text in ["app", "gs/", "gate/app", "gs/apps/app"] {
            assert_eq!(source_name(text), None, "{text}");
        }
        for text in ["", "gate/", "flux-system/production", "gatekeeper/a"] {
            assert!(gate_name(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_promotion_is_named_by_its_pipeline_and_its_environment() {
        let named = |text: &str| promotion_name(text);
        assert_eq!(named("pipeline/a"), Some(("a".to_owned(), None)));
        let prod = Some(("a".to_owned(), Some("prod".to_owned())));
        assert_eq!(named("pipeline.sluice.dev/a/prod"), prod);
        for text in ["a", "pipeline/", "pipeline/a/", "pipeline/a/b/c", "gate/a"] {
            assert_eq!(named(text), None, "{text}");
        }
        assert_eq!(pipeline_name("pipe/a").unwrap(), "a");
        assert!(pipeline_name("gate/a").is_err());
    }

    #[test]
    fn environments_are_named_behind_their_strategy() {
        let names = [
            "a",
            "promo/shop",
            "env/prod",
            "dev",
            "gate/b",
            "c",
            "Deployment/d",
        ];
        let mut names: Vec<String> = names.map(str::to_owned).into();
        names.push("promotionstrategy.sluice.dev/other/env/test".to_owned());
        let (found, others) = strategies(&names);
        let environments = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(
            found,
            [
                ("shop".to_owned(), environments(&["env/prod", "dev"])),
                ("other".to_owned(), environments(&["env/test"])),
            ]
        );
        assert_eq!(others, ["a", "gate/b", "c", "Deployment/d"]);
        assert_eq!(strategy_name("promo/shop").unwrap(), "shop");
        assert_eq!(revert_name("rvc/shop-1").unwrap(), "shop-1");
        assert_eq!(rollout_name("rollout.sluice.dev/web").unwrap(), "web");
        assert_eq!(
            (rollout_of("gro/web"), rollout_of("web")),
            (Some("web"), None)
        );
        for text in ["", "gate/shop", "promo/", "promo/a/env/b"] {
            assert!(strategy_name(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_may_come_with_their_kind() {
        let listed = |what: &[&str]| {
            let what: Vec<String> = what.iter().map(|word| (*word).to_owned()).collect();
            listed(&what).unwrap()
        };
        assert_eq!(listed(&[]), (Kind::Gate, vec![]));
        assert_eq!(listed(&["gk"]), (Kind::Gatekeeper, vec![]));
        assert_eq!(
            listed(&["gates", "a", "gate/b"]),
            (Kind::Gate, vec!["a".to_owned(), "b".to_owned()])
        );
        assert_eq!(listed(&["sources"]), (Kind::Source, vec![]));
        assert_eq!(listed(&["gs/a"]), (Kind::Source, vec!["a".to_owned()]));
        assert_eq!(listed(&["policies"]), (Kind::Policy, vec![]));
        assert_eq!(
            listed(&["promo", "a"]),
            (Kind::Strategy, vec!["a".to_owned()])
        );
        assert_eq!(listed(&["gro", "a"]), (Kind::Rollout, vec!["a".to_owned()]));
        assert_eq!(
            listed(&["approvals", "a"]),
            (Kind::Approval, vec!["a".to_owned()])
        );
        assert_eq!(listed(&["a"]), (Kind::Gate, vec!["a".to_owned()]));
    }
}
