//! The chord: a control key, then one key that says what to do.
//!
//! Terminals that encode keys as escape sequences (the kitty protocol, modifyOtherKeys) send the chord's key so too; all
//! forms are looked for. Pure: bytes in, meanings out.

/// What keys mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// Type these bytes.
    Type(Vec<u8>),
    /// Let go of the terminal.
    Detach,
    /// Take the turn, or ask for it.
    Take,
    /// Give the turn to another actor.
    Give,
    /// Release the turn.
    Release,
    /// Take the turn whatever its holder does.
    Seize,
    /// Resume a frozen session.
    Thaw,
    /// Show who is here.
    Operators,
    /// Answer a question.
    Answer,
    /// Choose another session.
    Switch,
    /// Stop this client, as Ctrl-Z stops a program.
    Suspend,
    /// Show what can be pressed.
    Help,
    /// The key behind the chord means nothing.
    Nothing,
}

/// Follows the keys.
#[derive(Debug)]
pub struct Chord {
    forms: Vec<Vec<u8>>,
    detach_key: u8,
    pressed: Option<Vec<u8>>,
    /// Bytes that may be the beginning of an encoded key.
    partial: Vec<u8>,
}

impl Chord {
    /// A chord that starts with this control byte; none: every key is typed.
    pub fn new(control: Option<u8>, detach_key: u8) -> Chord {
        let forms = control.map_or_else(Vec::new, |control| {
            // Control bytes are a letter or sign less 64; letters are encoded in lower case.
            let key = (control + 64).to_ascii_lowercase();
            vec![vec![control], format!("\x1b[{key};5u").into_bytes(), format!("\x1b[27;5;{key}~").into_bytes()]
        });
        Chord { forms, detach_key, pressed: None, partial: Vec::new() }
    }

    /// The byte strings that start it.
    pub fn forms(&self) -> &[Vec<u8>] {
        &self.forms
    }

    /// The chord's key was pressed and its second key has not come yet.
    pub fn is_open(&self) -> bool {
        self.pressed.is_some()
    }

    /// Takes keys as they come.
    pub fn feed(&mut self, keys: &[u8]) -> Vec<Meaning> {
        let mut keys = [std::mem::take(&mut self.partial), keys.to_vec()].concat();
        let mut meanings = Vec::new();
        loop {
            if self.pressed.is_some() {
                if keys.is_empty() {
                    return meanings;
                }
                let (form, length) = first_key(&keys);
                let key: Vec<u8> = keys.drain(..length).collect();
                let opener = self.pressed.take().expect("just seen");
                meanings.push(match form {
                    _ if self.forms.contains(&key) => Meaning::Type(opener),
                    Some(k) => self.second(k),
                    None => Meaning::Nothing,
                });
                continue;
            }
            let found = self.forms.iter().filter_map(|form| find(&keys, form).map(|at| (at, form.clone()))).min();
            let Some((at, form)) = found else {
                // An encoded chord cut in two is completed by the next read; a lone escape is the escape key.
                let cut = (1..keys.len())
                    .find(|at| self.forms.iter().any(|f| keys.len() - at > 1 && f.starts_with(&keys[*at..])));
                let whole = self.forms.iter().any(|f| keys.len() > 1 && f.starts_with(&keys));
                match (whole, cut) {
                    (true, _) => self.partial = keys,
                    (false, Some(at)) => {
                        self.partial = keys.split_off(at);
                        meanings.push(Meaning::Type(keys));
                    }
                    (false, None) if !keys.is_empty() => meanings.push(Meaning::Type(keys)),
                    (false, None) => {}
                }
                return meanings;
            };
            if at > 0 {
                meanings.push(Meaning::Type(keys[..at].to_vec()));
            }
            keys.drain(..at + form.len());
            self.pressed = Some(form);
        }
    }
}

impl Chord {
    /// What the key behind the chord means; detaching comes first, whichever key it was given.
    fn second(&self, key: u8) -> Meaning {
        match key.to_ascii_lowercase() {
            k if k == self.detach_key.to_ascii_lowercase() => Meaning::Detach,
            b't' => Meaning::Take,
            b'g' => Meaning::Give,
            b'r' => Meaning::Release,
            b's' => Meaning::Seize,
            b'u' => Meaning::Thaw,
            b'o' => Meaning::Operators,
            b'a' => Meaning::Answer,
            b'w' => Meaning::Switch,
            b'z' => Meaning::Suspend,
            b'?' => Meaning::Help,
            _ => Meaning::Nothing,
        }
    }
}

/// The keys behind the chord: what each does, in full and in a word.
const KEYS: [(char, &str, &str); 10] = [
    ('w', "switches sessions", "all"),
    ('z', "suspends", "stop"),
    ('t', "requests the turn", "turn"),
    ('g', "gives the turn", "give"),
    ('r', "releases the turn", "drop"),
    ('s', "seizes the turn", "seize"),
    ('u', "thaws", "thaw"),
    ('o', "who is here", "who"),
    ('a', "answers a question", "reply"),
    ('?', "this line", ""),
];

/// What a key does behind the chord already.
#[must_use]
pub fn chord_key(key: u8) -> Option<&'static str> {
    KEYS.iter().find(|(known, _, _)| known.eq_ignore_ascii_case(&char::from(key))).map(|(_, what, _)| *what)
}

