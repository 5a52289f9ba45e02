//! From the text of an expression to a tree that may be evaluated: every name in it is known, it
//! is not too deep, and everything that takes work pays for it (see [`super::meter`]).

use std::collections::BTreeSet;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};
use cel::parser::{ParseErrors, PrattParser};
use cel::{IdedExpr, common::ast::IdedEntryExpr};

use super::meter::{AMONG, KEEP, PAY, PLACE, TURNS};
use crate::text::words;

/// How deep parentheses, lists, maps and calls may be within each other: what a thread's stack
/// holds easily.
const NESTED: u16 = 32;
/// How deep the tree may be.
const DEEPEST: usize = 64;

/// What one turn of a macro costs in addition to its parts, in the units of the meter.
const TURN: u64 = 500;
/// What a part costs.
const PART: u64 = 250;
/// What looking up a name costs, for each macro around it.
const LOOKUP: u64 = 75;

/// What parts are joined with, and never wrapped: they look at truths alone.
const LOGIC: [&str; 5] = [
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_NOT,
    operators::LOGICAL_OR,
    operators::NOT_STRICTLY_FALSE,
];
const COMPARISONS: [&str; 6] = [
    operators::EQUALS,
    operators::GREATER,
    operators::GREATER_EQUALS,
    operators::LESS,
    operators::LESS_EQUALS,
    operators::NOT_EQUALS,
];
const ARITHMETIC: [&str; 6] = [
    operators::ADD,
    operators::DIVIDE,
    operators::MODULO,
    operators::MULTIPLY,
    operators::NEGATE,
    operators::SUBSTRACT,
];
/// Functions of one value. The first three never return true or false.
const FUNCTIONS: [&str; 9] = [
    "size", "string", "type", "bool", "bytes", "double", "dyn", "int", "uint",
];
/// Of a text and another.
const METHODS: [&str; 3] = ["contains", "endsWith", "startsWith"];
/// Those are gone from a tree, unless they were written otherwise.
const MACROS: [&str; 6] = ["all", "exists", "exists_one", "filter", "has", "map"];
/// The names of types.
const TYPES: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
];

/// What the value of an expression has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// True or false.
    Truth,
    /// A text.
    Text,
}

/// The tree of `text`, and the names that it holds.
pub(super) fn expression(
    text: &str,
    variables: &[&str],
    wanted: Wanted,
) -> Result<(IdedExpr, BTreeSet<String>), String> {
    let parser = PrattParser::new().max_recursion_depth(NESTED);
    let mut tree = parser.parse(text).map_err(|errors| first(&errors))?;
    let mut reader = Reader {
        variables,
        bound: Vec::new(),
        names: BTreeSet::new(),
    };
    reader.part(&mut tree, 0)?;
    let may_be_text = |what: &&str| wanted == Wanted::Text && what.contains("a text");
    match (
        something_else(&tree.expr).filter(|what| !may_be_text(what)),
        wanted,
    ) {
        (Some(what), Wanted::Truth) => Err(format!("its value is {what}, not true or false")),
        (Some(what), Wanted::Text) => Err(format!("its value is {what}, not a text")),
        (None, _) => Ok((tree, reader.names)),
    }
}

fn first(errors: &ParseErrors) -> String {
    let Some(error) = errors.errors.first() else {
        return "it cannot be read".to_owned();
    };
    if error.msg.contains("recursion limit") {
        return format!("it is nested deeper than {NESTED} levels");
    }
    let (line, place) = error.pos;
    let what = words::clean(&error.msg, 200);
    match (line, place) {
        (1, place) => format!("at character {place}: {what}"),
        (line @ 2.., place) => format!("line {line}, character {place}: {what}"),
        _ => what,
    }
}

/// As it is written.
pub(super) fn spelled(function: &str) -> &str {
    match function {
        operators::INDEX => "[]",
        operators::IN | AMONG => "in",
        operators::CONDITIONAL => "?:",
        "_._" => ".",
        "add" => "+",
        "sub" => "-",
        "mul" => "*",
        "div" => "/",
        "rem" => "%",
        _ => function.trim_matches('_'),
    }
}

