//! A Dockerfile as far as the rules look: instructions, stages and the defaults of arguments.
//! Here-documents and parser directives are refused; ours has none.

use anyhow::{Context, Result, ensure};

/// One instruction, its continued lines joined.
#[derive(Debug, PartialEq, Eq)]
pub struct Instruction {
    /// In capitals.
    pub name: String,
    /// What follows, as written.
    pub rest: String,
}

impl Instruction {
    fn parse(line: &str) -> Self {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        Self {
            name: name.to_uppercase(),
            rest: rest.trim().to_owned(),
        }
    }

    /// The words that are no `--options`.
    pub fn words(&self) -> Vec<&str> {
        let words = self.rest.split_whitespace();
        words.filter(|word| !word.starts_with("--")).collect()
    }

    /// The value of `--<name>=`.
    pub fn option(&self, name: &str) -> Option<&str> {
        let mut words = self.rest.split_whitespace();
        words.find_map(|word| {
            word.strip_prefix("--")?
                .strip_prefix(name)?
                .strip_prefix('=')
        })
    }
}

/// What stands between one FROM and the next.
#[derive(Debug)]
pub struct Stage {
    /// The image it starts from, arguments filled in with their defaults.
    pub image: String,
    /// Everything after FROM.
    pub instructions: Vec<Instruction>,
}

impl Stage {
    /// The instructions called `name`.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &Instruction> {
        self.instructions
            .iter()
            .filter(move |instruction| instruction.name == name)
    }

    /// The default of an argument that this stage declares.
    pub fn default_of(&self, argument: &str) -> Option<String> {
        self.all("ARG")
            .find_map(|given| given.rest.strip_prefix(argument)?.strip_prefix('='))
            .map(str::to_owned)
    }
}

/// A Dockerfile of at least one stage.
#[derive(Debug)]
pub struct Dockerfile {
    /// In the order of the file.
    pub stages: Vec<Stage>,
}

impl Dockerfile {
    /// Reads a Dockerfile.
    ///
    /// # Errors
    ///
    /// If it has no stage, an instruction before the first that is no ARG, or a here-document.
    pub fn parse(text: &str) -> Result<Self> {
        let mut arguments = Vec::new();
        let mut stages: Vec<Stage> = Vec::new();
        for instruction in instructions(text) {
            ensure!(
                !instruction.rest.contains("<<"),
                "here-documents are not read: {instruction:?}"
            );
            match (instruction.name.as_str(), stages.last_mut()) {
                ("FROM", _) => {
                    let image = instruction.words().first().copied().context("FROM what?")?;
                    stages.push(Stage {
                        image: fill_in(image, &arguments),
                        instructions: Vec::new(),
                    });
                }
                (_, Some(stage)) => stage.instructions.push(instruction),
                ("ARG", None) => arguments.push(instruction.rest),
                (_, None) => anyhow::bail!("before the first FROM: {instruction:?}"),
            }
        }
        ensure!(!stages.is_empty(), "no FROM");
        Ok(Self { stages })
    }

    /// The stage that becomes the image.
    pub fn last_stage(&self) -> &Stage {
        &self.stages[self.stages.len() - 1]
    }

    /// What COPY takes from outside, without the slash at the end of folders.
    pub fn copied_from_outside(&self) -> Vec<String> {
        let copies = self.stages.iter().flat_map(|stage| stage.all("COPY"));
        let outside = copies.filter(|copy| copy.option("from").is_none());
        let sources = outside.flat_map(|copy| {
            let mut words = copy.words();
            words.pop();
            words
        });
        sources
            .map(|path| path.trim_end_matches('/').to_owned())
            .collect()
    }
}

/// The instructions, comments and empty lines left out, continued lines joined.
fn instructions(text: &str) -> Vec<Instruction> {
    let mut found = Vec::new();
    let mut line = String::new();
    for part in text.lines().map(str::trim) {
        if part.is_empty() || part.starts_with('#') {
            continue;
        }
        if let Some(part) = part.strip_suffix('\\') {
            line.push_str(part);
            line.push(' ');
            continue;
        }
        line.push_str(part);
        found.push(Instruction::parse(&line));
        line.clear();
    }
    found
}

/// Replaces `${NAME}` by the default in `arguments`, each written `NAME=default`.
fn fill_in(image: &str, arguments: &[String]) -> String {
    let defaults = arguments.iter().filter_map(|given| given.split_once('='));
    defaults.fold(image.to_owned(), |image, (name, default)| {
        image.replace(&format!("${{{name}}}"), default)
    })
}
