//! What a file of a room uses of other rooms.
//!
//! What comes in: the text of a file, and which module it is. What goes out: the paths in it that lead
//! out of the room, and the modules whose files come next.
//!
//! `syn` finds items and modules. Paths are then read from the tokens, and so are found in the same
//! way in a `use`, in code, in attributes and in macros. Comments, links and texts are not read.

use proc_macro2::{Ident, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Item};

/// A room uses something of another one.
pub(super) struct Use {
    /// File and line.
    pub(super) place: String,
    pub(super) room: String,
    /// From the top of the crate: `gate::nested::Nested`.
    pub(super) path: String,
}

impl Use {
    /// Whether this is what the room may use: a room, or a module in one.
    pub(super) fn is_along(&self, (room, part): (&str, &str)) -> bool {
        let inside = self.path.strip_prefix(part);
        self.room == room && inside.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    }
}

/// What is to be known of a file.
pub(super) struct Source {
    file: String,
    pub(super) uses: Vec<Use>,
    /// The modules that have files of their own, from the top of the crate. Those of tests are left
    /// out.
    pub(super) modules: Vec<Vec<String>>,
}

impl Source {
    /// Reads `text`, the file of `module`.
    pub(super) fn read(file: &str, text: &str, module: &[String]) -> syn::Result<Self> {
        let (file, uses, modules) = (file.to_owned(), Vec::new(), Vec::new());
        let mut source = Self {
            file,
            uses,
            modules,
        };
        source.items(syn::parse_file(text)?.items, module);
        Ok(source)
    }

    fn items(&mut self, items: Vec<Item>, module: &[String]) {
        for item in items {
            let Item::Mod(declared) = item else {
                self.paths(item.into_token_stream(), &[], module);
                continue;
            };
            let inner = [module, &[declared.ident.to_string()]].concat();
            match declared.content {
                _ if declared.attrs.iter().any(is_for_tests) => {}
                Some((_, items)) => self.items(items, &inner),
                None => self.modules.push(inner),
            }
        }
    }

    /// All paths in `tokens`. In the braces of a `use`, they continue `prefix`.
    fn paths(&mut self, tokens: TokenStream, prefix: &[String], module: &[String]) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut rest = tokens.as_slice();
        while let [token, after @ ..] = rest {
            rest = match (token, after) {
                // `pub(in crate::room)` says who may see it, and uses nothing.
                (TokenTree::Ident(word), [TokenTree::Group(_), after @ ..]) if word == "pub" => {
                    after
                }
                // The new name in `use crate::{room as name}`.
                (TokenTree::Ident(word), [_, after @ ..]) if word == "as" && !prefix.is_empty() => {
                    after
                }
                (TokenTree::Ident(word), _) => {
                    let path = [prefix, &[word.to_string()]].concat();
                    self.path(word, path, after, module)
                }
                (TokenTree::Group(group), _) => {
                    self.paths(group.stream(), &[], module);
                    after
                }
                _ => after,
            };
        }
    }

    /// The rest of a `path`, of which `word` was read last. Returns the tokens behind it.
    fn path<'t>(
        &mut self,
        word: &Ident,
        mut path: Vec<String>,
        mut rest: &'t [TokenTree],
        module: &[String],
    ) -> &'t [TokenTree] {
        while let [
            TokenTree::Punct(one),
            TokenTree::Punct(two),
            next,
            after @ ..,
        ] = rest
            && (one.as_char(), one.spacing(), two.as_char()) == (':', Spacing::Joint, ':')
        {
            match next {
                TokenTree::Group(group) => {
                    self.paths(group.stream(), &path, module);
                    return after;
                }
                // The types in `crate::room::function::<…>()` are paths of their own.
                TokenTree::Punct(mark) if mark.as_char() == '<' => break,
                _ => path.push(next.to_string()),
            }
            rest = after;
        }
        if let (Some(room), Some(path)) = (module.first(), out_of_room(module, &path)) {
            let (line, room) = (word.span().start().line, room.clone());
            let place = format!("{}:{line}", self.file);
            self.uses.push(Use { place, room, path });
        }
        rest
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    let condition = attribute.parse_args::<Ident>();
    attribute.path().is_ident("cfg") && condition.is_ok_and(|word| word == "test")
}

