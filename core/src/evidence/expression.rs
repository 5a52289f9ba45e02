//! Conditions and texts in CEL, over JSON that others wrote.
//!
//! What comes in: a text of at most 1 KiB from a spec, and later values to judge. What goes out: true or
//! false, or a text where one is asked for, or an [`ExpressionError`] whose words contain none of the
//! values. The same values give the same answer.
//!
//! The language is CEL as the `cel` crate has it, with the macros `has`, `all`, `exists`,
//! `exists_one`, `map` and `filter`, and without timestamps, durations, regular expressions and
//! optional values. A map is gone through in the order of its keys.
//!
//! Both the text and the values may be hostile, and the crate sets no bounds. Here is what does:
//! - The crate's smaller parser, with a limit to nesting. Its default one, made by ANTLR, overflows
//!   the stack on a kibibyte of parentheses, which ends the process.
//! - A stack of its own ([`on_large_stack`]), large enough for the deepest tree that is let through.
//! - A walk over the tree ([`read`]) that refuses unknown names and everything that has no use.
//! - A [`meter`]: the walk wraps everything that copies or compares, and the list of each macro, into
//!   calls that pay for the work from an allowance. Nested macros over a long list, or lists of
//!   lists that double, end with [`ExpressionError::TooMuchWork`] within a part of a second.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::thread;

use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull};
use cel::common::types::{CelString, CelUInt};
use cel::common::value::Val;
use cel::{Context, Env, ExecutionError, IdedExpr, Value};
use serde_json::Value as Json;

mod input;
mod meter;
mod read;
#[cfg(test)]
mod tests;

use input::Size;
use meter::Meter;

pub use input::{Unread, read as input};

/// The most bytes of an expression.
pub const LONGEST: usize = 1024;
/// The most values (numbers, texts, lists, …) in what an expression is asked about, all inputs
/// together. An object counts twice.
pub const MOST_VALUES: usize = 65_536;
/// The most bytes of text in it, keys included.
pub const MOST_TEXT: usize = 1 << 20;
/// How deep lists and objects may be within each other.
pub const DEEPEST: usize = 64;

/// What to write where a condition is wanted.
pub const REMEDY: &str = "write a condition in CEL that is true or false, such as \
                          body.ready == true";

/// What to write where a text is wanted.
pub const REMEDY_FOR_TEXT: &str = "write an expression in CEL that is a text, such as \
                                   object.spec.values.image.tag";

/// The functions that evaluation knows in addition to those of [`meter`].
static ENVIRONMENT: LazyLock<Arc<Env>> =
    LazyLock::new(|| Arc::new(Env::default().with_optional_support(false).with_stdlib()));

/// The work that several expressions may take together: as much as one alone.
pub struct Allowance(Meter);

impl Default for Allowance {
    fn default() -> Self {
        Self(Meter::full())
    }
}

/// A condition, ready to be asked. Clones share it.
#[derive(Clone)]
pub struct Expression(Arc<Inner>);

struct Inner {
    text: String,
    tree: IdedExpr,
    /// The names in the text: what a message may repeat.
    names: BTreeSet<String>,
}

/// Why an expression gave no result. No message contains any of the values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// The result is not true or false.
    #[error("its value is a value of type {0}, not true or false")]
    NotABool(String),
    /// The result is not a text.
    #[error("its value has the type {0}, not to a text")]
    NotAText(String),
    /// A key is not there. With its name, where the expression has it.
    #[error("there is no key{}", named(.0.as_deref()))]
    NoSuchKey(Option<String>),
    /// A place in a list is not there.
    #[error("a list is shorter than the place that is asked for")]
    OutOfBounds,
    /// A function or an operator got what it does not take.
    #[error("`{function}` does not take {}", types(.taken))]
    WrongTypes {
        /// Its name.
        function: String,
        /// The types that it got. Empty: they are not known.
        taken: Vec<String>,
    },
    /// A function fails on the value that it got.
    #[error("`{0}` fails on the value that it is given")]
    Fails(String),
    /// A number is too large.
    #[error("a number overflows")]
    Overflow,
    /// Somewhere is divided by zero.
    #[error("it divides by zero")]
    DivisionByZero,
    /// An object is written with the same key twice.
    #[error("an object has the same key twice")]
    DuplicateKey,
    /// What it is asked about is larger than [`MOST_VALUES`], [`MOST_TEXT`] or [`DEEPEST`] allow.
    #[error("what it is asked about is too large: {0}")]
    TooMuchInput(&'static str),
    /// The allowance is spent.
    #[error("it takes too much work over values of this size; write a simpler one")]
    TooMuchWork,
    /// The crate panicked, or failed in a way that it has no word for.
    #[error("it cannot be evaluated; this is a defect of gate-controller")]
    Defect,
}