/// The line that tells what can be pressed, in so many columns: in full, or a word for each key.
pub fn help(control: u8, detach_key: u8, columns: usize) -> String {
    let (chord, detach) = (char::from(control + 64), char::from(detach_key));
    let others = || KEYS.iter().filter(|(key, _, _)| !key.eq_ignore_ascii_case(&detach));
    let full: String = others().map(|(key, what, _)| format!(" · {key} {what}")).collect();
    let full = format!(" Ctrl-{chord} then {detach} detaches{full} · Ctrl-{chord} types one ");
    if full.chars().count() <= columns {
        return full;
    }
    let short: String = others().map(|(key, _, word)| format!(" {key} {word}")).collect();
    format!(" C-{chord} {detach} detach{short}")
}

fn find(keys: &[u8], form: &[u8]) -> Option<usize> {
    keys.windows(form.len()).position(|window| window == form)
}

/// The first key: the ASCII key it is, if it is one, and how many bytes it takes.
fn first_key(keys: &[u8]) -> (Option<u8>, usize) {
    let Some(rest) = keys.strip_prefix(b"\x1b[") else { return (keys.first().copied(), 1) };
    let Some(end) = rest.iter().position(|b| (0x40..=0x7e).contains(b)) else { return (None, keys.len()) };
    let number: String = rest.iter().map_while(|b| b.is_ascii_digit().then_some(char::from(*b))).collect();
    let key = if rest[end] == b'u' { number.parse::<u8>().ok() } else { None };
    (key, 2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(chunks: &[&[u8]]) -> Vec<Meaning> {
        let mut chord = Chord::new(Some(0x1c), b'd');
        chunks.iter().flat_map(|chunk| chord.feed(chunk)).collect()
    }

    fn typed(text: &str) -> Meaning {
        Meaning::Type(text.as_bytes().to_vec())
    }

    #[test]
    fn the_chord_detaches_however_the_terminal_encodes_it() {
        let forms: [&[&[u8]]; 5] =
            [&[b"\x1cd"], &[b"\x1c", b"d"], &[b"\x1b[92;5ud"], &[b"\x1b[92;5u\x1b[100u"], &[b"\x1b[27;5;92~d"]];
        for form in forms {
            assert_eq!(play(form), [Meaning::Detach], "{form:?}");
        }
        assert_eq!(play(&[b"ab\x1cd"]), [typed("ab"), Meaning::Detach]);
    }

    #[test]
    fn pressed_twice_it_types_one() {
        assert_eq!(play(&[b"\x1c\x1c"]), [typed("\x1c")]);
        assert_eq!(play(&[b"\x1b[92;5u\x1b[92;5u"]), [typed("\x1b[92;5u")]);
        assert_eq!(play(&[b"\x1c\x1cx"]), [typed("\x1c"), typed("x")]);
    }

    #[test]
    fn an_encoded_chord_may_come_in_pieces_and_other_escapes_pass() {
        assert_eq!(play(&[b"x\x1b[92", b";5u", b"d"]), [typed("x"), Meaning::Detach]);
        assert_eq!(play(&[b"\x1b"]), [typed("\x1b")], "the escape key is not held back");
        assert_eq!(play(&[b"\x1b[A\x1b[97;5u"]), [typed("\x1b[A\x1b[97;5u")]);
        assert_eq!(play(&[b"\x1b[9", b"7u"]), [typed("\x1b[97u")]);
        assert_eq!(play(&[b"\x1cq"]), [Meaning::Nothing]);
        assert_eq!(play(&[b"\x1c?"]), [Meaning::Help]);
    }

    #[test]
    fn every_act_has_its_key_and_detaching_wins_over_it() {
        let acts = [
            (b't', Meaning::Take),
            (b'g', Meaning::Give),
            (b'r', Meaning::Release),
            (b's', Meaning::Seize),
            (b'u', Meaning::Thaw),
            (b'o', Meaning::Operators),
            (b'a', Meaning::Answer),
            (b'w', Meaning::Switch),
            (b'z', Meaning::Suspend),
        ];
        for (key, act) in acts {
            let act = vec![act];
            assert_eq!(play(&[&[0x1c, key]]), act);
            assert_eq!(play(&[&[0x1c], &[key.to_ascii_uppercase()]]), act);
            assert_eq!(play(&[format!("\x1b[92;5u\x1b[{key}u").as_bytes()]), act);
            assert_eq!(Chord::new(Some(0x1c), key).feed(&[0x1c, key]), [Meaning::Detach]);
        }
        assert_eq!(play(&[b"\x1csloop\r"]), [Meaning::Seize, typed("loop\r")], "what follows is for the prompt");
    }

    #[test]
    fn without_a_chord_every_key_is_typed_at_once() {
        let mut chord = Chord::new(None, b'd');
        for keys in [&b"\x1cd"[..], b"\x1b[92", b";5u", b"\x1b[27;5;92~d"] {
            assert_eq!(chord.feed(keys), [Meaning::Type(keys.to_vec())]);
        }
        assert_eq!(chord.feed(b""), []);
    }

    #[test]
    fn the_help_names_each_key_once() {
        assert_eq!(
            help(0x1c, b'd', 300),
            " Ctrl-\\ then d detaches · w switches sessions · z suspends · t requests the turn · g gives the turn · r releases the turn · s seizes the turn · u thaws \
             · o who is here · a answers a question · ? this line · Ctrl-\\ types one "
        );
        let short = help(0x1c, b'd', 80);
        assert_eq!(short, " C-\\ d detach w all z stop t turn g give r drop s seize u thaw o who a reply ? ");
        assert!(short.len() <= 80);
        assert!(!help(0x01, b't', 300).contains("requests the turn"));
    }
}
