//! From the parser's tree to commands. Every node that can hold a command is walked; a new kind of node does not compile here until
//! somebody says what it holds.

use crate::line::{Command, Line, Reads, Redirect};
use crate::places::join;
use crate::word::{HOME, Word};
use rable::{ListOperator, Node, NodeKind as Kind};

/// Directories a line may be in at one point.
const DIRS_MAX: usize = 4;
/// How deep the tree is followed. The parser stops at a thousand.
const DEPTH_MAX: u32 = 1200;

type Dirs = Vec<Option<String>>;

/// What holds around a node.
#[derive(Debug, Clone, Default)]
struct Around {
    /// Commands before it in its pipe.
    before: Vec<String>,
    piped: bool,
    aside: bool,
    /// Where the names come from that a pipe carries.
    below: Option<Vec<Word>>,
    inner: u32,
    depth: u32,
}

impl Around {
    fn down(&self) -> Around {
        Around { depth: self.depth + 1, ..self.clone() }
    }
    fn alone(&self) -> Around {
        Around { inner: self.inner, depth: self.depth + 1, aside: self.aside, ..Around::default() }
    }
}

impl Line {
    pub(crate) fn walk_all(&mut self, nodes: &[Node], dirs: &mut Dirs, inner: u32) {
        let Reads { piped, from } = self.reads.clone();
        let around = Around { inner, piped, before: from, ..Around::default() };
        for node in nodes {
            let before = dirs.clone();
            self.walk(node, dirs, &around);
            // Two lines: the second runs whatever became of the first.
            unite(dirs, before);
        }
    }

    fn each(&mut self, nodes: &[Node], dirs: &mut Dirs, around: &Around) {
        for node in nodes {
            self.walk(node, dirs, around);
        }
    }

    fn walk(&mut self, node: &Node, dirs: &mut Dirs, around: &Around) {
        if around.depth > DEPTH_MAX || self.is_full() {
            return self.not_parsed();
        }
        let down = around.down();
        match &node.kind {
            Kind::Command { assignments, words, redirects } => {
                self.command(assignments, words, redirects, dirs, around);
            }
            Kind::Pipeline { commands, .. } => self.pipeline(commands, dirs, &down),
            Kind::List { items } => {
                for item in items {
                    let before = dirs.clone();
                    let is_background = matches!(item.operator, Some(ListOperator::Background));
                    self.walk(&item.command, dirs, &Around { aside: around.aside || is_background, ..down.clone() });
                    match item.operator {
                        Some(ListOperator::And) => {}
                        Some(ListOperator::Background) => *dirs = before,
                        Some(ListOperator::Or | ListOperator::Semi) | None => unite(dirs, before),
                    }
                }
            }
            Kind::If { condition, then_body, else_body, redirects } => {
                let before = dirs.clone();
                self.walk(condition, dirs, &down);
                self.walk(then_body, dirs, &down);
                unite(dirs, before);
                if let Some(body) = else_body {
                    self.walk(body, dirs, &down);
                }
                self.redirected(redirects, dirs, &down);
            }
            Kind::While { condition, body, redirects } | Kind::Until { condition, body, redirects } => {
                self.looped(&[condition, body], dirs, &down);
                self.redirected(redirects, dirs, &down);
            }
            Kind::For { words, body, redirects, .. } | Kind::Select { words, body, redirects, .. } => {
                self.each(words.as_deref().unwrap_or_default(), dirs, &down.alone());
                self.looped(&[body], dirs, &down);
                self.redirected(redirects, dirs, &down);
            }
            Kind::ForArith { init, cond, incr, body, redirects } => {
                [init, cond, incr].iter().for_each(|text| self.text(text, dirs, &down));
                self.looped(&[body], dirs, &down);
                self.redirected(redirects, dirs, &down);
            }
            Kind::Case { word, patterns, redirects } => {
                self.walk(word, dirs, &down.alone());
                for pattern in patterns {
                    self.each(&pattern.patterns, dirs, &down.alone());
                    if let Some(body) = &pattern.body {
                        self.looped(&[body], dirs, &down);
                    }
                }
                self.redirected(redirects, dirs, &down);
            }
            Kind::Function { name, body } => self.function(name, body, dirs, &down),
            Kind::Subshell { body, redirects } => {
                self.walk(body, &mut dirs.clone(), &down);
                self.redirected(redirects, dirs, &down);
            }
            Kind::BraceGroup { body, redirects } => {
                self.walk(body, dirs, &down);
                self.redirected(redirects, dirs, &down);
            }
            Kind::Coproc { command, .. } => {
                self.walk(command, &mut dirs.clone(), &Around { aside: true, ..down });
            }
            Kind::CommandSubstitution { command, .. } | Kind::ProcessSubstitution { command, .. } => {
                self.walk(command, &mut dirs.clone(), &down.alone());
            }
            _ => self.walk_inside(node, dirs, &down),
        }
    }

