//! Frame numbers in the code are those of their written spec.
//!
//! The keeper protocol: the table in the docs of `protocol.rs` against what `encode` writes and `decode` takes. The wire:
//! the table in `spec/protocol.md` against the `KIND_…` constants.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};

use super::Problem;
use super::tree::Tree;

const KEEPER: &str = "crates/abi/src/protocol.rs";
const WIRE: &str = "crates/wire/src/frame.rs";
const WIRE_SPEC: &str = "spec/protocol.md";

/// A frame's number by its name.
type Frames = BTreeMap<String, u64>;

/// Checks both protocols.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = match tree.get(KEEPER) {
        Some(text) => keeper(text),
        None => vec![Problem::new(KEEPER, "missing: keeper protocol v1 lives here")],
    };
    match (tree.get(WIRE), tree.get(WIRE_SPEC)) {
        (None, None) => {} // neither is written yet
        (Some(_), None) => problems.push(Problem::new(WIRE_SPEC, format!("missing, but {WIRE} has frames"))),
        (None, Some(_)) => problems.push(Problem::new(WIRE, format!("missing, but {WIRE_SPEC} has frames"))),
        (Some(code), Some(spec)) => problems.extend(wire(code, spec)),
    }
    problems
}

fn keeper(text: &str) -> Vec<Problem> {
    let docs: String =
        text.lines().filter_map(|line| line.strip_prefix("//!")).map(|line| format!("{}\n", line.trim())).collect();
    let spec = match table(&docs) {
        Ok(spec) => spec,
        Err(what) => return vec![Problem::new(KEEPER, what)],
    };
    let mut coded = Coded::default();
    match syn::parse_file(text) {
        Ok(file) => coded.visit_file(&file),
        Err(error) => return vec![Problem::new(KEEPER, format!("does not parse: {error}"))],
    }
    let mut problems = compare(KEEPER, "the table in its docs", &spec, "encode", &coded.encoded);
    problems.extend(compare(KEEPER, "the table in its docs", &spec, "decode", &coded.decoded()));
    problems.extend(coded.wrong.into_iter().map(|what| Problem::new(KEEPER, what)));
    problems
}

fn wire(code: &str, spec: &str) -> Vec<Problem> {
    let spec = match table(spec) {
        Ok(spec) => spec.into_iter().map(|(name, number)| (plain(&name), number)).collect(),
        Err(what) => return vec![Problem::new(WIRE_SPEC, what)],
    };
    let mut frames = Frames::new();
    let file = match syn::parse_file(code) {
        Ok(file) => file,
        Err(error) => return vec![Problem::new(WIRE, format!("does not parse: {error}"))],
    };
    for item in &file.items {
        if let syn::Item::Const(constant) = item
            && constant.ident.to_string().starts_with("KIND_")
            && let Some(number) = number_of(&constant.expr)
        {
            frames.insert(plain(&constant.ident.to_string()), number);
        }
    }
    compare(WIRE, WIRE_SPEC, &spec, "its KIND_ constants", &frames)
}

/// `SessionOutput`, `KIND_SESSION_OUTPUT` and `session output` are one name.
fn plain(name: &str) -> String {
    name.trim_start_matches("KIND_").chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The rows of the markdown table whose first column is `kind`: number and name.
fn table(text: &str) -> Result<Frames, String> {
    let mut frames = Frames::new();
    let mut numbers = BTreeMap::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        if !line.starts_with('|') || cells.len() < 2 {
            inside = false;
        } else if cells[0].eq_ignore_ascii_case("kind") {
            inside = true;
        } else if inside && !cells[0].starts_with(['-', ':']) {
            let number = number(cells[0]).ok_or_else(|| format!("a frame table row without a number: {line}"))?;
            if let Some(other) = numbers.insert(number, cells[1]) {
                return Err(format!("{number:#04x} is both {other} and {} in the frame table", cells[1]));
            }
            frames.insert(cells[1].to_owned(), number);
        }
    }
    if frames.is_empty() {
        Err("has no frame table (a markdown table whose first column is `kind`)".into())
    } else {
        Ok(frames)
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn number_of(expr: &syn::Expr) -> Option<u64> {
    match expr {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(int), .. }) => int.base10_parse().ok(),
        _ => None,
    }
}