fn named(key: Option<&str>) -> String {
    key.map_or_else(String::new, |key| format!(" `{key}`"))
}

fn types(taken: &[String]) -> String {
    match taken {
        [] => "values of these types".to_owned(),
        taken => taken.join(" and "),
    }
}

impl Expression {
    /// Reads a condition over `variables`.
    ///
    /// # Errors
    /// What is wrong with it, without the remedy: see [`REMEDY`].
    pub fn parse(text: &str, variables: &[&str]) -> Result<Self, String> {
        Self::read(text, variables, read::Wanted::Truth)
    }

    /// Reads an expression over `variables` whose value is a text: see [`Expression::text_of`].
    ///
    /// # Errors
    /// What is wrong with it, without the remedy: see [`REMEDY_FOR_TEXT`].
    pub fn parse_text(text: &str, variables: &[&str]) -> Result<Self, String> {
        Self::read(text, variables, read::Wanted::Text)
    }

    fn read(text: &str, variables: &[&str], wanted: read::Wanted) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!(
                "the expression is longer than {LONGEST} characters"
            ));
        }
        let (tree, names) = on_large_stack(|| read::expression(text, variables, wanted))
            .unwrap_or_else(|| Err("the expression cannot be parsed".to_owned()))?;
        Ok(Self(Arc::new(Inner {
            text: text.to_owned(),
            tree,
            names,
        })))
    }

    /// What it says of `inputs`: a value for each of its variables, by name.
    ///
    /// Takes part of a second at most, and does not yield during that time.
    ///
    /// # Errors
    /// The result is not true or false.
    pub fn evaluate(&self, inputs: &[(&str, Json)]) -> Result<bool, ExpressionError> {
        self.ask(inputs, &Meter::full(), truth)
    }

    /// The text that it makes of `inputs`: a value for each of its variables, by name. `allowance` is what
    /// this and other expressions may take together.
    ///
    /// Takes part of a second at most, and does not yield during that time.
    ///
    /// # Errors
    /// The result is not a text.
    pub fn text_of(
        &self,
        inputs: &[(&str, Json)],
        allowance: &Allowance,
    ) -> Result<String, ExpressionError> {
        self.ask(inputs, &allowance.0, |found| {
            match found.downcast_ref::<CelString>() {
                Some(found) => Ok(found.inner().to_owned()),
                None => Err(ExpressionError::NotAText(type_of(found))),
            }
        })
    }

    fn ask<T: Send>(
        &self,
        inputs: &[(&str, Json)],
        meter: &Meter,
        read: fn(&dyn Val) -> Result<T, ExpressionError>,
    ) -> Result<T, ExpressionError> {
        let mut size = Size::default();
        for (_, json) in inputs {
            size.add(json, 0)?;
        }
        let outcome = on_large_stack(|| self.run(inputs, meter, read))
            .unwrap_or(Err(ExpressionError::Defect));
        if meter.is_spent() {
            return Err(ExpressionError::TooMuchWork);
        }
        outcome
    }

    fn run<T>(
        &self,
        inputs: &[(&str, Json)],
        meter: &Meter,
        read: fn(&dyn Val) -> Result<T, ExpressionError>,
    ) -> Result<T, ExpressionError> {
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        meter
            .install(&mut context)
            .map_err(|_| ExpressionError::Defect)?;
        for (name, json) in inputs {
            context.add_variable_as_val(*name, value(json));
        }
        let found =
            Value::resolve_val(&self.0.tree, &context).map_err(|error| self.outcome(error))?;
        read(found.as_ref())
    }

    /// The crate's errors repeat the values that they are about. These do not.
    fn outcome(&self, error: ExecutionError) -> ExpressionError {
        let wrong = |function: &str, taken: &[String]| ExpressionError::WrongTypes {
            function: read::spelled(function).to_owned(),
            taken: taken.to_vec(),
        };
        match error {
            ExecutionError::NoSuchKey(key) => {
                ExpressionError::NoSuchKey(self.0.names.get(key.as_str()).cloned())
            }
            ExecutionError::IndexOutOfBounds(_) => ExpressionError::OutOfBounds,
            ExecutionError::NoSuchOverload(error) => {
                wrong(error.function(), error.argument_types())
            }
            ExecutionError::UnsupportedBinaryOperator(function, ..) => wrong(function, &[]),
            ExecutionError::UnexpectedType { want, .. } if want == "iterable" => {
                wrong("all, exists, map or filter", &[])
            }
            ExecutionError::UnexpectedType { .. } | ExecutionError::ValuesNotComparable(..) => {
                wrong("an operator", &[])
            }
            ExecutionError::UnsupportedKeyType(_) | ExecutionError::UnsupportedIndex(..) => {
                wrong("[]", &[])
            }
            ExecutionError::FunctionError { function, .. } => ExpressionError::Fails(function),
            ExecutionError::Overflow(..) => ExpressionError::Overflow,
            ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
                ExpressionError::DivisionByZero
            }
            ExecutionError::DuplicateKey(_) => ExpressionError::DuplicateKey,
            _ => ExpressionError::Defect,
        }
    }

    /// The expression as it was written.
    pub fn text(&self) -> &str {
        &self.0.text
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.0.text).finish()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Expression {}

