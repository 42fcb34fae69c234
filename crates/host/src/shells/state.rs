//! What a shell was made of after a command: exported variables, aliases, functions, options, as names and hashes.
//!
//! The shell writes values, each in the form that costs it least; here they become hashes, and two states a list of changes.
//! Pure. A file that is cut off or of an unknown form gives no state, never half of one. What the bytes say is believed: they
//! come from the user's own shell.

pub use holdfast_wire::env::Category;
use std::collections::BTreeMap;

/// Names and hashes of their values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// By kind and name.
    pub names: BTreeMap<(Category, String), u64>,
    /// There are more than are kept: one that is not here may be there all the same.
    pub cut: bool,
}

/// One difference between two states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its kind.
    pub category: Category,
    /// Its name.
    pub name: String,
    /// Its new hash; none: it is gone.
    pub hash: Option<u64>,
}

/// Variables that change by themselves, or are told otherwise.
const VOLATILE: [&str; 11] = [
    "_",
    "SHLVL",
    "PWD",
    "OLDPWD",
    "LINES",
    "COLUMNS",
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
];

/// Longest name kept: longer ones are nobody's, and would fill the journal.
const NAME_BYTES_MAX: usize = 256;

/// Most names kept: zsh with all its completions has about 2,500.
const NAMES_MAX: usize = 16_384;

/// Reads a state file; `hash` is applied to each kind, name and value. Nothing if it is not whole.
pub fn parse_state(bytes: &[u8], hash: impl Fn(Category, &str, &[u8]) -> u64) -> Option<State> {
    let rest = bytes.strip_prefix(b"holdfast ")?;
    let (version, rest) = cut(rest, b" ")?;
    let wide = match version {
        // Of a shell that was started by an earlier version.
        b"1" => false,
        b"2" => true,
        _ => return None,
    };
    let (shell, rest) = cut(rest, b"\n")?;
    let mut out = Collected { state: State::default(), hash: &hash };
    match shell {
        b"bash" => bash(rest, wide, &mut out)?,
        b"zsh" => zsh(rest, wide, &mut out)?,
        b"fish" => fish(rest, wide, &mut out)?,
        _ => return None,
    }
    Some(out.state)
}

/// What is different in `after`, by kind and name. Of a name that is missing from a state that was cut nothing is known.
#[must_use]
pub fn diff(before: &State, after: &State) -> Vec<Change> {
    let is_set = |(key, hash): &(&(Category, String), &u64)| match before.names.get(*key) {
        Some(was) => was != *hash,
        None => !before.cut,
    };
    let set = after.names.iter().filter(is_set);
    let gone = before.names.keys().filter(|key| !after.cut && !after.names.contains_key(*key));
    let change = |(category, name): &(Category, String), hash| Change { category: *category, name: name.clone(), hash };
    let mut changes: Vec<Change> =
        set.map(|(key, hash)| change(key, Some(*hash))).chain(gone.map(|key| change(key, None))).collect();
    changes.sort_by(|a, b| (a.category, &a.name).cmp(&(b.category, &b.name)));
    changes
}

struct Collected<'a> {
    state: State,
    hash: &'a dyn Fn(Category, &str, &[u8]) -> u64,
}

impl Collected<'_> {
    fn add(&mut self, category: Category, name: &[u8], value: &[u8]) {
        let name = String::from_utf8_lossy(name);
        let own = match category {
            Category::Variable => name.starts_with("__holdfast") || VOLATILE.contains(&&*name),
            Category::Binding => name.contains(ASK_KEY) || name.starts_with("zle -N __holdfast"),
            _ => name.starts_with("__holdfast"),
        };
        if own || name.is_empty() || name.len() > NAME_BYTES_MAX {
            return;
        }
        if self.state.names.len() >= NAMES_MAX {
            self.state.cut = true;
            return;
        }
        let hash = (self.hash)(category, &name, value);
        self.state.names.insert((category, name.into_owned()), hash);
    }
}