fn compare(at: &str, spec_name: &str, spec: &Frames, code_name: &str, code: &Frames) -> Vec<Problem> {
    let mut problems = vec![];
    for (name, number) in spec {
        match code.get(name) {
            None => {
                problems.push(Problem::new(at, format!("{spec_name} has {name} {number:#04x}, {code_name} has not")))
            }
            Some(other) if other != number => problems.push(Problem::new(
                at,
                format!(
                    "{name} is {number:#04x} in {spec_name} and {other:#04x} in {code_name}: the numbers are frozen"
                ),
            )),
            Some(_) => {}
        }
    }
    for (name, number) in code.iter().filter(|(name, _)| !spec.contains_key(*name)) {
        problems.push(Problem::new(
            at,
            format!("{code_name} has {name} {number:#04x}, {spec_name} has not: write it down"),
        ));
    }
    problems
}

/// What the code of `encode`, `decode` and `fields` says, by frame name.
#[derive(Default)]
struct Coded {
    owner: String,
    function: String,
    encoded: Frames,
    /// By owner.
    taken: BTreeMap<String, Taken>,
    wrong: Vec<String>,
}

/// What one side's decoder takes.
#[derive(Default)]
struct Taken {
    /// The first and last number `decode` lets through.
    range: Option<(u64, u64)>,
    /// What `fields` makes of them; an arm without a number is its last.
    arms: Vec<(Option<u64>, String)>,
}

impl Coded {
    /// The frames `decode` yields: a last arm without a number stands for the one number left in the range.
    fn decoded(&mut self) -> Frames {
        let mut frames = Frames::new();
        for (owner, Taken { range, arms }) in &self.taken {
            let Some((first, last)) = *range else {
                self.wrong.push(format!(
                    "{owner}::decode does not say which kinds it knows (`(first..=last).contains(&kind)`)"
                ));
                continue;
            };
            let mut left: Vec<u64> =
                (first..=last).filter(|n| !arms.iter().any(|(number, _)| *number == Some(*n))).collect();
            for (number, name) in arms {
                match number.or_else(|| left.pop()) {
                    Some(number) if (first..=last).contains(&number) => {
                        frames.insert(name.clone(), number);
                    }
                    Some(number) => self.wrong.push(format!("{owner}::decode never lets {name} {number:#04x} through")),
                    None => self.wrong.push(format!("{owner}::fields: no number is left for {name}")),
                }
            }
            for number in left {
                self.wrong.push(format!("{owner}::decode lets {number:#04x} through, but no arm is its own"));
            }
        }
        frames
    }
}

impl<'ast> Visit<'ast> for Coded {
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let syn::Type::Path(path) = &*item.self_ty
            && let Some(last) = path.path.segments.last()
        {
            self.owner = last.ident.to_string();
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function = function.sig.ident.to_string();
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_expr_range(&mut self, range: &'ast syn::ExprRange) {
        if self.function == "decode"
            && let (Some(start), Some(end)) = (&range.start, &range.end)
            && let (Some(start), Some(end)) = (number_of(start), number_of(end))
        {
            let last = if matches!(range.limits, syn::RangeLimits::Closed(_)) { end } else { end.saturating_sub(1) };
            self.taken.entry(self.owner.clone()).or_default().range = Some((start, last));
        }
        visit::visit_expr_range(self, range);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let mut body = Body { owner: self.owner.clone(), ..Body::default() };
        body.visit_arm(arm);
        match self.function.as_str() {
            "encode" => {
                if let (Some(name), Some(number)) = (body.variant, body.framed) {
                    self.encoded.insert(name, number);
                }
            }
            "fields" => {
                let number = match &arm.pat {
                    syn::Pat::Lit(literal) => match &literal.lit {
                        syn::Lit::Int(int) => int.base10_parse().ok(),
                        _ => None,
                    },
                    _ => None,
                };
                if let Some(name) = body.variant {
                    self.taken.entry(self.owner.clone()).or_default().arms.push((number, name));
                }
            }
            _ => {}
        }
    }
}

/// What one match arm is about: the variant it names, and the kind it frames.
#[derive(Default)]
struct Body {
    owner: String,
    variant: Option<String>,
    framed: Option<u64>,
}

impl<'ast> Visit<'ast> for Body {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let [owner, variant] = names.as_slice()
            && (*owner == self.owner || owner == "Self")
        {
            self.variant.get_or_insert_with(|| variant.clone());
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if matches!(&*call.func, syn::Expr::Path(path) if path.path.is_ident("frame"))
            && let Some(number) = call.args.iter().nth(1).and_then(number_of)
        {
            self.framed.get_or_insert(number);
        }
        visit::visit_expr_call(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "\
//! | kind | frame | from |
//! |---|---|---|
//! | 0x01 | Hello | any |
//! | 0x02 | Bye | any |
impl<'a> To<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            To::Hello { x } => frame(out, 0x01).u8(x),
            To::Bye => {
                let put = frame(out, 0x02);
                put
            }
        };
    }
    fn decode(datagram: &[u8]) -> X {
        if !(0x01..=0x02).contains(&kind) {
            return Err(X);
        }
    }
    fn fields(kind: u8) -> X {
        Some(match kind {
            0x01 => To::Hello { x: take.u8()? },
            _ => To::Bye,
        })
    }
}
";