    /// Nodes that are no commands, and may hold some.
    fn walk_inside(&mut self, node: &Node, dirs: &mut Dirs, down: &Around) {
        match &node.kind {
            Kind::Redirect { .. } | Kind::HereDoc { .. } => self.redirected(std::slice::from_ref(node), dirs, down),
            Kind::Negation { pipeline } | Kind::Time { pipeline, .. } => self.walk(pipeline, dirs, down),
            Kind::Word { parts, value, .. } => self.word(parts, value, dirs, down),
            Kind::ArithConcat { parts } => self.each(parts, dirs, &down.alone()),
            Kind::Array { elements } => self.each(elements, dirs, &down.alone()),
            Kind::ParamExpansion { param, arg, .. } | Kind::ParamIndirect { param, arg, .. } => {
                for text in arg.iter().chain([param]) {
                    self.text(text, dirs, down);
                }
            }
            Kind::ArithmeticExpansion { expression } => {
                expression.iter().for_each(|node| self.walk(node, dirs, &down.alone()));
            }
            Kind::ArithmeticCommand { expression, redirects, raw_content } => {
                expression.iter().for_each(|node| self.walk(node, dirs, &down.alone()));
                self.text(raw_content, dirs, down);
                self.redirected(redirects, dirs, down);
            }
            Kind::ConditionalExpr { body, redirects } => {
                self.walk(body, dirs, &down.alone());
                self.redirected(redirects, dirs, down);
            }
            Kind::UnaryTest { operand, .. }
            | Kind::CondNot { operand }
            | Kind::ArithUnaryOp { operand, .. }
            | Kind::ArithPreIncr { operand }
            | Kind::ArithPostIncr { operand }
            | Kind::ArithPreDecr { operand }
            | Kind::ArithPostDecr { operand } => self.walk(operand, dirs, down),
            Kind::CondParen { inner } => self.walk(inner, dirs, down),
            Kind::BinaryTest { left, right, .. }
            | Kind::CondAnd { left, right }
            | Kind::CondOr { left, right }
            | Kind::ArithBinaryOp { left, right, .. }
            | Kind::ArithComma { left, right }
            | Kind::ArithAssign { target: left, value: right, .. } => {
                self.walk(left, dirs, down);
                self.walk(right, dirs, down);
            }
            Kind::ArithTernary { condition, if_true, if_false } => {
                self.walk(condition, dirs, down);
                for node in [if_true, if_false].into_iter().flatten() {
                    self.walk(node, dirs, down);
                }
            }
            Kind::ArithSubscript { index, .. } => self.walk(index, dirs, down),
            Kind::CondTerm { value, .. } | Kind::ArithDeprecated { expression: value } => self.text(value, dirs, down),
            // The commands themselves are walked above.
            Kind::Command { .. }
            | Kind::Pipeline { .. }
            | Kind::List { .. }
            | Kind::If { .. }
            | Kind::While { .. }
            | Kind::Until { .. }
            | Kind::For { .. }
            | Kind::ForArith { .. }
            | Kind::Select { .. }
            | Kind::Case { .. }
            | Kind::Function { .. }
            | Kind::Subshell { .. }
            | Kind::BraceGroup { .. }
            | Kind::Coproc { .. }
            | Kind::CommandSubstitution { .. }
            | Kind::ProcessSubstitution { .. }
            | Kind::WordLiteral { .. }
            | Kind::ParamLength { .. }
            | Kind::AnsiCQuote { .. }
            | Kind::LocaleString { .. }
            | Kind::BraceExpansion { .. }
            | Kind::ArithNumber { .. }
            | Kind::ArithVar { .. }
            | Kind::ArithEmpty
            | Kind::ArithEscape { .. }
            | Kind::Empty
            | Kind::Comment { .. } => {}
        }
    }

    fn word(&mut self, parts: &[Node], value: &str, dirs: &mut Dirs, around: &Around) {
        // Shells differ in whether `x[` goes on behind the end of its line; the parser goes on.
        if has_bare_newline(value) {
            self.not_parsed();
        }
        self.each(parts, dirs, &around.alone());
    }

