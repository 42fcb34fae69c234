use super::*;
use holdfast_wire::env::Known;

/// From a file's bytes.
fn read(text: &[u8], check: u64) -> Ledger {
    Ledger::read(holdfast_store::lines::decode(&holdfast_store::SHELL, text).expect("of this version"), check)
}

/// A state of words like `PATH=1` (a variable), `a:ls=2` (an alias), and the names that were cut off (`…`).
fn state(words: &str) -> State {
    let mut state = State::default();
    for word in words.split_whitespace() {
        if word == "…" {
            state.cut = true;
            continue;
        }
        let (name, hash) = word.split_once('=').expect("a value");
        let (category, name) = match name.split_once(':') {
            Some(("a", name)) => (Category::Alias, name),
            _ => (Category::Variable, name),
        };
        state.names.insert((category, name.to_owned()), hash.parse().expect("a number"));
    }
    state
}

fn by(who: &str, at_ms: TimeMs) -> Changed {
    let actor = holdfast_types::Actor {
        id: holdfast_types::ActorId([who.len() as u8; 32]),
        handle: who.parse().expect("a handle"),
    };
    Changed { known: Known::Time, act: Some(at_ms), run: None, key: None, actor: Some(actor), at_ms }
}

/// Who, a state, and the directory's hash.
type Told = (&'static str, &'static str, Option<u64>);

/// Plays states, each by somebody, and a directory with each; tells what is changed in the end: `name hash who`.
fn play(states: &[Told]) -> (Ledger, Vec<u8>) {
    let (mut ledger, mut text) = (Ledger::read([], 7), Vec::new());
    for (at_ms, (who, words, cwd)) in (1..).zip(states) {
        let news = ledger.news(state(words), *cwd);
        if news.is_empty() {
            continue;
        }
        for line in news.into_lines(by(who, at_ms), 7) {
            text.extend(serde_json::to_vec(&line).expect("a line"));
            text.push(b'\n');
            ledger.apply(line);
        }
    }
    (ledger, text)
}

fn told(ledger: &Ledger) -> String {
    let line = |entry: EnvEntry| {
        let who = match entry.changed {
            None => "start".to_owned(),
            Some(by) => by.actor.map_or("nobody".into(), |actor| actor.handle.to_string()),
        };
        let value = entry.hash.map_or("gone".into(), |hash| u64::from_str_radix(&hash, 16).expect("hex").to_string());
        format!("{} {value} {who}", entry.name)
    };
    ledger.entries(false).into_iter().map(line).collect::<Vec<_>>().join(", ")
}

const ANN: &str = "human:ann";
const BOT: &str = "agent:bot";

#[test]
fn each_name_is_its_last_changers() {
    let cases: [(&[Told], &str); 9] = [
        (&[(ANN, "A=1", None)], ""),
        (&[(ANN, "A=1", None), (BOT, "A=2", None)], "A 2 agent:bot"),
        (&[(ANN, "A=1", None), (BOT, "A=2", None), (ANN, "A=2 B=1", None)], "A 2 agent:bot, B 1 human:ann"),
        (&[(ANN, "A=1", None), (BOT, "A=2", None), (ANN, "A=3", None)], "A 3 human:ann"),
        // Put back, by whomever.
        (&[(ANN, "A=1", None), (BOT, "A=2", None), (ANN, "A=1", None)], ""),
        (&[(ANN, "A=1", None), (BOT, "", None)], "A gone agent:bot"),
        (&[(ANN, "A=1", None), (BOT, "", None), (ANN, "A=1", None)], ""),
        (&[(ANN, "A=1", None), (BOT, "A=1 a:A=1", None), (ANN, "A=1", None)], ""),
        // Where it is counts from when it is known.
        (&[(ANN, "A=1", None), (ANN, "A=1", Some(5)), (BOT, "A=1", Some(6)), (ANN, "A=1", None)], "cwd 6 agent:bot"),
    ];
    for (states, expected) in cases {
        let (ledger, text) = play(states);
        assert_eq!(told(&ledger), expected, "{states:?}");
        assert_eq!(told(&read(&text, 7)), expected, "{states:?}, from its lines");
        let short: Vec<u8> = ledger.lines().iter().flat_map(|line| serde_json::to_vec(line).unwrap()).collect();
        let short = String::from_utf8(short).unwrap().replace("}{", "}\n{");
        let again = read(short.as_bytes(), 7);
        assert_eq!(
            (told(&again), again.now.clone()),
            (expected.to_owned(), ledger.now.clone()),
            "{states:?}, in short"
        );
    }
}

#[test]
fn everything_is_told_on_request_and_a_name_that_came_and_went_never_was() {
    let (ledger, _) = play(&[(ANN, "A=1 B=2", None), (BOT, "B=2 C=3", None), (BOT, "B=2", None)]);
    let all: Vec<_> = ledger.entries(true).into_iter().map(|e| (e.name, e.gone, e.changed.is_some())).collect();
    assert_eq!(all, [("A".to_owned(), true, true), ("B".to_owned(), false, false)]);
    assert_eq!(Ledger::default().entries(true), []);
}

#[test]
fn a_torn_line_costs_what_it_said_and_nothing_before_it() {
    let (whole, text) = play(&[(ANN, "A=1", None), (BOT, "A=2", None), (ANN, "A=2 B=1", None)]);
    let lines: Vec<usize> = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    for end in 0..text.len() {
        let ledger = read(&text[..end], 7);
        let expected = match end {
            end if end >= lines[2] => told(&whole),
            end if end >= lines[1] => "A 2 agent:bot".into(),
            _ => String::new(),
        };
        assert_eq!(told(&ledger), expected, "cut at {end}");
        assert_eq!(ledger.since_ms().is_some(), end >= lines[0], "cut at {end}");
    }
    // What comes behind a torn line is read.
    let torn = [&text[..lines[1] - 3], b"\n", &text[lines[1] + 1..]].concat();
    assert_eq!(told(&read(&torn, 7)), "B 1 human:ann");
    // Hashes of another key compare with nothing.
    assert_eq!(read(&text, 8).since_ms(), None);
}

#[test]
fn what_was_cut_off_is_nobodys_change() {
    let (mut ledger, _) = play(&[(ANN, "A=1 B=1 …", None), (BOT, "B=2 C=1 …", None)]);
    assert_eq!((told(&ledger).as_str(), ledger.is_partial()), ("B 2 agent:bot", true), "A may be there, C have been");
    for line in ledger.news(state("B=2 C=1"), None).into_lines(by(BOT, 9), 7) {
        ledger.apply(line);
    }
    assert_eq!(told(&ledger), "A gone agent:bot, B 2 agent:bot, C 1 nobody");
    assert!(!ledger.is_partial() && ledger.news(state("B=2 C=1"), None).is_empty());
}

#[test]
fn lines_of_the_past_are_not_kept_for_ever() {
    let mut ledger = Ledger::read([], 7);
    let (mut at_ms, mut anew) = (0, 0);
    for round in 0..5_000_u64 {
        at_ms += 1;
        for line in ledger.news(state(&format!("A={round} B=1")), None).into_lines(by(BOT, at_ms), 7) {
            ledger.apply(line);
        }
        if ledger.is_stale() {
            let short = ledger.lines();
            assert!(short.len() <= 2, "{short:?}");
            ledger = Ledger::read([], 7);
            short.into_iter().for_each(|line| ledger.apply(line));
            anew += 1;
        }
    }
    assert_eq!(told(&ledger), "A 4999 agent:bot");
    assert_eq!(anew, 4);
}
