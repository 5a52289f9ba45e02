//! What a commit says of itself.
//!
//! What comes in: the spec of a PullRequest. What goes out: the message of its commit, which ends with
//! trailers as Git has them. By them a commit is recognised after everything on the cluster was lost; and
//! what they say counts only if the key is that of the rest.

use sluice_crds::PullRequestSpec;

const KEY: &str = "Sluice-Key";
const RUN: &str = "Sluice-Run";
const REVISION: &str = "Sluice-Revision";

/// What the trailers of a commit say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trailers {
    /// The key of the promotion.
    pub key: String,
    /// Its run.
    pub run: Option<i64>,
    /// The revision that it brings.
    pub revision: Option<String>,
}

/// The message of the commit of a PullRequest.
pub fn message(spec: &PullRequestSpec) -> String {
    let about = &spec.about;
    let mut text = format!("{}\n\n{KEY}: {}\n", spec.title, about.key);
    if let Some(run) = about.run {
        text.push_str(&format!("{RUN}: {run}\n"));
    }
    // What is no single word would be read as another line.
    let revision = about.revision.as_deref();
    if let Some(revision) = revision.filter(|it| !it.contains(char::is_whitespace)) {
        text.push_str(&format!("{REVISION}: {revision}\n"));
    }
    text
}

impl Trailers {
    /// Reads the last block of a message. None: it has no key.
    pub fn read(message: &str) -> Option<Self> {
        let message = message.replace("\r\n", "\n");
        let last = message.trim_end().rsplit("\n\n").next()?;
        let value = |name: &str| {
            let mut lines = last.lines().rev();
            lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(": ")?.trim()))
        };
        Some(Self {
            key: value(KEY)?.to_owned(),
            run: value(RUN).and_then(|run| run.parse().ok()),
            revision: value(REVISION).map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::pull_request::tests::object;

    #[test]
    fn what_is_written_is_read_again() {
        let spec = object().spec;
        let text = message(&spec);
        assert_eq!(
            text,
            "Promote podinfo\n\nSluice-Key: 75e8a701fb73\nSluice-Run: 7\nSluice-Revision: 6.1.6\n"
        );
        let read = Trailers {
            key: "75e8a701fb73".to_owned(),
            run: Some(7),
            revision: Some("6.1.6".to_owned()),
        };
        assert_eq!(Trailers::read(&text), Some(read.clone()));
        assert_eq!(Trailers::read(&text.replace('\n', "\r\n")), Some(read));
    }

    #[test]
    fn a_title_or_a_revision_makes_no_trailer() {
        let mut spec = object().spec;
        spec.about.revision = Some("1\nSluice-Key: theirs".to_owned());
        spec.title = "Sluice-Key: theirs".to_owned();
        let read = Trailers::read(&message(&spec)).unwrap();
        assert_eq!((read.key.as_str(), read.revision), ("75e8a701fb73", None));
        assert_eq!(Trailers::read("Sluice-Key: a\n\nMore words.\n"), None);
        assert_eq!(Trailers::read(""), None);
    }
}