    /// What runs many times, or not at all.
    fn looped(&mut self, nodes: &[&Node], dirs: &mut Dirs, around: &Around) {
        let before = dirs.clone();
        for node in nodes {
            self.walk(node, dirs, around);
        }
        unite(dirs, before);
    }

    /// A text that the parser keeps as it is, and in which the shell still looks for substitutions: as within double quotes.
    fn text(&mut self, text: &str, dirs: &mut Dirs, around: &Around) {
        if !["$(", "`", "<(", ">(", "${"].iter().any(|sign| text.contains(sign)) {
            return;
        }
        // Read again as a word of its own.
        let again = format!(": \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        match rable::parse(&again, true) {
            Ok(nodes) if around.inner <= crate::line::INNER_MAX && !text.contains("<(") && !text.contains(">(") => {
                let known = self.commands.len();
                let inside = Around { inner: around.inner + 1, ..around.alone() };
                self.each(&nodes, &mut dirs.clone(), &inside);
                // The colon is ours.
                if self.commands.get(known).is_some_and(|command| command.name() == ":") {
                    self.commands.remove(known);
                }
            }
            Ok(_) | Err(_) => self.opaque("a substitution"),
        }
    }

    fn pipeline(&mut self, commands: &[Node], dirs: &mut Dirs, around: &Around) {
        if let [one] = commands {
            return self.walk(one, dirs, around);
        }
        let mut inside = Around { aside: true, ..around.clone() };
        for (n, command) in commands.iter().enumerate() {
            let known = self.commands.len();
            inside.piped = n > 0 || around.piped;
            self.walk(command, &mut dirs.clone(), &inside);
            let of_this = &self.commands[known.min(self.commands.len())..];
            inside.before.extend(of_this.iter().map(|command| command.name().to_owned()));
            inside.below = of_this.last().and_then(crate::find::names_below);
        }
    }

    fn function(&mut self, name: &str, body: &Node, dirs: &mut Dirs, around: &Around) {
        let known = self.commands.len();
        self.walk(body, &mut dirs.clone(), around);
        let calls_itself = |command: &Command| command.name() == name && command.aside;
        if self.commands[known.min(self.commands.len())..].iter().any(calls_itself) {
            self.bombs.insert(name.to_owned());
        }
        // When it is called, the directory may be another one.
        for command in &mut self.commands[known..] {
            unite(&mut command.dirs, vec![None]);
        }
    }

    fn redirected(&mut self, redirects: &[Node], dirs: &mut Dirs, around: &Around) {
        if redirects.is_empty() {
            return;
        }
        let (redirects, _) = self.redirects(redirects, dirs, around);
        if redirects.iter().any(|redirect| redirect.writes) {
            let command = Command { name: Some(String::new()), redirects, dirs: dirs.clone(), ..Command::default() };
            self.commands.push(command);
        }
    }

    /// Redirections, and what a here-document or here-string feeds in: none where there is no such, an empty one where only the
    /// live shell knows.
    fn redirects(
        &mut self,
        nodes: &[Node],
        dirs: &mut Dirs,
        around: &Around,
    ) -> (Vec<Redirect>, Option<Option<String>>) {
        let (mut all, mut fed) = (Vec::new(), None);
        for node in nodes {
            match &node.kind {
                Kind::Redirect { op, target, .. } => {
                    self.walk(target, dirs, &around.alone());
                    let Kind::Word { value, .. } = &target.kind else { continue };
                    // The parser takes whatever comes next, also the end of the line: what follows would be read as words of this command.
                    if !is_word(value) {
                        self.not_parsed();
                    }
                    let target = Word::read(value);
                    if op == "<<<" {
                        fed = Some(target.text());
                    } else {
                        // `>&2` and `<&3` are descriptors.
                        let is_number = |text: String| text == "-" || text.trim_end_matches('-').parse::<u32>().is_ok();
                        let is_descriptor = op.ends_with('&') && target.text().is_some_and(is_number);
                        all.push(Redirect { writes: op.contains('>') && !is_descriptor, target });
                    }
                }
                Kind::HereDoc { content, quoted, .. } => {
                    if !quoted {
                        self.text(content, dirs, around);
                    }
                    let is_exact = *quoted || !content.contains(['$', '`']);
                    fed = Some(is_exact.then(|| content.clone()));
                }
                _ => {}
            }
        }
        (all, fed)
    }