fn truth(found: &dyn Val) -> Result<bool, ExpressionError> {
    match found.downcast_ref::<CelBool>() {
        Some(found) => Ok(*found.inner()),
        None => Err(ExpressionError::NotABool(type_of(found))),
    }
}

fn type_of(value: &dyn Val) -> String {
    value.get_type().name().to_owned()
}

/// The stack on which expressions are read and judged, in bytes. An unoptimized build takes some
/// 70 KiB for each level of a tree; only what is used is ever taken from the system.
const STACK: usize = 16 << 20;

/// Does `work` on a separate thread, and waits for it. None: it panicked, or no thread could be started.
/// The crate asserts what it assumes of a text, and recurses into it; no text may end the process.
fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    let builder = thread::Builder::new()
        .name("expression".to_owned())
        .stack_size(STACK);
    thread::scope(|scope| builder.spawn_scoped(scope, work).ok()?.join().ok())
}

/// JSON as CEL sees it. Whole numbers are `int`, those beyond it `uint`; texts are not copied.
fn value(json: &Json) -> Box<dyn Val + '_> {
    match json {
        Json::Null => Box::new(CelNull),
        Json::Bool(truth) => Box::new(CelBool::from(*truth)),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Box::new(CelInt::from(whole)),
            (None, Some(whole)) => Box::new(CelUInt::from(whole)),
            (None, None) => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
        },
        Json::String(text) => Box::new(CelString::from(text.as_str())),
        Json::Array(items) => Box::new(CelList::from(items.iter().map(value).collect::<Vec<_>>())),
        Json::Object(entries) => {
            let entries = entries.iter();
            let entries: HashMap<_, _> = entries
                .map(|(key, item)| (CelMapKey::from(key.as_str()), value(item)))
                .collect();
            Box::new(CelMap::from(entries))
        }
    }
}