/// Where a path in `module` leads, from the top of the crate. `None` if that is in the same room, or
/// in another crate.
fn out_of_room(module: &[String], path: &[String]) -> Option<String> {
    let mut from = match path.first()?.as_str() {
        "crate" => &[],
        "self" | "super" => module,
        _ => return None,
    };
    let up = |step: &&String| ["crate", "self", "super"].contains(&step.as_str());
    let steps = path.iter().take_while(up).count();
    for _ in path[..steps].iter().filter(|step| *step == "super") {
        from = from.split_last().map_or(&[], |(_, outer)| outer);
    }
    let to = &path[steps..];
    let leaves = from.is_empty() && to.first() != module.first();
    // Without a name behind it, it is the crate itself: `crate::{self}`.
    leaves.then(|| {
        if to.is_empty() {
            "crate".to_owned()
        } else {
            to.join("::")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Source {
        let module = ["low", "words"].map(str::to_owned);
        Source::read("low/words.rs", text, &module).unwrap()
    }

    fn used(text: &str) -> Vec<String> {
        read(text).uses.into_iter().map(|one| one.path).collect()
    }

    #[test]
    fn every_way_to_name_another_room_is_found() {
        for (text, expected) in [
            ("use crate::high::Thing;", &["high::Thing"][..]),
            ("pub use crate::high as top;", &["high"]),
            ("use crate::high::*;", &["high::*"]),
            (
                "use crate::{self, high::{self, a::B}, other as low};",
                &["crate", "high::self", "high::a::B", "other"],
            ),
            ("use super::super::high;", &["high"]),
            ("use super::{a, super::{high, low}};", &["high"]),
            ("use self::super::super::high;", &["high"]),
            ("fn f() { use crate::high; }", &["high"]),
            (
                "fn f() -> u8 { crate::high::f::<crate::mid::T>() }",
                &["high::f", "mid::T"],
            ),
            ("fn f() { super::super::high::f(); }", &["high::f"]),
            ("fn f(x: &dyn crate::high::T) {}", &["high::T"]),
            (
                "impl<T: crate::high::T> crate::mid::T for S<T> {}",
                &["high::T", "mid::T"],
            ),
            ("fn f() -> u8 { 1 as crate::high::Byte }", &["high::Byte"]),
            ("#[derive(crate::high::Make)] struct S;", &["high::Make"]),
            ("fn f() { vec![crate::high::f(), (1)]; }", &["high::f"]),
            (
                "macro_rules! m { ($x:ty) => { $crate::high::f($x) } }",
                &["high::f"],
            ),
            ("m! { use crate::{low, high}; }", &["high"]),
            ("mod inner { use super::super::super::high; }", &["high"]),
        ] {
            assert_eq!(used(text), expected, "{text}");
        }
    }

    #[test]
    fn what_stays_in_the_room_is_no_use() {
        for text in [
            "use crate::low::lines; use super::lines; use self::a; use super::{a, b};",
            "use std::fmt; use high::Thing; fn f() { ::high::f(); high::f() }",
            "pub(in crate::high) fn f() {} pub(crate) struct S { pub(super) a: u8 }",
            "//! [`high`](crate::high)\n/// [`crate::high::Thing`]\nfn f() { \"crate::high\"; }",
            "mod inner { use super::super::lines; }",
            "#[cfg(test)] mod tests { use crate::high; }",
        ] {
            assert_eq!(used(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_use_knows_its_place() {
        let uses =
            read("use crate::{\n    low,\n    high,\n};\n\nfn f() {\n    m!(crate::high)\n}").uses;
        let places: Vec<_> = uses.iter().map(|one| &one.place).collect();
        assert_eq!(places, ["low/words.rs:3", "low/words.rs:7"]);
    }

    #[test]
    fn files_are_those_of_modules_outside_of_tests() {
        let source = read("mod a; pub(crate) mod b { mod c; } #[cfg(test)] mod tests;");
        let modules: Vec<_> = source.modules.iter().map(|path| path.join("::")).collect();
        assert_eq!(modules, ["low::words::a", "low::words::b::c"]);
    }
}