    fn command(&mut self, assignments: &[Node], words: &[Node], redirects: &[Node], dirs: &mut Dirs, around: &Around) {
        let known = self.commands.len();
        let inside = around.alone();
        self.each(assignments, dirs, &inside);
        self.each(words, dirs, &inside);
        let (redirects, fed) = self.redirects(redirects, dirs, &inside);
        for assignment in assignments {
            if let Kind::Word { value, .. } = &assignment.kind {
                let name: String = value.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                self.sets.insert(name);
                self.assigned(&Word::read(value), dirs, around.inner);
            }
        }
        let inner = self.commands[known.min(self.commands.len())..].iter().map(|one| one.name().to_owned());
        let fed_by: Vec<String> = around.before.iter().cloned().chain(inner).collect();
        let words: Vec<Word> = words
            .iter()
            .filter_map(|word| match &word.kind {
                Kind::Word { value, .. } => Some(Word::read(value)),
                _ => None,
            })
            .collect();
        let command = Command {
            redirects,
            dirs: dirs.clone(),
            piped: around.piped,
            aside: around.aside,
            fed_by,
            below: around.below.clone(),
            ..Command::default()
        };
        if words.is_empty() {
            if !command.redirects.is_empty() {
                self.commands.push(Command { name: Some(String::new()), ..command });
            }
            return;
        }
        let at = self.commands.len();
        self.add(command, words, fed, around.inner);
        if let Some(moved) = self.commands.get(at).and_then(|command| moved(command, dirs)) {
            *dirs = moved;
        }
    }
}

/// Whether a word has an end of a line in it that stands neither in quotes nor in brackets that a shell closes.
fn has_bare_newline(word: &str) -> bool {
    let mut open: Vec<char> = Vec::new();
    let mut chars = word.chars().peekable();
    while let Some(c) = chars.next() {
        match (open.last().copied(), c) {
            (Some('\''), '\'') => {
                open.pop();
            }
            (Some('\''), _) => {}
            (_, '\\') => {
                chars.next();
            }
            (Some(end), c) if c == end => {
                open.pop();
            }
            (_, '$') if chars.peek() == Some(&'{') => {
                chars.next();
                open.push('}');
            }
            (_, '$') if chars.peek() == Some(&'(') => {
                chars.next();
                open.push(')');
            }
            (_, '`') => open.push('`'),
            (Some('"'), _) => {}
            (_, '\'' | '"') => open.push(c),
            (_, '(') => open.push(')'),
            (None, '\n') => return true,
            (_, _) => {}
        }
    }
    // Something that is never closed has taken the lines behind it.
    !open.is_empty() && word.contains('\n')
}

/// Whether a text is a word, and no sign of the shell's own.
fn is_word(text: &str) -> bool {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (None | Some('\n' | ';' | '&' | '|' | '(' | ')'), _) => false,
        // A command's name as a file: `>(tee log)`.
        (Some('<' | '>'), next) => next == Some('('),
        (Some(_), _) => true,
    }
}

/// Where a shell is after `cd`, if that is what the command does.
fn moved(command: &Command, dirs: &Dirs) -> Option<Dirs> {
    match command.name() {
        "cd" | "pushd" | "chdir" => {}
        "popd" => return Some(vec![None]),
        _ => return None,
    }
    if command.via.iter().any(|wrapper| !matches!(wrapper.as_str(), "command" | "builtin")) {
        return None;
    }
    let to = match command.operands().next() {
        None if command.name() != "pushd" => Some(HOME.to_string()),
        word => word.and_then(Word::directory).filter(|to| !to.is_empty() && to != "-"),
    };
    let Some(to) = to else { return Some(vec![None]) };
    let from = |dir: &Option<String>| match dir {
        _ if to.starts_with(['/', HOME]) => Some(to.clone()),
        None => None,
        Some(dir) if dir.is_empty() => Some(to.clone()),
        Some(dir) => Some(join(dir, &to)),
    };
    let mut moved: Dirs = Vec::new();
    unite(&mut moved, dirs.iter().map(from).collect());
    Some(moved)
}

/// Either of them.
fn unite(dirs: &mut Dirs, others: Dirs) {
    for other in others {
        if !dirs.contains(&other) {
            dirs.push(other);
        }
    }
    if dirs.len() > DIRS_MAX {
        dirs.truncate(DIRS_MAX);
        dirs.push(None);
    }
}