/// The type of an expression's result, if that is certainly not true or false.
fn something_else(tree: &Expr) -> Option<&'static str> {
    match tree {
        Expr::Literal(LiteralValue::Boolean(_)) => None,
        Expr::Literal(LiteralValue::String(_)) => Some("a text"),
        Expr::Literal(LiteralValue::Null) => Some("null"),
        Expr::Literal(_) => Some("a number"),
        Expr::List(_) => Some("a list"),
        Expr::Map(_) => Some("a map"),
        Expr::Comprehension(turns) => match turns.accu_init.expr {
            Expr::List(_) => Some("a list"),
            _ => None,
        },
        Expr::Call(call) => match call.func_name.as_str() {
            "size" | "int" | "uint" | "double" => Some("a number"),
            "string" => Some("a text"),
            "type" => Some("a type"),
            "bytes" => Some("bytes"),
            name if ARITHMETIC.contains(&name) => Some("a number, a text or a list"),
            _ => None,
        },
        Expr::Ident(_) | Expr::Select(_) | Expr::Struct(_) | Expr::Unspecified => None,
    }
}

struct Reader<'a> {
    variables: &'a [&'a str],
    /// The variables of the macros around.
    bound: Vec<String>,
    names: BTreeSet<String>,
}

impl Reader<'_> {
    /// Checks a part, has it pay, and returns what evaluating it once costs, the turns of macros
    /// apart.
    fn part(&mut self, part: &mut IdedExpr, depth: usize) -> Result<u64, String> {
        if depth > DEEPEST {
            return Err(format!("it is nested deeper than {DEEPEST} levels"));
        }
        let depth = depth + 1;
        let parts = match &mut part.expr {
            Expr::Literal(literal) => {
                if let LiteralValue::String(text) = literal {
                    self.names.insert(text.inner().to_owned());
                }
                0
            }
            Expr::Ident(name) => {
                self.know(name)?;
                self.look_up()
            }
            Expr::Select(select) => {
                self.names.insert(select.field.clone());
                let cost = self.part(&mut select.operand, depth)?;
                cost + self.look_up()
            }
            Expr::List(list) => self.paying(KEEP, &mut list.elements, depth)?,
            Expr::Map(map) => self.entries(&mut map.entries, depth)?,
            Expr::Call(call) => self.call(call, depth)?,
            Expr::Comprehension(turns) => self.turns(turns, depth)?,
            Expr::Struct(one) => {
                return Err(format!(
                    "there is no type `{}`; write a map such as {{'key': 1}}",
                    one.type_name
                ));
            }
            Expr::Unspecified => return Err("it has a part that is empty".to_owned()),
        };
        Ok(parts.saturating_add(PART))
    }

    fn look_up(&self) -> u64 {
        LOOKUP * (self.bound.len() as u64 + 1)
    }

    fn know(&self, name: &str) -> Result<(), String> {
        // Such as `@result`: these belong to the macros themselves, and users cannot write them.
        let known = name.starts_with('@')
            || self.bound.iter().any(|bound| bound == name)
            || self.variables.contains(&name)
            || TYPES.contains(&name);
        match known {
            true => Ok(()),
            false => Err(format!(
                "there is no variable `{name}`; there is {}",
                listed(self.variables)
            )),
        }
    }

    fn call(&mut self, call: &mut CallExpr, depth: usize) -> Result<u64, String> {
        let name = call.func_name.as_str();
        let operator = call.target.is_none();
        if operator && LOGIC.contains(&name) {
            return self.each(&mut call.args, depth);
        }
        if operator && name == operators::INDEX {
            return self.place(&mut call.args, depth);
        }
        if operator && name == operators::IN {
            AMONG.clone_into(&mut call.func_name);
            return self.each(&mut call.args, depth);
        }
        let known = match (operator, call.args.len()) {
            (true, _) if COMPARISONS.contains(&name) || ARITHMETIC.contains(&name) => true,
            (true, 1) => FUNCTIONS.contains(&name),
            (false, 0) => name == "size",
            (false, 1) => METHODS.contains(&name),
            _ => false,
        };
        if !known {
            return Err(unknown(name));
        }
        let to = match name {
            operators::ADD => KEEP,
            _ => PAY,
        };
        let mut cost = 0;
        if let Some(target) = &mut call.target {
            cost = self.part(target, depth)?;
            pay(PAY, target);
        }
        Ok(cost.saturating_add(self.paying(to, &mut call.args, depth)?))
    }

    fn each(&mut self, parts: &mut [IdedExpr], depth: usize) -> Result<u64, String> {
        let mut cost: u64 = 0;
        for part in parts {
            cost = cost.saturating_add(self.part(part, depth)?);
        }
        Ok(cost)
    }

    fn paying(&mut self, to: &str, parts: &mut [IdedExpr], depth: usize) -> Result<u64, String> {
        let cost = self.each(parts, depth)?;
        for part in parts.iter_mut() {
            pay(to, part);
        }
        Ok(cost.saturating_add(PART.saturating_mul(parts.len() as u64)))
    }

    /// A list and a place in it. The list itself is not copied, nor paid for.
    fn place(&mut self, parts: &mut [IdedExpr], depth: usize) -> Result<u64, String> {
        let cost = self.each(parts, depth)?;
        if let [_, place] = parts {
            match place.expr {
                Expr::Literal(LiteralValue::Double(_)) => {
                    return Err("a place in a list is a whole number".to_owned());
                }
                _ => pay(PLACE, place),
            }
        }
        Ok(cost.saturating_add(PART))
    }

    fn entries(&mut self, entries: &mut [IdedEntryExpr], depth: usize) -> Result<u64, String> {
        let mut cost: u64 = 0;
        for entry in entries {
            let EntryExpr::MapEntry(entry) = &mut entry.expr else {
                return Err("it has a map with fields; write keys".to_owned());
            };
            for part in [&mut entry.key, &mut entry.value] {
                cost = cost.saturating_add(self.part(part, depth)? + PART);
                pay(KEEP, part);
            }
        }
        Ok(cost)
    }

    fn turns(&mut self, turns: &mut ComprehensionExpr, depth: usize) -> Result<u64, String> {
        if turns.iter_var2.is_some() {
            return Err("a macro has one variable".to_owned());
        }
        let mut cost = self.part(&mut turns.iter_range, depth)?;
        cost = cost.saturating_add(self.part(&mut turns.accu_init, depth)?);
        self.bound.push(turns.iter_var.clone());
        let condition = self.part(&mut turns.loop_cond, depth)?;
        let step = self.part(&mut turns.loop_step, depth)?;
        cost = cost.saturating_add(self.part(&mut turns.result, depth)?);
        self.bound.pop();
        let turn = TURN.saturating_add(condition).saturating_add(step);
        let list = std::mem::take(&mut turns.iter_range);
        let turn = LiteralValue::Int(i64::try_from(turn).unwrap_or(i64::MAX).into());
        let arguments = vec![without_place(Expr::Literal(turn)), list];
        turns.iter_range = calling(TURNS, arguments);
        Ok(cost.saturating_add(TURN))
    }
}

