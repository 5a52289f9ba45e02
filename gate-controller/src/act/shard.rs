//! Shards: several controllers split the writing, never the reading: by the labels of objects, by their
//! kinds, or by both.

use std::collections::{BTreeMap, BTreeSet};

use kube::core::{Expression, Selector, SelectorExt};

use crate::cluster::kind::Kind;

/// The objects that this controller writes to, by their labels and kinds.
#[derive(Clone, Debug, Default)]
pub struct Shard {
    labels: Selector,
    /// None: all.
    kinds: Option<BTreeSet<Kind>>,
}

impl Shard {
    /// The shard of a label selector as `kubectl -l` takes it; of none, everything.
    ///
    /// # Errors
    /// What is wrong with the selector.
    pub fn parse(selector: Option<&str>) -> Result<Self, String> {
        let terms = selector.map(split).unwrap_or_default();
        let expressions: Result<Vec<Expression>, String> =
            terms.into_iter().map(expression).collect();
        Ok(Self {
            labels: Selector::from_iter(expressions?),
            kinds: None,
        })
    }

    /// The same, of these kinds alone; of none, all.
    ///
    /// # Errors
    /// One is no kind that is looked at.
    pub fn of_kinds(self, kinds: &[String]) -> Result<Self, String> {
        if kinds.is_empty() {
            return Ok(self);
        }
        let all: Vec<&str> = Kind::LOOKED_AT.map(Kind::as_str).into();
        let kind = |word: &String| {
            let found = Kind::LOOKED_AT
                .into_iter()
                .find(|kind| kind.as_str() == word);
            found.ok_or_else(|| format!("`{word}` is no kind; write some of {}", all.join(", ")))
        };
        let kinds = kinds.iter().map(kind).collect::<Result<_, _>>()?;
        Ok(Self {
            kinds: Some(kinds),
            ..self
        })
    }

    /// Whether an object of this kind and with these labels is this controller's to write.
    pub fn holds(&self, kind: Kind, labels: &BTreeMap<String, String>) -> bool {
        self.looks_at(kind) && self.labels.matches(labels)
    }

    /// Whether it looks at objects that gates decide about. These kinds follow what others have decided: who
    /// looks at nothing else needs no evidence, and sees no source.
    pub fn asks_gates(&self) -> bool {
        const FOLLOWING: [Kind; 3] = [
            Kind::PullRequest,
            Kind::GitRepositoryAccess,
            Kind::CommitStatus,
        ];
        let others = Kind::LOOKED_AT.into_iter();
        let mut others = others.filter(|kind| !FOLLOWING.contains(kind));
        others.any(|kind| self.looks_at(kind))
    }

    /// Whether it looks at objects of this kind.
    pub fn looks_at(&self, kind: Kind) -> bool {
        self.kinds
            .as_ref()
            .is_none_or(|kinds| kinds.contains(&kind))
    }
}

/// The terms of a selector: between commas, except those inside parentheses.
fn split(selector: &str) -> Vec<&str> {
    let mut depth = 0;
    let between = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    };
    selector.split(between).map(str::trim).collect()
}

fn expression(term: &str) -> Result<Expression, String> {
    let wrong = || {
        format!(
            "`{term}` is not a label requirement; write key=value, key!=value, key, !key, or key in (a, b)"
        )
    };
    let pair = |(key, value): (&str, &str)| (key.trim().to_owned(), value.trim().to_owned());
    let parsed = if let Some(key) = term.strip_prefix('!') {
        Expression::DoesNotExist(key.trim().to_owned())
    } else if let Some((key, values)) = term.split_once(" notin ") {
        Expression::NotIn(key.trim().to_owned(), set(values).ok_or_else(wrong)?)
    } else if let Some((key, values)) = term.split_once(" in ") {
        Expression::In(key.trim().to_owned(), set(values).ok_or_else(wrong)?)
    } else if let Some((key, value)) = term.split_once("!=").map(pair) {
        Expression::NotEqual(key, value)
    } else if let Some((key, value)) = term
        .split_once("==")
        .or_else(|| term.split_once('='))
        .map(pair)
    {
        Expression::Equal(key, value)
    } else {
        Expression::Exists(term.to_owned())
    };
    let key = match &parsed {
        Expression::In(key, _)
        | Expression::NotIn(key, _)
        | Expression::Equal(key, _)
        | Expression::NotEqual(key, _)
        | Expression::Exists(key)
        | Expression::DoesNotExist(key) => key,
    };
    if key.is_empty() || key.contains(char::is_whitespace) {
        Err(wrong())
    } else {
        Ok(parsed)
    }
}