impl Collected<'_> {
    /// A variable that is not exported and changes how a line is read, or what runs around it.
    fn add_around(&mut self, name: &[u8], value: &[u8]) {
        // Prompts change by themselves. What counts is what they run.
        let runs = |text: &[u8]| [&b"$("[..], b"`"].iter().any(|sign| memchr::memmem::find(text, sign).is_some());
        let is_prompt = matches!(name, b"PS0" | b"PS1" | b"PS2" | b"PS4" | b"RPS1");
        if !is_prompt || runs(value) {
            self.add(Category::Variable, name, value);
        }
    }

    /// The directories of `PATH`, each a name of its own: who adds one of theirs does not answer for those of others.
    fn add_path<'a>(&mut self, dirs: impl Iterator<Item = &'a [u8]>) {
        for dir in dirs.take(PATH_DIRS_MAX) {
            self.add(Category::Path, if dir.is_empty() { b"." } else { dir }, b"");
        }
    }

    /// Traps, as shells print them: `trap -- 'body' NAME`.
    fn add_traps(&mut self, mut text: &[u8]) {
        while !text.is_empty() {
            let line = &text[..logical_line(text)];
            text = text.get(line.len() + 1..).unwrap_or_default();
            if let Some(name) = line.rsplit(|b| *b == b' ').next().filter(|_| line.starts_with(b"trap ")) {
                self.add(Category::Trap, name, line);
            }
        }
    }

    /// Programs the shell remembers: of those that lie in no directory of `PATH` somebody told it.
    fn add_hashed(&mut self, name: &[u8], path: &[u8]) {
        let dir = String::from_utf8_lossy(path.rsplitn(2, |b| *b == b'/').nth(1).unwrap_or_default()).into_owned();
        let is_found = |dir: &str| self.state.names.contains_key(&(Category::Path, dir.to_owned()));
        if path.contains(&b'/') && !is_found(&dir) && !(path.starts_with(b"./") && is_found(".")) {
            self.add(Category::Hash, name, path);
        }
    }
}

/// Directories of `PATH` that are told one by one.
const PATH_DIRS_MAX: usize = 128;
/// The key by which the host asks for the line, as line editors spell it.
const ASK_KEY: &str = "[7133~";

/// Words that end with a NUL, so many.
fn words<'a>(rest: &mut &'a [u8], count: usize) -> Option<Vec<&'a [u8]>> {
    let mut all = Vec::new();
    for _ in 0..count {
        let (word, after) = cut(rest, b"\0")?;
        all.push(word);
        *rest = after;
    }
    Some(all)
}

fn number(word: &[u8]) -> Option<usize> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// What a bash of today tells besides: variables around a line, traps, keys, builtins, umask, remembered programs.
fn bash_wide<'a>(mut rest: &'a [u8], out: &mut Collected) -> Option<&'a [u8]> {
    let count = number(words(&mut rest, 1)?[0])?;
    for pair in words(&mut rest, count.checked_mul(2)?)?.chunks(2) {
        out.add_around(pair[0], pair[1]);
    }
    let parts = words(&mut rest, 5)?;
    out.add_traps(parts[0]);
    for line in parts[1].split(|b| *b == b'\n') {
        // `"\C-xq": "command"`
        if let Some((key, _)) = cut(line, b"\": ") {
            out.add(Category::Binding, key.strip_prefix(b"\"").unwrap_or(key), line);
        }
    }
    for line in parts[2].split(|b| *b == b'\n') {
        out.add(Category::Builtin, line.strip_prefix(b"enable -n ").unwrap_or_default(), b"off");
    }
    out.add(Category::Setting, b"umask", parts[3]);
    let count = number(parts[4])?;
    let hashed = words(&mut rest, count.checked_mul(2)?)?;
    for (name, path) in hashed.iter().zip(hashed.iter().skip(count)) {
        out.add_hashed(name, path);
    }
    rest.strip_prefix(b"\n")
}

