//! `cargo xtask docs`: the docs say what is true, as far as a program can see.
//!
//! What comes in: the Markdown files. What goes out: every link to a file or heading that is not
//! there, every YAML example of ours that `kubectl gate lint` refuses, every file that is quoted
//! otherwise than it is, and every page that has lost its title or an end of a block.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use sluice_tests::programs::Program;

use crate::cargo::{program, root};

mod verbatim;

/// Where Markdown files are looked for, in addition to the folder of the workspace itself.
const FOLDERS: [&str; 3] = ["docs", "charts", "examples"];

/// A Markdown file.
struct Page {
    /// Below the folder of the workspace.
    path: PathBuf,
    text: String,
}

/// Checks links and examples.
pub(crate) fn check() -> Result<String> {
    let pages = pages(root())?;
    let mut wrong: Vec<String> = pages
        .iter()
        .flat_map(|page| dangling(root(), page))
        .collect();
    wrong.extend(pages.iter().filter_map(cut_off));
    wrong.extend(verbatim::misquoted(root(), &pages)?);
    let examples: Vec<_> = pages.iter().flat_map(examples).collect();
    wrong.extend(refused(&examples)?);
    ensure!(
        wrong.is_empty(),
        "{} mistakes in the docs:\n  {}",
        wrong.len(),
        wrong.join("\n  ")
    );
    Ok(format!(
        "{} pages, {} examples",
        pages.len(),
        examples.len()
    ))
}

fn pages(root: &Path) -> Result<Vec<Page>> {
    let mut files = Vec::new();
    markdown(root, false, &mut files)?;
    for folder in FOLDERS {
        markdown(&root.join(folder), true, &mut files)?;
    }
    files.sort();
    let read = files.into_iter().map(|file| {
        Ok(Page {
            text: fs::read_to_string(&file)?,
            path: file.strip_prefix(root)?.to_owned(),
        })
    });
    read.collect()
}

fn markdown(folder: &Path, deep: bool, files: &mut Vec<PathBuf>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && deep {
            markdown(&path, deep, files)?;
        } else if path.extension().is_some_and(|end| end == "md") {
            files.push(path);
        }
    }
    Ok(())
}

/// The lines of a page with their numbers, and for each the language of the fenced block that it
/// is in, if it is in one.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str, Option<&str>)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_some() {
                None
            } else {
                Some(language.trim())
            };
            return None;
        }
        Some((index + 1, line, fence))
    })
}

/// What is missing of a page that is not whole: code would be shown as words, and words as code.
fn cut_off(page: &Page) -> Option<String> {
    let path = page.path.display();
    let mut written = (page.text.lines())
        .filter(|line| !line.trim().is_empty())
        .filter(|line| !line.starts_with("<!--"));
    if !written.next().is_some_and(|line| line.starts_with("# ")) {
        return Some(format!(
            "{path}: it does not begin with a title; write `# …`"
        ));
    }
    let fences = page
        .text
        .lines()
        .filter(|line| line.trim_start().starts_with("```"));
    (fences.count() % 2 == 1).then(|| format!("{path}: a block has no end; write the missing ```"))
}

/// Links of a page whose file or heading is not there.
fn dangling(root: &Path, page: &Page) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, line, fence) in lines(&page.text) {
        if fence.is_some() {
            continue;
        }
        for target in targets(line) {
            if !resolves(root, page, target) {
                wrong.push(format!(
                    "{}:{number}: {target} is not there",
                    page.path.display()
                ));
            }
        }
    }
    wrong
}

/// What the links and pictures in a line point to.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let ends = line.split("](").skip(1);
    ends.filter_map(|rest| rest.split([')', ' ']).next())
}

fn resolves(root: &Path, page: &Page, target: &str) -> bool {
    if target.contains("://") || target.starts_with("mailto:") {
        return true;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let folder = page.path.parent().unwrap_or(Path::new(""));
    let path = if file.is_empty() {
        root.join(&page.path)
    } else {
        root.join(folder).join(file)
    };
    if heading.is_empty() {
        return path.exists();
    }
    fs::read_to_string(path).is_ok_and(|text| headings(&text).any(|found| found == heading))
}

/// The anchors of a page's headings, as forges make them: lower case, spaces to hyphens,
/// everything else but letters, digits, hyphens and underscores dropped.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let outside = lines(text).filter(|(_, _, fence)| fence.is_none());
    outside
        .filter(|(_, line, _)| line.starts_with('#'))
        .map(|(_, line, _)| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
}

/// A YAML block that holds a kind of ours.
struct Example {
    /// The page, and the line of the first line of the block.
    place: String,
    yaml: String,
}

fn examples(page: &Page) -> Vec<Example> {
    let ours = format!("apiVersion: {}/", sluice_crds::GROUP);
    let blocks = blocks(page).into_iter();
    blocks
        .filter(|block| block.language == "yaml" && block.text.contains(&ours))
        .map(|block| Example {
            place: format!("{}:{}", page.path.display(), block.line),
            yaml: block.text,
        })
        .collect()
}

/// A fenced block.
struct Block<'a> {
    /// The number of its first line, after the fence.
    line: usize,
    language: &'a str,
    text: String,
}