/// Wraps a part into a call that pays for its result. What costs nothing is left as it is, and so is what
/// the crate recognizes: the steps of its macros `map` and `filter` append a list that is written to
/// `@result`.
fn pay(to: &str, part: &mut IdedExpr) {
    let left = match &part.expr {
        Expr::Literal(_) | Expr::List(_) => true,
        Expr::Ident(name) => name.starts_with('@'),
        _ => false,
    };
    if !left {
        let inner = std::mem::take(part);
        *part = calling(to, vec![inner]);
    }
}

fn calling(function: &str, args: Vec<IdedExpr>) -> IdedExpr {
    without_place(Expr::Call(CallExpr {
        func_name: function.to_owned(),
        target: None,
        args,
    }))
}

/// It stands nowhere in the text.
fn without_place(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn unknown(name: &str) -> String {
    if METHODS.contains(&name) {
        return format!("`{name}` is asked of a text: write a.{name}(b)");
    }
    if FUNCTIONS.contains(&name) {
        return format!("`{name}` takes one value: write {name}(a)");
    }
    match name {
        "has" => "`has` takes a field: write has(a.field)".to_owned(),
        name if MACROS.contains(&name) => {
            format!("`{name}` takes a variable and a condition: write a.{name}(b, b > 0)")
        }
        name => {
            let there_are = [MACROS.as_slice(), &METHODS, &FUNCTIONS].concat();
            let name = spelled(name);
            format!(
                "there is no function `{name}`; there are {}",
                there_are.join(", ")
            )
        }
    }
}

fn listed(variables: &[&str]) -> String {
    let quoted: Vec<_> = variables
        .iter()
        .map(|variable| format!("`{variable}`"))
        .collect();
    quoted.join(" and ")
}