/// Options in two lines, aliases after their number, then `declare -xp`, `declare -F` and `declare -f`.
fn bash(rest: &[u8], wide: bool, out: &mut Collected) -> Option<()> {
    let (set, rest) = cut(rest, b"\n")?;
    let (shopt, rest) = cut(rest, b"\n")?;
    for option in set.split(|b| *b == b':').chain(shopt.split(|b| *b == b':')) {
        out.add(Category::Option, option, b"on");
    }
    let (count, mut rest) = cut(rest, b"\0")?;
    let count: usize = std::str::from_utf8(count).ok()?.parse().ok()?;
    let mut words = Vec::new();
    for _ in 0..count.checked_mul(2)? {
        let (word, after) = cut(rest, b"\0")?;
        words.push(word);
        rest = after;
    }
    for (name, value) in words.iter().zip(words.iter().skip(count)) {
        out.add(Category::Alias, name, value);
    }
    rest = rest.strip_prefix(b"\n")?;
    while let Some(declared) = rest.strip_prefix(b"declare ") {
        let line = &declared[..logical_line(declared)];
        rest = declared.get(line.len() + 1..)?;
        // The attributes are part of the value: losing one is a change.
        let (_, named) = cut(line, b" ")?;
        let name = named.split(|b| *b == b'=').next()?;
        out.add(Category::Variable, name, line);
        if let Some(value) = named.strip_prefix(b"PATH=\"").filter(|_| wide) {
            out.add_path(value.strip_suffix(b"\"").unwrap_or(value).split(|b| *b == b':'));
        }
    }
    let rest = rest.strip_prefix(b"\x01\n")?;
    let rest = if wide { bash_wide(rest, out)? } else { rest };
    let (names, bodies) = cut(rest, b"\x01\n")?;
    let bodies = bodies.strip_suffix(b"\x01end\n")?;
    let names = names.split(|b| *b == b'\n').filter_map(|line| line.rsplit(|b| *b == b' ').next());
    functions(names, bodies, out);
    Some(())
}

/// The table of options, then sections of pairs, all ended by NUL: name of the section, number of pairs, pairs.
fn zsh(rest: &[u8], wide: bool, out: &mut Collected) -> Option<()> {
    let (options, rest) = cut(rest, b"\0")?;
    let rest = if wide { zsh_wide(rest, out)? } else { rest };
    for line in options.split(|b| *b == b'\n') {
        out.add(Category::Option, line.split(|b| *b == b' ').next()?, line);
    }
    let mut words = rest.strip_suffix(b"\0")?.split(|b| *b == 0);
    loop {
        let category = match words.next()? {
            b"env" => Category::Variable,
            b"alias" | b"galias" | b"salias" => Category::Alias,
            b"function" => Category::Function,
            b"builtin" => Category::Builtin,
            b"around" => {
                let count = number(words.next()?)?;
                for _ in 0..count {
                    let (name, value) = (words.next()?, words.next()?);
                    out.add_around(name, value);
                }
                continue;
            }
            b"end" => return words.next().is_none().then_some(()),
            _ => return None,
        };
        let count: usize = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
        for _ in 0..count {
            let (name, value) = (words.next()?, words.next()?);
            out.add(category, name, value);
            if (category, name) == (Category::Variable, &b"PATH"[..]) && wide {
                out.add_path(value.split(|b| *b == b':'));
            }
        }
    }
}

/// Traps, keys and widgets, and the umask of a zsh of today.
fn zsh_wide<'a>(mut rest: &'a [u8], out: &mut Collected) -> Option<&'a [u8]> {
    let parts = words(&mut rest, 3)?;
    out.add_traps(parts[0]);
    for line in parts[1].split(|b| *b == b'\n') {
        // `bindkey "^A" widget`, `bindkey -s "^X" "text"`, `zle -N accept-line function`
        let end = match line.strip_prefix(b"zle -N ") {
            Some(named) => 7 + named.split(|b| *b == b' ').next()?.len(),
            None => memchr::memmem::rfind(line, b"\" ").map_or(line.len(), |at| at + 1),
        };
        out.add(Category::Binding, &line[..end], line);
    }
    out.add(Category::Setting, b"umask", parts[2]);
    Some(rest)
}

