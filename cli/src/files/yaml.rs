//! From the text of a YAML file to documents whose every value knows its line.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Span, Tag};
use serde_json::{Map, Value};

use super::scalar;

/// The most values of one file, aliases counted each time: what a few lines of YAML unfold to is
/// bounded.
const MOST_VALUES: usize = 1_000_000;

/// A value and where it is written. A copy costs nothing: what aliases stand for is shared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// From 1.
    pub(crate) line: usize,
    pub(crate) content: Rc<Content>,
    /// How many values it holds, itself included, each alias counted as what it stands for.
    values: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// Neither list nor map, with the text that it was made from.
    Scalar(Value, String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// Why a file cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) line: usize,
    pub(crate) problem: String,
    pub(crate) what: What,
}

/// What sort of mistake it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// It is no YAML of ours.
    Syntax,
    /// It is none until Helm has filled it in.
    Template,
    /// A key is written twice.
    Twice,
}

impl Node {
    fn new(line: usize, content: Content) -> Self {
        let inside: usize = match &content {
            Content::Scalar(..) => 0,
            Content::List(items) => items.iter().map(|node| node.values).sum(),
            Content::Map(entries) => entries.iter().map(|(_, node)| node.values).sum(),
        };
        Self {
            line,
            content: Rc::new(content),
            values: 1 + inside,
        }
    }

    /// As JSON.
    pub(crate) fn value(&self) -> Value {
        match &*self.content {
            Content::Scalar(value, _) => value.clone(),
            Content::List(items) => Value::Array(items.iter().map(Node::value).collect()),
            Content::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, node)| (key.clone(), node.value()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }

    /// What to say of a word that YAML takes for something else: ` (YAML reads `on` as true)`.
    pub(crate) fn reading(&self) -> Option<String> {
        let Content::Scalar(value @ (Value::Bool(_) | Value::Number(_)), written) = &*self.content
        else {
            return None;
        };
        let read = value.to_string();
        (read != *written).then(|| format!(" (YAML reads `{written}` as {read})"))
    }

    /// Whether nothing is written.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&*self.content, Content::Scalar(Value::Null, _))
    }

    /// The field of that name, if this is a map that has it.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        let Content::Map(entries) = &*self.content else {
            return None;
        };
        entries
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, node)| node)
    }

    /// The text in the field of that name.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match &*self.get(name)?.content {
            Content::Scalar(Value::String(text), _) => Some(text),
            _ => None,
        }
    }

    /// The value at a path such as `spec.schedule.open[0].cron` or `metadata.annotations[a/b]`,
    /// or the innermost one around it that is there.
    pub(crate) fn at(&self, path: &str) -> &Node {
        let mut node = self;
        let mut rest = path;
        while !rest.is_empty() {
            let (step, after) = match rest.strip_prefix('[') {
                Some(bracketed) => bracketed.split_once(']').unwrap_or((bracketed, "")),
                None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
            };
            let inner = match &*node.content {
                Content::List(items) => step.parse().ok().and_then(|n: usize| items.get(n)),
                Content::Map(_) => node.get(step),
                Content::Scalar(..) => None,
            };
            let Some(inner) = inner else { break };
            node = inner;
            rest = after.strip_prefix('.').unwrap_or(after);
        }
        node
    }
}

/// The documents of a text, those before a mistake included.
pub(crate) fn documents(text: &str) -> (Vec<Node>, Option<Mistake>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut reader = Reader {
        events: Parser::new_from_str_with_options(text, options),
        anchors: HashMap::new(),
        values: 0,
    };
    let mut documents = Vec::new();
    let mistake = reader.documents(&mut documents).err();
    (documents, mistake.map(|mistake| with_remedy(mistake, text)))
}

/// Says what to do about templates of Helm, and about a value such as `* * * * *` or `@daily`, which
/// stand for something else unless they are quoted.
fn with_remedy(mut mistake: Mistake, text: &str) -> Mistake {
    let before = mistake.line.saturating_sub(2);
    let around = text.lines().take(mistake.line).skip(before);
    if mistake.what == What::Syntax && around.clone().any(is_of_a_template) {
        mistake.what = What::Template;
        mistake.problem =
            "it is a template of Helm and no YAML yet; give lint what `helm template` \
                           prints"
                .to_owned();
        return mistake;
    }
    let line = around.last().unwrap_or_default();
    let value = line
        .split_once(": ")
        .map_or("", |(_, value)| value.trim_start());
    if value.starts_with(['*', '@']) {
        mistake
            .problem
            .push_str("; put what begins with * or @ in quotes");
    }
    mistake
}

/// Whether Helm has to fill in the line first. In quotes and comments it is a text.
fn is_of_a_template(line: &str) -> bool {
    let begins = line.split(['#', '"', '\'', '`']).next().unwrap_or_default();
    begins.contains("{{")
}

struct Reader<P> {
    events: P,
    anchors: HashMap<usize, Node>,
    values: usize,
}