    fn broken(from: &str, to: &str) -> String {
        assert!(CODE.contains(from), "{from}");
        let problems = keeper(&CODE.replacen(from, to, 1));
        problems.iter().map(|problem| format!("{}\n", problem.what)).collect()
    }

    #[test]
    fn a_keeper_frame_is_the_same_in_docs_encode_and_decode() {
        assert_eq!(keeper(CODE), []);
        assert!(
            broken("| 0x02 | Bye", "| 0x03 | Bye").contains("Bye is 0x03 in the table in its docs and 0x02 in encode")
        );
        assert!(broken("frame(out, 0x01)", "frame(out, 0x05)").contains("0x05 in encode"));
        assert!(broken("0x01 => To::Hello", "0x02 => To::Hello").contains("0x02 in decode"));
        assert!(broken("0x01..=0x02", "0x01..=0x03").contains("lets 0x02 through"));
        assert!(broken("(0x01..=0x02).contains(&kind)", "known(kind)").contains("does not say which kinds"));
        assert!(broken("//! | 0x02 | Bye | any |\n", "").contains("encode has Bye 0x02"));
        assert!(broken("            To::Hello { x } => frame(out, 0x01).u8(x),\n", "").contains("encode has not"));
        assert!(broken("kind | frame", "number | frame").contains("has no frame table"));
    }

    #[test]
    fn two_names_for_one_number_are_noticed() {
        assert!(broken("| 0x02 | Bye", "| 0x01 | Bye").contains("both Hello and Bye"));
    }

    fn wire_whats(code: Option<&str>, spec: Option<&str>) -> Vec<String> {
        let mut files = vec![(KEEPER, CODE)];
        files.extend(code.map(|text| (WIRE, text)));
        files.extend(spec.map(|text| (WIRE_SPEC, text)));
        check(&Tree::of(&files)).into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn the_wire_is_checked_once_either_side_exists() {
        let code = "pub const KIND_OUTPUT: u8 = 1;\npub const KIND_INPUT_DONE: u8 = 0x12;";
        let spec = "# Frames\n\n| kind | name |\n|--:|---|\n| 1 | `KIND_OUTPUT` |\n| `0x12` | InputDone |\n\n| 7 | other table |\n";
        assert_eq!(wire_whats(None, None), [""; 0]);
        assert_eq!(wire_whats(Some(code), Some(spec)), [""; 0]);
        assert_eq!(wire_whats(Some(code), None).len(), 1);
        assert_eq!(wire_whats(None, Some(spec)).len(), 1);
        assert!(wire_whats(Some(&code.replace("= 1", "= 2")), Some(spec))[0].contains("frozen"));
        assert_eq!(wire_whats(Some(""), Some(spec)).len(), 2);
        assert!(wire_whats(Some(code), Some("none"))[0].contains("no frame table"));
        assert!(check(&Tree::of(&[]))[0].what.contains("missing"));
    }
}