/// Variables and abbreviations, one line each, then functions.
fn fish(rest: &[u8], wide: bool, out: &mut Collected) -> Option<()> {
    let (variables, rest) = cut(rest, b"\x01\n")?;
    let (abbreviations, rest) = cut(rest, b"\x01\n")?;
    let rest = if wide { fish_wide(rest, out)? } else { rest };
    let bodies = rest.strip_suffix(b"\x01end\n")?;
    for line in variables.split(|b| *b == b'\n') {
        out.add(Category::Variable, line.split(|b| *b == b' ').next()?, line);
        if let Some(dirs) = line.strip_prefix(b"PATH ").filter(|_| wide) {
            let dirs = dirs.split(|b| *b == b' ').map(|dir| dir.trim_ascii());
            let plain = dirs.map(|dir| dir.strip_prefix(b"'").and_then(|dir| dir.strip_suffix(b"'")).unwrap_or(dir));
            out.add_path(plain.filter(|dir| !dir.is_empty()));
        }
    }
    for line in abbreviations.split(|b| *b == b'\n') {
        // `abbr -a -- name expansion`
        let name = cut(line, b" -- ").map_or(&b""[..], |(_, rest)| rest).split(|b| *b == b' ').next()?;
        out.add(Category::Alias, name, line);
    }
    for listed in fish_functions(bodies) {
        // What fish brings along is loaded whenever something needs it: nobody's change.
        if !FISH_OWN.iter().any(|place| listed.starts_with(place)) {
            let name = cut(listed, b"\nfunction ").map_or(&b""[..], |(_, rest)| rest);
            out.add(Category::Function, name.split(|b| matches!(b, b' ' | b'\n')).next()?, listed);
        }
    }
    Some(())
}

/// Variables around a line, keys and the umask of a fish of today.
fn fish_wide<'a>(rest: &'a [u8], out: &mut Collected) -> Option<&'a [u8]> {
    let (around, rest) = cut(rest, b"\x01\n")?;
    let (keys, rest) = cut(rest, b"\x01\n")?;
    let (umask, rest) = cut(rest, b"\x01\n")?;
    for line in around.split(|b| *b == b'\n').map(|line| line.trim_ascii()) {
        out.add_around(line.split(|b| *b == b' ').next()?, line);
    }
    for line in keys.split(|b| *b == b'\n') {
        if line.ends_with(b" __holdfast_line") {
            continue;
        }
        // `bind -M insert \cg 'command'`: all up to the key, which is the first word that is no option and no option's value.
        let (mut end, mut is_value) = (0, false);
        for word in line.split(|b| *b == b' ') {
            end += word.len() + 1;
            let is_option = word.starts_with(b"-") || word == b"bind" || is_value;
            is_value = matches!(word, b"-M" | b"-m");
            if !is_option {
                break;
            }
        }
        out.add(Category::Binding, line.get(..end.saturating_sub(1)).unwrap_or(line), line);
    }
    out.add(Category::Setting, b"umask", umask);
    Some(rest)
}

/// How functions of fish itself are listed.
const FISH_OWN: [&[u8]; 2] = [b"# Defined in /usr/share/fish/", b"# Defined in embedded:"];

/// Cuts fish's listing: each function begins with a comment that says where it is from.
fn fish_functions(mut listing: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let end = memchr::memmem::find(listing.get(1..)?, b"\n# Defined ").map_or(listing.len(), |at| at + 2);
        let (one, rest) = listing.split_at(end);
        listing = rest;
        Some(one)
    })
}

/// Cuts bash's listing of functions where the known names begin a line, in their order: a here-document that looks like a function
/// can move a boundary, it cannot make one up.
fn functions<'a>(names: impl Iterator<Item = &'a [u8]>, listing: &[u8], out: &mut Collected) {
    let mut found: Vec<(&[u8], usize)> = Vec::new();
    let mut from = 0;
    for name in names.filter(|name| !name.is_empty()) {
        let header = [name, b" () "].concat();
        let mut at = from;
        let place = loop {
            let Some(next) = memchr::memmem::find(&listing[at..], &header) else { break None };
            let start = at + next;
            if listing.get(start + header.len()) == Some(&b'\n') && (start == 0 || listing[start - 1] == b'\n') {
                break Some(start);
            }
            at = start + header.len();
        };
        // One that cannot be found is known by its name alone.
        match place {
            Some(start) => {
                found.push((name, start));
                from = start + header.len();
            }
            None => out.add(Category::Function, name, b""),
        }
    }
    for (index, (name, start)) in found.iter().enumerate() {
        let end = found.get(index + 1).map_or(listing.len(), |(_, next)| *next);
        out.add(Category::Function, name, &listing[*start..end]);
    }
}