impl<'i, P: Iterator<Item = Result<(Event<'i>, Span), ScanError>>> Reader<P> {
    fn documents(&mut self, documents: &mut Vec<Node>) -> Result<(), Mistake> {
        while let Some((event, span)) = self.next()? {
            match event {
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) => self.anchors.clear(),
                Event::StreamEnd => return Ok(()),
                event => documents.push(self.node(event, span)?),
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<(Event<'i>, Span)>, Mistake> {
        self.events.next().transpose().map_err(|error| Mistake {
            line: error.marker().line(),
            problem: format!("it is not YAML: {}", error.info()),
            what: What::Syntax,
        })
    }

    fn expect(&mut self, line: usize) -> Result<(Event<'i>, Span), Mistake> {
        self.next()?
            .ok_or_else(|| mistake(line, "the file ends in the middle"))
    }

    fn node(&mut self, event: Event<'i>, span: Span) -> Result<Node, Mistake> {
        let line = span.start.line();
        self.count(1, line)?;
        let (content, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => (
                Content::Scalar(value(&text, style, tag.as_deref()), text.into_owned()),
                anchor,
            ),
            Event::SequenceStart(_, anchor, _) => (Content::List(self.list(line)?), anchor),
            Event::MappingStart(_, anchor, _) => (Content::Map(self.map(line)?), anchor),
            Event::Alias(anchor) => {
                let named = self.anchors.get(&anchor).cloned();
                let named = named.ok_or_else(|| mistake(line, "an alias is part of itself"))?;
                // Itself is counted already.
                self.count(named.values - 1, line)?;
                return Ok(named);
            }
            _ => return Err(mistake(line, "it is not YAML")),
        };
        let node = Node::new(line, content);
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, line: usize) -> Result<Vec<Node>, Mistake> {
        let mut items = Vec::new();
        loop {
            match self.expect(line)? {
                (Event::SequenceEnd, _) => return Ok(items),
                (event, span) => items.push(self.node(event, span)?),
            }
        }
    }

    fn map(&mut self, line: usize) -> Result<Vec<(String, Node)>, Mistake> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        let mut known: HashSet<String> = HashSet::new();
        let mut merged: Vec<Node> = Vec::new();
        loop {
            let (event, span) = self.expect(line)?;
            let line = span.start.line();
            let (key, is_merge) = match &event {
                Event::MappingEnd => break,
                Event::Scalar(text, style, ..) => {
                    let plain = *style == ScalarStyle::Plain;
                    (
                        key(text, plain).ok_or_else(|| mistake(line, "a key is empty"))?,
                        plain && text == "<<",
                    )
                }
                _ => return Err(mistake(line, "a key is no plain text")),
            };
            let (event, span) = self.expect(line)?;
            let is_block = matches!(
                event,
                Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..)
            );
            let mut node = self.node(event, span)?;
            if is_block {
                // Where the text is announced, not where it begins.
                node.line = line;
            }
            if is_merge {
                merged.push(node);
            } else if known.insert(key.clone()) {
                entries.push((key, node));
            } else {
                return Err(written_twice(line, &key));
            }
        }
        merge(&mut entries, &mut known, &merged);
        Ok(entries)
    }

    fn count(&mut self, more: usize, line: usize) -> Result<(), Mistake> {
        self.values = self.values.saturating_add(more);
        if self.values > MOST_VALUES {
            return Err(mistake(
                line,
                format!("it holds more than {MOST_VALUES} values; split it"),
            ));
        }
        Ok(())
    }
}

fn mistake(line: usize, problem: impl Into<String>) -> Mistake {
    Mistake {
        line,
        problem: problem.into(),
        what: What::Syntax,
    }
}

/// Two objects without a line of dashes between them look like one that repeats its first keys.
fn written_twice(line: usize, key: &str) -> Mistake {
    let remedy = match key {
        "apiVersion" | "kind" | "metadata" | "spec" => {
            "put a line with --- before the next object, or remove one of the two"
        }
        _ => "remove one",
    };
    Mistake {
        line,
        problem: format!("the key `{key}` is written twice; {remedy}"),
        what: What::Twice,
    }
}

/// `<<: *defaults`: the keys that are not written themselves.
fn merge(entries: &mut Vec<(String, Node)>, known: &mut HashSet<String>, merged: &[Node]) {
    for node in merged {
        match &*node.content {
            Content::Map(more) => {
                for (key, node) in more {
                    if known.insert(key.clone()) {
                        entries.push((key.clone(), node.clone()));
                    }
                }
            }
            Content::List(items) => merge(entries, known, items),
            Content::Scalar(..) => {}
        }
    }
}

fn value(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_text = tag.is_some_and(|tag| tag.core_suffix().is_none_or(|suffix| suffix == "str"));
    if style == ScalarStyle::Plain && !is_text {
        scalar::resolve(text)
    } else {
        Value::String(text.to_owned())
    }
}

/// JSON has keys of text alone: `on: 1` is `"true": 1`. None: no key at all.
fn key(text: &str, plain: bool) -> Option<String> {
    match (plain, scalar::resolve(text)) {
        (true, Value::Null) => None,
        (true, Value::Bool(value)) => Some(value.to_string()),
        (true, Value::Number(number)) => Some(number.to_string()),
        _ => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests;
