//! The words of a pull request.
//!
//! What comes in: a promotion, and the names and values that it is about, which others wrote. What goes
//! out: a title, a description in Markdown, and the name of a branch. Forges act on words: they notify who
//! is mentioned, close issues and run commands. Nothing that others wrote does any of that here: a title
//! has a few harmless characters of it, and a description has it in spans of code.

use std::fmt::Display;

use super::{Key, Promotion};
use crate::revision::short;
use crate::text::words::clean;

/// The most bytes of a title, in which every forge takes it as a whole.
const LONGEST_TITLE: usize = 250;

/// The most characters of a revision in a title. The description has it in full.
const LONGEST_IN_TITLE: usize = 64;

/// The most characters of a value.
const LONGEST_VALUE: usize = 64;

/// The most characters of a name or a revision.
const LONGEST: usize = 256;

/// What a pull request is about.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// Where it leads.
    pub promotion: Promotion<'a>,
    /// The kind of the application, such as `HelmRelease`.
    pub kind: &'a str,
    /// The name of the application.
    pub name: &'a str,
    /// What it brings there.
    pub revision: &'a str,
    /// The run that it belongs to.
    pub run: i64,
    /// What is shown beside the revision, by name: the tag of an image, for one.
    pub versions: &'a [(&'a str, &'a str)],
}

/// One line of plain text, at most 250 bytes.
pub fn title(about: &About<'_>) -> String {
    let Promotion {
        namespace,
        pipeline,
        environment,
    } = about.promotion;
    let revision = clean(&short(about.revision), LONGEST_IN_TITLE);
    let [namespace, pipeline, environment, revision] =
        [namespace, pipeline, environment, &revision].map(harmless);
    let mut title = format!("Promote {namespace}/{pipeline} to {revision} in {environment}");
    // It is ASCII.
    title.truncate(LONGEST_TITLE);
    title
}

/// Some lines of Markdown.
pub fn description(about: &About<'_>) -> String {
    let Promotion {
        namespace,
        pipeline,
        environment,
    } = about.promotion;
    let revision = code(about.revision, LONGEST);
    let (kind, name) = (code(about.kind, LONGEST), code(about.name, LONGEST));
    let pipeline = code(&format!("{namespace}/{pipeline}"), LONGEST);
    let environment = code(environment, LONGEST);
    let mut text = format!(
        "Brings the revision {revision} of the {kind} {name} to the environment {environment} of \
         the pipeline {pipeline}, run {}.\n",
        about.run
    );
    for (name, value) in about.versions {
        let (name, value) = (code(name, LONGEST), code(value, LONGEST_VALUE));
        text.push_str(&format!("\n- {name}: {value}"));
    }
    if !about.versions.is_empty() {
        text.push('\n');
    }
    text.push_str(
        "\nSluice has opened this pull request, and closes it when another revision takes its place. \
         Merge it to promote the revision. If you close it, the revision is not promoted to this \
         environment before somebody asks for another run.\n",
    );
    text
}

/// What every branch for that environment begins with, and no other.
pub fn branches(promotion: &Promotion<'_>) -> String {
    let Promotion {
        namespace,
        pipeline,
        environment,
    } = promotion;
    format!("sluice/{}/", Key::of(&[namespace, pipeline, environment]))
}

/// The branch of one promotion: always 32 characters, because a forge may take no more than 100.
pub fn branch(promotion: &Promotion<'_>, key: impl Display) -> String {
    format!("{}{key}", branches(promotion))
}

/// A text as a title may have it: letters and digits of ASCII, and some characters that mean nothing to a
/// forge. An `@` stands inside a word, where it mentions nobody.
pub(crate) fn harmless(text: &str) -> String {
    let mut before = ' ';
    let mut replaced = |c: char| {
        let is_harmless = match c {
            '.' | '_' | '/' | '+' | ':' | '-' => true,
            '@' => before.is_ascii_alphanumeric(),
            c => c.is_ascii_alphanumeric(),
        };
        before = c;
        if is_harmless { c } else { '?' }
    };
    text.chars().map(&mut replaced).collect()
}