fn blocks(page: &Page) -> Vec<Block<'_>> {
    let mut found: Vec<Block<'_>> = Vec::new();
    let mut previous = 0;
    for (number, line, fence) in lines(&page.text) {
        let Some(language) = fence else {
            continue;
        };
        if number != previous + 1 || found.is_empty() {
            found.push(Block {
                line: number,
                language,
                text: String::new(),
            });
        }
        if let Some(block) = found.last_mut() {
            block.text.push_str(line);
            block.text.push('\n');
        }
        previous = number;
    }
    found
}

/// The examples that `kubectl gate lint` refuses, with what it says.
fn refused(examples: &[Example]) -> Result<Vec<String>> {
    if examples.is_empty() {
        return Ok(Vec::new());
    }
    let program = program(Program::KubectlGate)?;
    let mut refused = Vec::new();
    for example in examples {
        if let Some(said) = lint(&program, &example.yaml)? {
            refused.push(format!("{}: {said}", example.place));
        }
    }
    Ok(refused)
}

fn lint(program: &Path, yaml: &str) -> Result<Option<String>> {
    let mut child = Command::new(program)
        .args(["lint", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    // One that refuses its arguments may be gone before it has read anything.
    let _ = child
        .stdin
        .take()
        .map(|mut stdin| stdin.write_all(yaml.as_bytes()));
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(None);
    }
    let said = [output.stdout, output.stderr].concat();
    Ok(Some(String::from_utf8_lossy(&said).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Page {
        Page {
            path: path.into(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn links_must_lead_somewhere() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("docs")).unwrap();
        fs::write(
            root.path().join("README.md"),
            "# What's new, 2026?\n```\n# no heading\n```\n",
        )
        .unwrap();
        let text = "[a](../README.md) [b](../README.md#whats-new-2026) [c](https://x.y/z)\n\
                    [d](gone.md), ![e](gone.svg)\n\
                    [f](../README.md#no-heading)\n\
                    ```\n[g](gone.md)\n```\n";
        let wrong = dangling(root.path(), &page("docs/a.md", text));
        assert_eq!(
            wrong,
            [
                "docs/a.md:2: gone.md is not there",
                "docs/a.md:2: gone.svg is not there",
                "docs/a.md:3: ../README.md#no-heading is not there",
            ]
        );
    }

    #[test]
    fn pages_are_whole() {
        let said = |text| cut_off(&page("docs/a.md", text));
        assert_eq!(said("<!-- Generated. -->\n\n# A\n```\n# b\n```\n"), None);
        let untitled = "docs/a.md: it does not begin with a title; write `# …`";
        assert_eq!(said("kind: Gate\n```\n").as_deref(), Some(untitled));
        let open = "docs/a.md: a block has no end; write the missing ```";
        assert_eq!(said("# A\n```sh\nls\n").as_deref(), Some(open));
    }

    #[test]
    fn examples_are_the_yaml_blocks_of_our_kinds() {
        let text = "```yaml\napiVersion: sluice.dev/v1alpha1\nkind: Gate\n```\n\n\
                    ```yaml\napiVersion: v1\n```\n```json\n{}\n```\n";
        let found = examples(&page("docs/a.md", text));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "docs/a.md:2");
        assert_eq!(
            found[0].yaml,
            "apiVersion: sluice.dev/v1alpha1\nkind: Gate\n"
        );
    }

    #[test]
    fn what_the_linter_says_is_passed_on() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("linter");
        // Written by a process of its own, so that no other test's child holds it open.
        let linter = |script: &str| {
            let write = "echo \"$1\" >\"$2\" && chmod +x \"$2\"";
            let mut command = Command::new("sh");
            command
                .args(["-c", write, "sh"])
                .arg(format!("#!/bin/sh\n{script}"))
                .arg(&path);
            assert!(command.status().unwrap().success());
            path.clone()
        };
        let refusing = linter("cat >/dev/null; echo 'spec.window: write 1h'; exit 1");
        let said = lint(&refusing, "a: b").unwrap();
        assert_eq!(said.as_deref(), Some("spec.window: write 1h"));
        assert_eq!(lint(&linter("grep -q 'a: b'"), "a: b").unwrap(), None);
    }
}
