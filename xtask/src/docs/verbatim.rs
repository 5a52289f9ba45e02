//! Files that pages quote in full are quoted as they are.
//!
//! What comes in: pages with `<!-- verbatim: FILE -->` before a fenced block, and the examples. What
//! goes out: blocks that say anything else than their file, and blocks that are an example's text
//! without saying so: the next change of either would go unnoticed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Block, Page, blocks};

/// The files that must not be quoted without a mark.
const EXAMPLES: &str = "examples";

/// One line for each block that is not as it should be.
pub(super) fn misquoted(root: &Path, pages: &[Page]) -> Result<Vec<String>> {
    let examples = examples(root)?;
    let mut wrong = Vec::new();
    for page in pages {
        let blocks = blocks(page);
        for (line, file) in marks(&page.text) {
            let place = format!("{}:{line}", page.path.display());
            let quoted = blocks.iter().find(|block| block.line == line + 2);
            wrong.extend(differs(root, file, quoted).map(|why| format!("{place}: {why}")));
        }
        let marked: Vec<usize> = marks(&page.text).map(|(line, _)| line + 2).collect();
        for block in blocks.iter().filter(|block| !marked.contains(&block.line)) {
            if let Some((file, _)) = examples.iter().find(|(_, text)| *text == block.text) {
                wrong.push(format!(
                    "{}:{}: it is {file}; write <!-- verbatim: {file} --> before it",
                    page.path.display(),
                    block.line
                ));
            }
        }
    }
    Ok(wrong)
}

/// The marks of a page: the number of the line, and the file.
fn marks(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let inside = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?;
        let file = inside.trim().strip_prefix("verbatim:")?;
        Some((index + 1, file.trim()))
    })
}

fn differs(root: &Path, file: &str, quoted: Option<&Block<'_>>) -> Option<String> {
    let Some(quoted) = quoted else {
        return Some(format!("no block follows that quotes {file}"));
    };
    let Ok(text) = fs::read_to_string(root.join(file)) else {
        return Some(format!("there is no file {file}"));
    };
    if text == quoted.text {
        return None;
    }
    let mut pairs = text.lines().zip(quoted.text.lines());
    Some(match pairs.find(|(is, said)| is != said) {
        Some((is, said)) => format!("{file} has {is:?} where {said:?} is quoted"),
        None => format!(
            "{file} has {} lines, and {} are quoted",
            text.lines().count(),
            quoted.text.lines().count()
        ),
    })
}

/// The names and texts of the examples.
fn examples(root: &Path) -> Result<Vec<(String, String)>> {
    let folder = root.join(EXAMPLES);
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.sort();
    let yaml = files
        .into_iter()
        .filter(|file| file.extension().is_some_and(|end| end == "yaml"));
    yaml.map(|file| {
        let name = file.strip_prefix(root)?.display().to_string();
        Ok((name, fs::read_to_string(&file)?))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "kind: Gate\nspec: {}\n";

    fn said(text: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(EXAMPLES)).unwrap();
        fs::write(root.path().join("examples/a.yaml"), FILE).unwrap();
        let page = Page {
            path: "a.md".into(),
            text: text.to_owned(),
        };
        misquoted(root.path(), &[page]).unwrap()
    }

    #[test]
    fn a_file_is_quoted_as_it_is() {
        let quote = |text: &str| format!("Text.\n<!-- verbatim: examples/a.yaml -->\n{text}");
        let block = |text: &str| format!("```yaml\n{text}```\n");
        assert_eq!(said(&quote(&block(FILE))), [""; 0]);
        for (text, expected) in [
            (
                quote(&block("kind: Gate\nspec: 1\n")),
                r#"a.md:2: examples/a.yaml has "spec: {}" where "spec: 1" is quoted"#,
            ),
            (
                quote(&block("kind: Gate\n")),
                "a.md:2: examples/a.yaml has 2 lines, and 1 are quoted",
            ),
            (
                quote("\nText.\n"),
                "a.md:2: no block follows that quotes examples/a.yaml",
            ),
            (
                quote(&block(FILE)).replace("a.yaml", "b.yaml"),
                "a.md:2: there is no file examples/b.yaml",
            ),
            (
                block(FILE),
                "a.md:2: it is examples/a.yaml; write <!-- verbatim: examples/a.yaml --> before it",
            ),
        ] {
            assert_eq!(said(&text), [expected]);
        }
    }
}
