//! A word of a command line, as far as it can be known without the live shell.

/// Alternatives of one word with braces: more than a person writes by hand.
const BRACES_MAX: usize = 64;

/// Stands for what only the live shell knows.
pub(crate) const UNKNOWN: char = '\0';

/// Stands before a directory that lies in the home directory.
pub(crate) const HOME: char = '\u{1}';

/// What a word begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// Its own text.
    Plain,
    /// The home directory, by `~` or `$HOME`: a good guess, and no more, since a shell can change it.
    Home,
    /// The working directory, by `$PWD`: likewise.
    Here,
    /// Another variable or substitution. Where that is empty, the rest stands alone: `$DIR/*` becomes `/*`.
    Unknown,
}

/// A word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// As it was written.
    pub raw: String,
    /// What it begins with; the text is what follows.
    pub head: Head,
    /// The text as a pattern: quoted characters that mean something in patterns have a backslash before them.
    pattern: String,
    has_pattern: bool,
}

impl Word {
    /// Reads a word as it stands in the line.
    #[must_use]
    pub fn read(raw: &str) -> Word {
        let mut reader = Reader { chars: raw.chars().collect(), at: 0, out: String::new(), has_pattern: false };
        let head = reader.head();
        reader.rest();
        Word { raw: raw.to_owned(), head, pattern: reader.out, has_pattern: reader.has_pattern }
    }

    /// A word that stands for itself.
    #[must_use]
    pub fn plain(text: &str) -> Word {
        let mut pattern = String::new();
        text.chars().for_each(|c| push_quoted(&mut pattern, c));
        Word { raw: text.to_owned(), head: Head::Plain, pattern, has_pattern: false }
    }

    /// Its text, where that is known without the live shell and its directory.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let known = self.head == Head::Plain && !self.has_pattern && !self.pattern.contains(UNKNOWN);
        known.then(|| unquoted(&self.pattern))
    }

    /// Its text as far as it goes, for options: `--file=$X` is `--file=`.
    #[must_use]
    pub fn beginning(&self) -> String {
        let known = self.pattern.split(UNKNOWN).next().unwrap_or_default();
        if self.head == Head::Plain { unquoted(known) } else { String::new() }
    }

    /// It is an option.
    #[must_use]
    pub fn is_option(&self) -> bool {
        let text = self.beginning();
        text.len() > 1 && text.starts_with('-')
    }

    /// The patterns it stands for, braces expanded; none where only the live shell knows. What it begins with is not in them.
    #[must_use]
    pub fn patterns(&self) -> Option<Vec<String>> {
        if self.pattern.contains(UNKNOWN) {
            return None;
        }
        let mut all = vec![self.pattern.clone()];
        let mut at = 0;
        while at < all.len() {
            match split_braces(&all[at]) {
                Some(more) => {
                    all.remove(at);
                    all.extend(more);
                }
                None => at += 1,
            }
            if all.len() > BRACES_MAX {
                return None;
            }
        }
        Some(all)
    }

    /// What follows its head.
    pub(crate) fn tail(&self) -> &str {
        &self.pattern
    }

    /// The directory it names for `cd`: what lies in the home directory begins with [`HOME`].
    pub(crate) fn directory(&self) -> Option<String> {
        if self.head == Head::Home && !self.has_pattern && !self.pattern.contains(UNKNOWN) {
            return Some(format!("{HOME}{}", unquoted(&self.pattern)));
        }
        self.text()
    }

    /// The part of an option behind this prefix, as a word of its own.
    #[must_use]
    pub fn behind(&self, prefix: &str) -> Option<Word> {
        let rest = self.raw.strip_prefix(prefix)?;
        self.beginning().starts_with(prefix).then(|| Word::read(rest))
    }
}

/// Whether a pattern has something in it that a directory must answer.
#[must_use]
pub(crate) fn is_glob(pattern: &str) -> bool {
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '*' | '?' | '[' => return true,
            _ => {}
        }
    }
    false
}

/// A pattern without its backslashes.
pub(crate) fn unquoted(pattern: &str) -> String {
    let mut text = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        text.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
    }
    text
}

fn push_quoted(out: &mut String, c: char) {
    if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | ',' | '\\') {
        out.push('\\');
    }
    out.push(c);
}

