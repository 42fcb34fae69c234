//! The tree's Rust files as syntax: functions with their lengths, and tokens with their lines, comments left out.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Problem;
use super::tree::Tree;

/// Every Rust file of the tree.
pub struct Sources {
    files: BTreeMap<String, Result<Source, String>>,
}

/// One file's syntax.
pub struct Source {
    /// Name (`Type::name` for methods) and length in lines, from the signature to the closing brace.
    pub functions: Vec<(String, usize)>,
    /// Words with meaning to us, each with its line.
    pub marks: Vec<(Mark, usize)>,
    /// First and last lines of modules that exist only in tests.
    test_modules: Vec<(usize, usize)>,
}

/// What the checks look for among tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// `todo!` or `unimplemented!`.
    Todo,
    /// An attribute that keeps a test from running.
    Ignored,
    /// A call of something named `sleep`.
    Sleep,
}

impl Sources {
    /// The files that could be read.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.files.iter().filter_map(|(path, source)| Some((path.as_str(), source.as_ref().ok()?)))
    }

    /// The files that could not.
    pub fn problems(&self) -> Vec<Problem> {
        let broken = self.files.iter().filter_map(|(path, source)| Some((path, source.as_ref().err()?)));
        broken.map(|(path, error)| Problem::new(path, format!("does not parse: {error}"))).collect()
    }
}

impl Source {
    /// Whether a line of a file belongs to tests only.
    pub fn is_test(&self, path: &str, line: usize) -> bool {
        path.starts_with("tests/")
            || path.starts_with("crates/harness/")
            || path.contains("/tests/")
            || path.ends_with("/tests.rs")
            || self.test_modules.iter().any(|(first, last)| (*first..=*last).contains(&line))
    }
}

/// Parses every Rust file.
pub fn parse(tree: &Tree) -> Sources {
    Sources { files: tree.ending(".rs").map(|(path, text)| (path.to_owned(), source(text))).collect() }
}

fn source(text: &str) -> Result<Source, String> {
    let place = |error: syn::Error| format!("line {}: {error}", error.span().start().line);
    let file = syn::parse_file(text).map_err(place)?;
    let mut functions = Functions::default();
    functions.visit_file(&file);
    let tokens: TokenStream = text.trim_start_matches('\u{feff}').parse().map_err(|error| format!("{error}"))?;
    let mut marks = vec![];
    mark(tokens, &mut marks);
    Ok(Source { functions: functions.found, marks, test_modules: functions.test_modules })
}

/// Collects functions, and knows whose methods they are.
#[derive(Default)]
struct Functions {
    owner: String,
    found: Vec<(String, usize)>,
    test_modules: Vec<(usize, usize)>,
}

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let lines = block.span().end().line + 1 - signature.span().start().line;
        self.found.push((format!("{}{}", self.owner, signature.ident), lines));
    }

    fn within(&mut self, owner: String, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.owner, owner);
        visit(self);
        self.owner = outer;
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let owner = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|last| format!("{}::", last.ident)),
            _ => None,
        };
        self.within(owner.unwrap_or_default(), |us| visit::visit_item_impl(us, item));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.within(format!("{}::", item.ident), |us| visit::visit_item_trait(us, item));
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let is_cfg_test = |attribute: &syn::Attribute| match &attribute.meta {
            syn::Meta::List(list) => list.path.is_ident("cfg") && has_word(list.tokens.clone(), "test"),
            _ => false,
        };
        if module.attrs.iter().any(is_cfg_test) {
            self.test_modules.push((module.span().start().line, module.span().end().line));
        }
        visit::visit_item_mod(self, module);
    }
}

fn has_word(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == word,
        TokenTree::Group(group) => has_word(group.stream(), word),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// Walks all tokens, those inside macros too.
fn mark(tokens: TokenStream, marks: &mut Vec<(Mark, usize)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (i, token) in tokens.iter().enumerate() {
        let next = tokens.get(i + 1);
        let before = i.checked_sub(1).and_then(|i| tokens.get(i));
        match token {
            TokenTree::Ident(word) if word == "todo" || word == "unimplemented" => {
                if matches!(next, Some(TokenTree::Punct(mark)) if mark.as_char() == '!') {
                    marks.push((Mark::Todo, word.span().start().line));
                }
            }
            TokenTree::Ident(word) if word == "sleep" => {
                let is_call =
                    matches!(next, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
                let is_definition = matches!(before, Some(TokenTree::Ident(fn_)) if fn_ == "fn");
                // A field's or a trait's own sleep (`.sleep()`) may be anything, a fake clock's for example.
                let is_method = matches!(before, Some(TokenTree::Punct(dot)) if dot.as_char() == '.');
                if is_call && !is_definition && !is_method {
                    marks.push((Mark::Sleep, word.span().start().line));
                }
            }
            TokenTree::Group(group) => {
                let is_attribute = group.delimiter() == Delimiter::Bracket
                    && matches!(before, Some(TokenTree::Punct(hash)) if hash.as_char() == '#');
                if is_attribute && has_word(group.stream(), "ignore") {
                    marks.push((Mark::Ignored, group.span().start().line));
                }
                mark(group.stream(), marks);
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_measured_from_its_signature_to_its_brace() {
        let text = "/// doc\n#[inline]\nfn a(\n    x: u8,\n) {\n    // x\n}\nimpl S { fn b() {} }\ntrait T { fn c() {\n} fn d(); }\n\
                    mod m { impl<X> Q<X> for S<X> { fn e() {} } }";
        let found = source(text).unwrap().functions;
        let expected = [("a", 5), ("S::b", 1), ("T::c", 2), ("S::e", 1)];
        assert_eq!(found, expected.map(|(name, lines)| (name.to_owned(), lines)));
    }

    #[test]
    fn marks_are_found_in_macros_and_not_in_comments_or_texts() {
        let text = "// todo!() sleep()\nfn a() { let s = \"todo!() #[ignore]\"; }\n#[ignore = \"slow\"]\nfn b() {\n todo!()\n}\n\
                    fn c() { assert!(unimplemented!(\"x\")); std::thread::sleep(D); clock.sleep(D) }\n\
                    fn sleep(d: u8) {}\n#[cfg_attr(miri, ignore)]\nfn d() { select! { x = time::sleep(D) => {} } }";
        let found = source(text).unwrap().marks;
        assert_eq!(
            found,
            [
                (Mark::Ignored, 3),
                (Mark::Todo, 5),
                (Mark::Todo, 7),
                (Mark::Sleep, 7),
                (Mark::Ignored, 9),
                (Mark::Sleep, 10)
            ]
        );
    }

    #[test]
    fn test_modules_and_test_files_are_known() {
        let source = source("fn a() {}\n#[cfg(all(test, unix))]\nmod tests {\n fn b() {}\n}\nfn c() {}").unwrap();
        let lines: Vec<bool> = (1..=6).map(|line| source.is_test("crates/x/src/lib.rs", line)).collect();
        assert_eq!(lines, [false, true, true, true, true, false]);
        assert!(source.is_test("crates/x/tests/it/main.rs", 1));
    }

    #[test]
    fn a_file_that_does_not_parse_is_a_problem() {
        let sources = parse(&Tree::of(&[("a.rs", "fn a( {}"), ("b.rs", "fn b() {}")]));
        assert_eq!(sources.problems().len(), 1);
        assert_eq!(sources.files().count(), 1);
    }
}