/// A text of others as a span of code, on one line and at most `max` characters. Nothing within means
/// anything: the span ends at a row of backticks that is longer than any within.
pub(crate) fn code(text: &str, max: usize) -> String {
    let text = clean(text, max);
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let rows = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(rows.max().unwrap_or_default() + 1);
    match text.starts_with('`') || text.ends_with('`') {
        // Markdown takes away one space at each end.
        true => format!("{fence} {text} {fence}"),
        false => format!("{fence}{text}{fence}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const COMMIT: &str = "4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";

    const PROD: Promotion<'_> = Promotion {
        namespace: "flux-system",
        pipeline: "podinfo",
        environment: "prod",
    };

    fn about<'a>(revision: &'a str, versions: &'a [(&'a str, &'a str)]) -> About<'a> {
        About {
            promotion: PROD,
            kind: "HelmRelease",
            name: "podinfo",
            revision,
            run: 7,
            versions,
        }
    }

    #[test]
    fn a_pull_request_says_what_it_brings_and_where() {
        let about = about("6.1.6", &[("image", "6.1.6-alpine"), ("chart", "")]);
        assert_eq!(
            title(&about),
            "Promote flux-system/podinfo to 6.1.6 in prod"
        );
        assert_eq!(
            description(&about),
            "Brings the revision `6.1.6` of the `HelmRelease` `podinfo` to the environment `prod` of the \
             pipeline `flux-system/podinfo`, run 7.\n\
             \n\
             - `image`: `6.1.6-alpine`\n\
             - `chart`: (empty)\n\
             \n\
             Sluice has opened this pull request, and closes it when another revision takes its place. \
             Merge it to promote the revision. If you close it, the revision is not promoted to this \
             environment before somebody asks for another run.\n"
        );
    }

    #[test]
    fn a_title_has_a_commit_in_short_and_the_description_in_full() {
        let text = format!("main@sha1:{COMMIT}");
        let about = about(&text, &[]);
        assert_eq!(
            title(&about),
            "Promote flux-system/podinfo to main@4f2a9c1e0b7d in prod"
        );
        assert!(description(&about).contains(&format!(" `{text}` ")));
    }

    #[rstest]
    #[case::mention("@alice@sha1:{commit}", "?alice@4f2a9c1e0b7d")]
    #[case::mention_in_a_path("x/@alice@sha1:{commit}", "x/?alice@4f2a9c1e0b7d")]
    #[case::issue("#12", "?12")]
    #[case::merge_request("!12", "?12")]
    #[case::no_build("[skip-ci]", "?skip-ci?")]
    #[case::markdown("`*a*`", "??a??")]
    #[case::html("<!--x-->", "??--x--?")]
    #[case::not_ascii("gr\u{202e}ün", "gr?n")]
    fn a_title_mentions_nobody(#[case] name: &str, #[case] shown: &str) {
        let revision = name.replace("{commit}", COMMIT);
        assert_eq!(
            title(&about(&revision, &[])),
            format!("Promote flux-system/podinfo to {shown} in prod")
        );
    }

    #[rstest]
    #[case::backtick("a`b", "``a`b``")]
    #[case::backticks("```", "```` ``` ````")]
    #[case::at_an_end("a`", "`` a` ``")]
    #[case::lines("a\n/merge\r\n\u{2028}@alice", "`a /merge @alice`")]
    #[case::comment("<!-- a -->", "`<!-- a -->`")]
    #[case::blanks(" \n ", "(empty)")]
    fn what_others_wrote_is_code(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(code(text, LONGEST_VALUE), expected);
    }

    #[test]
    fn branches_are_short_and_of_one_environment() {
        let long = "x".repeat(63);
        let [namespace, pipeline, environment] = [long.as_str(); 3];
        let longest = Promotion {
            namespace,
            pipeline,
            environment,
        };
        assert_eq!(branch(&longest, Key::of(&[])).len(), 32);
        // Joined by dashes these would be the same.
        let one = Promotion {
            namespace: "a-b",
            pipeline: "c",
            environment: "d",
        };
        let other = Promotion {
            namespace: "a",
            pipeline: "b-c",
            ..one
        };
        assert_ne!(branches(&one), branches(&other));
        assert!(branch(&one, Key::of(&["1"])).starts_with(&branches(&one)));
    }

    /// What Markdown takes for code is taken out, by its own rule: a span ends at the next row of as many
    /// backticks as it began with.
    fn without_code(line: &str) -> String {
        let (mut left, mut rest) = (String::new(), line);
        while let Some(at) = rest.find('`') {
            let (before, from) = rest.split_at(at);
            left.push_str(before);
            let size = from.len() - from.trim_start_matches('`').len();
            let mut behind = &from[size..];
            let end = loop {
                let at = behind.find('`').expect("a span that does not end");
                let row = &behind[at..];
                let length = row.len() - row.trim_start_matches('`').len();
                behind = &row[length..];
                if length == size {
                    break behind;
                }
            };
            left.push('¤');
            rest = end;
        }
        left + rest
    }

    proptest! {
        /// Whatever others wrote: but for spans of code, the description is ours alone.
        #[test]
        fn nothing_of_others_is_outside_of_code(
            texts in proptest::array::uniform4("([`@#!<>/\\-\\[\\]()*_\\\\|~\n\r a]|.){1,40}"),
            name in "[`@#!<>/\\-\\[\\]()*_a]{1,40}",
        ) {
            let [kind, app, one, other] = texts.each_ref().map(String::as_str);
            let versions = [(one, other), (other, one)];
            let mut about = about(&name, &versions);
            (about.kind, about.name) = (kind, app);
            let text = description(&about);
            let ours = description(&About { kind: "a", name: "a", versions: &[("a", "a"); 2], ..about });
            let ours = ours.lines().map(without_code);
            let lines: Vec<_> = text.lines().map(|line| without_code(line).replace("(empty)", "¤")).collect();
            prop_assert_eq!(lines, ours.collect::<Vec<_>>());

            let title = title(&about);
            prop_assert!(title.len() <= LONGEST_TITLE);
            let is_mention = |at: usize| !title.as_bytes()[at - 1].is_ascii_alphanumeric();
            prop_assert!(!title.match_indices('@').any(|(at, _)| is_mention(at)), "{}", title);
            prop_assert!(!title.contains(['#', '!', '`', '<', '\n', '[']), "{}", title);
        }
    }
}