/// The alternatives of the first braces in a pattern.
fn split_braces(pattern: &str) -> Option<Vec<String>> {
    let chars: Vec<char> = pattern.chars().collect();
    let (mut open, mut depth, mut commas, mut at) = (None, 0_u32, Vec::new(), 0);
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 1,
            '{' => {
                depth += 1;
                if depth == 1 {
                    open = Some(at);
                    commas.clear();
                }
            }
            ',' if depth == 1 => commas.push(at),
            '}' if depth > 0 => {
                depth -= 1;
                if depth == 0 && !commas.is_empty() {
                    let open = open?;
                    let (before, after) = (&chars[..open], &chars[at + 1..]);
                    let edges: Vec<usize> =
                        std::iter::once(open).chain(commas.iter().copied()).chain(std::iter::once(at)).collect();
                    let one = |pair: &[usize]| before.iter().chain(&chars[pair[0] + 1..pair[1]]).chain(after).collect();
                    return Some(edges.windows(2).map(one).collect());
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    out: String,
    has_pattern: bool,
}

impl Reader {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.get(self.at).copied();
        self.at += 1;
        c
    }

    fn is_at(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(n, c)| self.chars.get(self.at + n) == Some(&c))
    }

    fn head(&mut self) -> Head {
        let ends_name = |c: Option<&char>| c.is_none_or(|c| !c.is_alphanumeric() && *c != '_');
        if self.is_at("~") {
            return match self.chars.get(1) {
                None | Some('/') => {
                    self.at = 1;
                    Head::Home
                }
                // Somebody else's, or `~+`.
                Some(_) => Head::Unknown,
            };
        }
        let quote = usize::from(self.is_at("\""));
        self.at = quote;
        for (text, head) in
            [("${HOME}", Head::Home), ("$HOME", Head::Home), ("${PWD}", Head::Here), ("$PWD", Head::Here)]
        {
            if self.is_at(text) && ends_name(self.chars.get(self.at + text.len()).filter(|_| !text.ends_with('}'))) {
                self.at += text.len();
                if quote == 1 {
                    self.double_quoted();
                }
                return head;
            }
        }
        let is_unknown = self.is_at("$") && !self.is_at("$'") && !self.is_at("$\"") || self.is_at("`");
        self.at = 0;
        if is_unknown { Head::Unknown } else { Head::Plain }
    }

    fn rest(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '\'' => {
                    while let Some(c) = self.next().filter(|c| *c != '\'') {
                        push_quoted(&mut self.out, c);
                    }
                }
                '"' => self.double_quoted(),
                '\\' => match self.next() {
                    None | Some('\n') => {}
                    Some(c) => push_quoted(&mut self.out, c),
                },
                '$' if self.is_at("'") => self.ansi_c(),
                '$' if self.is_at("\"") => {}
                '$' | '`' => self.expansion(c),
                '<' | '>' if self.is_at("(") => self.unknown(),
                '@' | '+' | '!' if self.is_at("(") => self.unknown(),
                // By itself it is a command.
                '[' if !self.chars[self.at..].contains(&']') => push_quoted(&mut self.out, c),
                '*' | '?' | '[' => {
                    self.has_pattern = true;
                    self.out.push(c);
                }
                '{' => {
                    self.has_pattern = true;
                    let rest: String = self.chars[self.at..].iter().take_while(|c| **c != '}').collect();
                    // A range is the shell's to count.
                    if rest.contains("..") && !rest.contains(',') { self.unknown() } else { self.out.push(c) }
                }
                c => self.out.push(c),
            }
        }
    }

    /// All that is left is the live shell's.
    fn unknown(&mut self) {
        self.out.push(UNKNOWN);
        self.at = self.chars.len();
    }

    fn double_quoted(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '"' => return,
                '\\' => match self.next() {
                    None | Some('\n') => {}
                    Some(c) if "$`\"\\".contains(c) => push_quoted(&mut self.out, c),
                    Some(c) => {
                        push_quoted(&mut self.out, '\\');
                        push_quoted(&mut self.out, c);
                    }
                },
                '$' | '`' => self.expansion(c),
                c => push_quoted(&mut self.out, c),
            }
        }
    }

    /// Skips a variable or a substitution.
    fn expansion(&mut self, sign: char) {
        let next = self.chars.get(self.at).copied();
        let end = match (sign, next) {
            ('`', _) => '`',
            (_, Some('{')) => '}',
            (_, Some('(')) => ')',
            (_, Some(c)) if c.is_alphabetic() || c == '_' => {
                while self.chars.get(self.at).is_some_and(|c| c.is_alphanumeric() || *c == '_') {
                    self.at += 1;
                }
                return self.out.push(UNKNOWN);
            }
            (_, Some(c)) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                self.at += 1;
                return self.out.push(UNKNOWN);
            }
            // A dollar sign by itself.
            _ => return push_quoted(&mut self.out, sign),
        };
        self.out.push(UNKNOWN);
        let open = if end == '`' { '`' } else { next.unwrap_or('`') };
        let mut depth = u32::from(end == '`');
        while let Some(c) = self.next() {
            match c {
                '\\' => {
                    self.next();
                }
                c if c == end => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return;
                    }
                }
                c if c == open => depth += 1,
                _ => {}
            }
        }
    }

    fn ansi_c(&mut self) {
        self.at += 1;
        while let Some(c) = self.next().filter(|c| *c != '\'') {
            if c != '\\' {
                push_quoted(&mut self.out, c);
                continue;
            }
            let Some(kind) = self.next() else { return };
            let c = match kind {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'a' => '\u{7}',
                'b' => '\u{8}',
                'e' | 'E' => '\u{1b}',
                'f' => '\u{c}',
                'v' => '\u{b}',
                'x' => self.number(16, 2),
                'u' => self.number(16, 4),
                'U' => self.number(16, 8),
                'c' => self.next().map_or('c', |c| char::from((c as u32 & 0x1f) as u8)),
                '0'..='7' => {
                    self.at -= 1;
                    self.number(8, 3)
                }
                other => other,
            };
            push_quoted(&mut self.out, c);
        }
    }

    fn number(&mut self, base: u32, digits: usize) -> char {
        let mut value = 0;
        for _ in 0..digits {
            let Some(digit) = self.chars.get(self.at).and_then(|c| c.to_digit(base)) else { break };
            value = value * base + digit;
            self.at += 1;
        }
        // A NUL would read as what is unknown; the shell drops it.
        char::from_u32(value).filter(|c| *c != UNKNOWN).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_read_as_the_shell_reads_them() {
        for (raw, text) in [
            ("r''m", "rm"),
            ("\\rm", "rm"),
            (r"$'\x72\x6d'", "rm"),
            (r"$'\162m'", "rm"),
            ("\"a b\"", "a b"),
            (r#""a\"b\$c\d""#, r#"a"b$c\d"#),
            ("'*'", "*"),
            (r"\*", "*"),
            ("$\"hi\"", "hi"),
            ("a$", "a$"),
            ("[", "["),
            ("--x=1,2", "--x=1,2"),
        ] {
            assert_eq!(Word::read(raw).text().as_deref(), Some(text), "{raw}");
        }
    }

    #[test]
    fn what_the_live_shell_knows_is_not_known() {
        for raw in [
            "$X", "a$X", "\"$X\"", "$(pwd)", "`pwd`", "*.o", "a?", "[ab]", "{a,b}", "{1..3}", "<(ls)", "~", "~/x",
            "$HOME", "@(a|b)",
        ] {
            assert_eq!(Word::read(raw).text(), None, "{raw}");
        }
    }

    #[test]
    fn heads_and_braces() {
        let head = |raw: &str| (Word::read(raw).head, Word::read(raw).tail().to_owned());
        assert_eq!(head("~/x"), (Head::Home, "/x".into()));
        assert_eq!(head("\"$HOME\"/x"), (Head::Home, "/x".into()));
        assert_eq!(head("\"${HOME}/x y\""), (Head::Home, "/x y".into()));
        assert_eq!(head("$PWD"), (Head::Here, String::new()));
        assert_eq!(head("$HOMES/x").0, Head::Unknown);
        assert_eq!(head("$X/*"), (Head::Unknown, "\0/*".into()));
        assert_eq!(head("~ann").0, Head::Unknown);
        assert_eq!(Word::read("{a,b}/*.{o,so}").patterns().unwrap().len(), 4);
        assert_eq!(Word::read("{/,/home}").patterns().unwrap(), ["/", "/home"]);
        assert_eq!(Word::read("{a}").patterns().unwrap(), ["{a}"]);
        assert_eq!(Word::read(&"{a,b}".repeat(10)).patterns(), None, "too many");
        assert_eq!(Word::read("--file=$X").behind("--file=").unwrap().head, Head::Unknown);
    }
}