/// Length up to the newline that is not inside quotes.
fn logical_line(text: &[u8]) -> usize {
    let (mut at, mut quote) = (0, 0u8);
    while at < text.len() {
        match (quote, text[at]) {
            (0, b'\n') => return at,
            (0, b'"') => quote = b'"',
            (0, b'\'') => quote = if at > 0 && text[at - 1] == b'$' { b'$' } else { b'\'' },
            (b'"', b'"') | (b'\'' | b'$', b'\'') => quote = 0,
            (0 | b'"' | b'$', b'\\') => at += 1,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

fn cut<'a>(text: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let found = memchr::memmem::find(text, at)?;
    Some((&text[..found], &text[found + at.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum(_: Category, _: &str, value: &[u8]) -> u64 {
        crate::store::checksum(value)
    }

    const BASH: &[u8] = b"holdfast 1 bash\nemacs:monitor\nextglob\n1\0ll\0ls -l\0\ndeclare -x A=\"1\n\\\"declare -x B=\"\ndeclare -x C\n\
        declare -x D=$'a\\'\\nb'\ndeclare -x PWD=\"/\"\n\x01\ndeclare -f f\ndeclare -fx g\n\x01\nf () \n{ \n    cat <<X\n}\nh () \nX\n\n}\ng () \n{ \n    :\n}\ndeclare -fx g\n\x01end\n";

    fn names(state: &State) -> String {
        state.names.keys().map(|(category, name)| format!("{category:?}:{name}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn values_with_newlines_and_quotes_stay_one_entry() {
        let state = parse_state(BASH, checksum).expect("whole");
        assert_eq!(
            names(&state),
            "Variable:A Variable:C Variable:D Alias:ll Function:f Function:g Option:emacs Option:extglob Option:monitor"
        );
        let zsh = b"holdfast 1 zsh\nxtrace   off\n\0env\x001\0A\x001\n2\0alias\x000\0function\x001\0f\0\techo\0end\0";
        assert_eq!(names(&parse_state(zsh, checksum).expect("whole")), "Variable:A Function:f Option:xtrace");
        let fish = b"holdfast 1 fish\nA 1\nB 'a\\nb'\n\x01\nabbr -a -- gc 'git commit'\n\x01\n# Defined interactively\nfunction f\nend\n# Defined in /usr/share/fish/x\nfunction x\nend\n\x01end\n";
        assert_eq!(names(&parse_state(fish, checksum).expect("whole")), "Variable:A Variable:B Alias:gc Function:f");
    }

    #[test]
    fn a_state_that_is_cut_off_is_none() {
        for end in 0..BASH.len() {
            assert_eq!(parse_state(&BASH[..end], checksum), None, "cut at {end}");
        }
    }

    #[test]
    fn a_changed_body_a_new_alias_and_a_lost_variable_are_told_by_name() {
        let before = parse_state(BASH, checksum).expect("whole");
        let text = String::from_utf8(BASH.to_vec()).expect("text");
        let text = text.replace("    :", "    true").replace("ls -l", "ls").replace("declare -x C\n", "");
        let after = parse_state(text.as_bytes(), checksum).expect("whole");
        let told: Vec<_> = diff(&before, &after).into_iter().map(|c| (c.category, c.name, c.hash.is_some())).collect();
        assert_eq!(
            told,
            [
                (Category::Variable, "C".into(), false),
                (Category::Alias, "ll".into(), true),
                (Category::Function, "g".into(), true)
            ]
        );
        assert_eq!(diff(&after, &after), []);
    }
}