fn set(values: &str) -> Option<BTreeSet<String>> {
    let inside = values.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some(
        inside
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn labels(key: Option<&str>) -> BTreeMap<String, String> {
        key.map(|value| ("sharding.fluxcd.io/key".to_owned(), value.to_owned()))
            .into_iter()
            .collect()
    }

    #[rstest]
    #[case("sharding.fluxcd.io/key=shard1", Some("shard1"), true)]
    #[case("sharding.fluxcd.io/key=shard1", Some("shard2"), false)]
    #[case("sharding.fluxcd.io/key=shard1", None, false)]
    #[case("!sharding.fluxcd.io/key", None, true)]
    #[case("!sharding.fluxcd.io/key", Some("shard1"), false)]
    #[case("sharding.fluxcd.io/key in (shard1, shard2)", Some("shard2"), true)]
    #[case("sharding.fluxcd.io/key notin (shard1,shard2)", Some("shard3"), true)]
    #[case(
        "sharding.fluxcd.io/key, sharding.fluxcd.io/key!=shard1",
        Some("shard1"),
        false
    )]
    fn a_shard_holds_what_its_selector_selects(
        #[case] selector: &str,
        #[case] label: Option<&str>,
        #[case] holds: bool,
    ) {
        let shard = Shard::parse(Some(selector)).unwrap();
        assert_eq!(shard.holds(Kind::Gate, &labels(label)), holds);
    }

    #[test]
    fn a_shard_of_some_kinds_holds_no_other() {
        let of = |kinds: &[&str]| {
            let kinds: Vec<_> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
            Shard::default().of_kinds(&kinds)
        };
        let holds = |shard: &Shard, kind| shard.holds(kind, &labels(None));
        let apart = of(&["PullRequest"]).unwrap();
        assert!(holds(&apart, Kind::PullRequest) && !holds(&apart, Kind::Pipeline));
        assert!(!apart.asks_gates());
        let at_forges = of(&["PullRequest", "GitRepositoryAccess", "CommitStatus"]).unwrap();
        assert!(!at_forges.asks_gates());
        let promotion = of(&["PromotionStrategy", "PullRequest"]).unwrap();
        assert!(promotion.asks_gates() && !promotion.looks_at(Kind::RevertCommit));
        let others = of(&["Pipeline", "Gate"]).unwrap();
        assert!(holds(&others, Kind::Pipeline) && !holds(&others, Kind::PullRequest));
        assert!(others.asks_gates());
        let all = of(&[]).unwrap();
        assert!(Kind::LOOKED_AT.into_iter().all(|kind| holds(&all, kind)));
        for wrong in ["Namespace", "pullrequests", "!PullRequest", ""] {
            let why = of(&[wrong]).unwrap_err();
            assert!(why.contains("write some of Gate, Gatekeeper"), "{why}");
        }
    }

    #[test]
    fn without_a_selector_everything_is_ours_and_nonsense_is_refused() {
        assert!(Shard::parse(None).unwrap().holds(Kind::Gate, &labels(None)));
        for nonsense in ["", "a b", "=x", "a in b", "!"] {
            assert!(Shard::parse(Some(nonsense)).is_err(), "{nonsense}");
        }
    }
}
