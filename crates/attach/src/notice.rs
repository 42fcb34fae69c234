//! Messages in the last row: texts, made harmless and cut to the width. Pure.

use holdfast_types::Handle;
use holdfast_wire::params::{ClientView, SessionView};
use holdfast_wire::turns::{Notice, SeizeAnswer, TurnAnswer, TurnView};
use holdfast_wire::{Code, Fault};
use std::fmt::Write as _;

/// There is no host to ask.
pub const HOST_AWAY: &str = " the host is being restarted, try again ";
/// The way to a session elsewhere is broken.
pub const RECONNECTING: &str = " connection lost, reconnecting… ";
/// It is back.
pub const BACK: &str = " reconnected ";
/// It is back, and what was typed meanwhile is too old.
pub const KEYS_LOST: &str = " reconnected; keys typed meanwhile were dropped ";
/// The turn has come.
pub const YOURS: &str = " you have the turn ";

/// The text with nothing in it that a terminal would obey, or that would turn its direction.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0'..='\x1f' => out.extend(['^', char::from(c as u8 ^ 0x40)]),
            '\x7f'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}' => out.push('?'),
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

/// Columns the text takes at most: what may be wide counts as wide, so a line never wraps.
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

fn columns_of(c: char) -> usize {
    if c < '\u{1100}' { 1 } else { 2 }
}

/// The beginning of the text that fits, harmless.
pub fn cut(text: &str, width: usize) -> String {
    let mut left = width;
    visible(text).chars().take_while(|c| left.checked_sub(columns_of(*c)).map(|rest| left = rest).is_some()).collect()
}

/// What a client knows of the turn from the host's notices.
#[derive(Debug, Default)]
pub struct Known {
    /// Who has it.
    pub holder: Option<Handle>,
    /// We asked for it and wait.
    pub waits: bool,
    /// Who asked us for it last.
    pub asker: Option<Handle>,
    /// The last seizure and its text: a freeze that comes with it is shown together with it.
    seized: Option<(Handle, String)>,
}

impl Known {
    /// From a view.
    pub fn saw(&mut self, turn: &TurnView, us: &Handle) {
        self.holder = turn.holder.as_ref().map(|holder| holder.actor.handle.clone());
        self.waits = turn.queue.contains(us);
        self.asker = self.asker.take().filter(|asker| turn.queue.contains(asker));
    }

    /// What to show of a notice; nothing that a person alone, or who did it, knows anyway.
    pub fn hear(&mut self, notice: &Notice, us: &Handle, chord: Option<char>) -> Option<String> {
        match notice {
            Notice::Turn { holder } => {
                let before = std::mem::replace(&mut self.holder, holder.clone());
                let holder = holder.as_ref()?;
                self.asker = self.asker.take().filter(|asker| asker != holder);
                let had = before.as_ref() == Some(us);
                if holder == us {
                    let waited = std::mem::take(&mut self.waits);
                    (waited || before.is_some_and(|before| before != *us)).then(|| YOURS.into())
                } else {
                    had.then(|| format!(" {holder} has the turn "))
                }
            }
            Notice::Requested { by } if by == us => None,
            Notice::Requested { by } => {
                self.asker = Some(by.clone());
                Some(format!(" {by} requests the turn{} ", key(chord, 'g', "gives it")))
            }
            Notice::Seized { by, from, reason } => {
                self.holder = Some(by.clone());
                if by == us {
                    return None;
                }
                let text = match from {
                    Some(from) if from == us => format!(" {by} took the turn: {reason} "),
                    // It says why.
                    Some(from) if from == by => format!(" {by} seized the turn: {reason} "),
                    Some(from) => format!(" {by} seized the turn from {from}: {reason} "),
                    None => format!(" {by} seized the turn: {reason} "),
                };
                self.seized = Some((by.clone(), text.clone()));
                Some(text)
            }
            Notice::Frozen { by } if by == us => None,
            Notice::Frozen { by } => match self.seized.take() {
                Some((seizer, text)) if seizer == *by => Some(format!("{text}· the session is frozen ")),
                Some(_) | None => Some(format!(" {by} froze this session ")),
            },
            Notice::Thawed { by } if by == us => None,
            Notice::Thawed { by } => Some(format!(" {by} thawed this session ")),
            Notice::Asked { by, .. } if by == us => None,
            Notice::Asked { question, by, text, options } => {
                let asks = question_asked(by, text, options);
                Some(format!("{asks}{} ({}) ", key(chord, 'a', "answers"), short_id(question)))
            }
            Notice::Held { by, .. } if by == us => None,
            Notice::Held { approval, by, command, why } => {
                let text =
                    question_asked(by, &format!("{command}: {why}"), &[]).replace(" asks: ", " needs approval: ");
                Some(format!("{text} · holdfast approvals show {} ", short_id(approval)))
            }
            Notice::Handover { to, text } if to == us => {
                Some(format!(" you have the turn · changed by {text} · holdfast handover "))
            }
            Notice::Handover { .. } => None,
            Notice::Rights { rights } if rights.is_empty() => Some(" you have no rights here any more ".into()),
            Notice::Rights { rights } => Some(format!(" you may now: {rights} ")),
        }
    }
}

/// Characters of a question, and of what can be answered, that leave room for how to answer.
const QUESTION_CHARS_MAX: usize = 60;
/// Characters of an id that tell it from the others.
const ID_CHARS: usize = 12;

/// Others who are named to who comes: a line has room for no more.
const OTHERS_MAX: usize = 4;

/// The beginning of a question's id.
pub fn short_id(question: &str) -> String {
    question.chars().take(ID_CHARS).collect()
}

fn question_asked(by: &Handle, text: &str, options: &[String]) -> String {
    let short = |text: &str| match text.char_indices().nth(QUESTION_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    let options = if options.is_empty() { String::new() } else { format!(" [{}]", short(&options.join("/"))) };
    format!(" {by} asks: {}{options}", short(text))
}

/// What to show who comes while questions are open.
pub fn questions_wait(count: u32, chord: Option<char>) -> Option<String> {
    let answers = key(chord, 'a', "answers");
    match count {
        0 => None,
        1 => Some(format!(" a question is open{answers} ")),
        count => Some(format!(" {count} questions are open{answers} ")),
    }
}

/// What a key behind the chord does, at the end of a text; nothing where there is no chord.
fn key(chord: Option<char>, key: char, does: &str) -> String {
    chord.map_or_else(String::new, |chord| format!(" · Ctrl-{chord} {key} {does}"))
}

/// What to show who comes for the first time: where it is, how to leave, who else is here.
pub fn greeting(name: &str, others: &[Handle], holder: Option<&Handle>, chord: Option<char>, detach_key: u8) -> String {
    let mut text = format!(" {name}");
    if let Some(chord) = chord {
        let detach = char::from(detach_key);
        let _ = write!(text, " · Ctrl-{chord} {detach} detaches, Ctrl-{chord} ? helps");
    }
    let mut others: Vec<&Handle> = others.iter().collect();
    others.sort();
    others.dedup();
    let told = |other: &&Handle| match holder == Some(*other) {
        true => format!("{other} (has the turn)"),
        false => other.to_string(),
    };
    let named: Vec<String> = others.iter().take(OTHERS_MAX).map(told).collect();
    if !named.is_empty() {
        let more = others.len() - named.len();
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let _ = write!(text, " · also here: {}{more}", named.join(", "));
    }
    text.push(' ');
    text
}

/// What to show a watcher who types.
pub fn read_only(chord: Option<char>, detach_key: u8) -> String {
    format!(" read-only: nothing is typed{} ", key(chord, char::from(detach_key), "detaches"))
}

/// What to show when keys were refused.
pub fn refused_keys(fault: &Fault, chord: Option<char>) -> String {
    let by = fault.details.as_ref().and_then(|details| details.get("by")?.get("handle")?.as_str());
    match (fault.code, by) {
        (Code::TurnHeld, Some(by)) => format!(" {by} has the turn{} ", key(chord, 't', "requests it")),
        (Code::Frozen, Some(by)) => format!(" {by} froze this session "),
        (Code::Denied, _) => " you may not type here ".into(),
        _ => refused_act(fault),
    }
}

/// What to show when an act was refused.
pub fn refused_act(fault: &Fault) -> String {
    format!(" {} ", fault.message)
}

/// What came of asking for the turn.
pub fn asked(answer: &TurnAnswer, waited: bool) -> String {
    let Some(before) = answer.before else { return YOURS.into() };
    let behind = if before == 0 { ", you are next".into() } else { format!(", {before} before you") };
    match &answer.turn.holder {
        Some(_) | None if waited => format!(" waiting for the turn{behind} "),
        Some(holder) => format!(" requested the turn from {}{behind} ", holder.actor.handle),
        None => format!(" requested the turn{behind} "),
    }
}

/// Whose turn it is now, after somebody let go of it.
pub fn whose(turn: &TurnView) -> String {
    turn.holder
        .as_ref()
        .map_or_else(|| " the turn is free ".into(), |holder| format!(" {} has the turn ", holder.actor.handle))
}

/// What a seizure did.
pub fn seized(answer: &SeizeAnswer, chord: Option<char>) -> String {
    let Some(froze) = &answer.froze else { return YOURS.into() };
    let stood = if froze.processes == 1 { "1 process".into() } else { format!("{} processes", froze.processes) };
    let refused = match froze.refused.len() {
        0 => String::new(),
        many => format!(", {many} not frozen"),
    };
    format!("{YOURS}· {stood} frozen{refused}{} ", key(chord, 'u', "thaws"))
}

/// Whom the turn would go to: the first who waits, or the only other one who is here.
pub fn whom_to_give(session: &SessionView, us: &Handle) -> Option<Handle> {
    if let Some(first) = session.turn.queue.iter().find(|handle| *handle != us) {
        return Some(first.clone());
    }
    let mut others: Vec<&Handle> =
        session.clients.iter().filter_map(|view| Some(&view.actor.as_ref()?.handle)).collect();
    others.retain(|handle| *handle != us);
    others.sort();
    others.dedup();
    if let [only] = others.as_slice() { Some((*only).clone()) } else { None }
}

/// Who is here, who has the turn, how many wait.
pub fn operators(session: &SessionView, client: u32) -> String {
    let name = |view: &ClientView| {
        view.actor.as_ref().map_or_else(|| format!("a client on {}", view.tty), |actor| actor.handle.to_string())
    };
    let holder = session.turn.holder.as_ref();
    let mut parts: Vec<String> = Vec::new();
    for view in &session.clients {
        let mut part = name(view);
        if view.id == client {
            part.push_str(" (you)");
        }
        if holder.is_some_and(|holder| holder.client == Some(view.id)) {
            part.push_str(" has the turn");
        } else if view.read_only {
            part.push_str(" watches");
        }
        parts.push(part);
    }
    match holder {
        None => parts.push("the turn is free".into()),
        Some(holder) if session.clients.iter().any(|view| holder.client == Some(view.id)) => {}
        Some(holder) => parts.push(format!("{} has the turn", holder.actor.handle)),
    }
    match session.turn.queue.len() {
        0 => {}
        1 => parts.push("1 waits".into()),
        many => parts.push(format!("{many} wait")),
    }
    let mut line = format!(" {} ", parts.join(" · "));
    if let Some(frozen) = &session.turn.frozen {
        let _ = write!(line, "· frozen by {} ", frozen.by.handle);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{Actor, ActorId, Rights};
    use holdfast_wire::turns::HolderView;

    fn handle(text: &str) -> Handle {
        text.parse().unwrap()
    }

    fn holder(text: &str, client: Option<u32>) -> Option<HolderView> {
        let actor = Actor { id: ActorId([1; 32]), handle: handle(text) };
        Some(HolderView { actor, client, since_ms: 0, active_ms: 0, ends_ms: None, how: "wrote".into() })
    }

    /// What ann is shown, notice by notice.
    fn hears(known: &mut Known, notices: &[Notice]) -> Vec<Option<String>> {
        notices.iter().map(|notice| known.hear(notice, &handle("human:ann"), Some('\\'))).collect()
    }

    fn turn(holder: &str) -> Notice {
        Notice::Turn { holder: holder.parse().ok() }
    }

    #[test]
    fn a_person_alone_and_who_did_it_are_told_nothing() {
        let ann = || handle("human:ann");
        let seized = Notice::Seized { by: ann(), from: Some(handle("agent:claude")), reason: "x".into() };
        let notices =
            [turn("human:ann"), turn(""), turn("human:ann"), turn(""), turn("agent:claude"), turn(""), seized];
        assert_eq!(hears(&mut Known::default(), &notices), vec![None; 7]);
        let own = [Notice::Frozen { by: ann() }, Notice::Thawed { by: ann() }, Notice::Requested { by: ann() }];
        assert_eq!(hears(&mut Known::default(), &own), vec![None; 3]);
    }

    #[test]
    fn a_turn_that_comes_by_gift_or_request_or_goes_to_another_is_told() {
        let mut known = Known::default();
        let shown = hears(&mut known, &[turn("agent:claude"), turn("human:ann"), turn("agent:claude")]);
        assert_eq!(shown, [None, Some(YOURS.into()), Some(" agent:claude has the turn ".into())]);
        known = Known { waits: true, ..Known::default() };
        assert_eq!(hears(&mut known, &[turn("human:ann")]), [Some(YOURS.into())]);
        assert!(!known.waits);
    }

    #[test]
    fn a_request_says_which_key_gives_and_is_remembered_until_it_is_met() {
        let mut known = Known::default();
        let shown = hears(&mut known, &[Notice::Requested { by: handle("agent:claude") }]);
        assert_eq!(shown, [Some(" agent:claude requests the turn · Ctrl-\\ g gives it ".into())]);
        assert_eq!(known.asker, Some(handle("agent:claude")));
        hears(&mut known, &[turn("agent:claude")]);
        assert_eq!(known.asker, None);
    }

    #[test]
    fn a_seizure_tells_why_and_a_freeze_with_it_does_not_hide_that() {
        let seized =
            |from: &str| Notice::Seized { by: handle("human:bob"), from: from.parse().ok(), reason: "it loops".into() };
        let frozen = Notice::Frozen { by: handle("human:bob") };
        let shown = hears(&mut Known::default(), &[turn("human:ann"), turn("human:bob"), seized("human:ann"), frozen]);
        assert_eq!(shown[2], Some(" human:bob took the turn: it loops ".into()));
        assert_eq!(shown[3], Some(" human:bob took the turn: it loops · the session is frozen ".into()));
        let shown = hears(&mut Known::default(), &[turn("human:ann"), seized("agent:claude"), turn("human:bob")]);
        assert_eq!(shown[1], Some(" human:bob seized the turn from agent:claude: it loops ".into()));
        assert_eq!(shown[2], None, "shown once");
        let shown = hears(&mut Known::default(), &[Notice::Frozen { by: handle("human:bob") }]);
        assert_eq!(shown, [Some(" human:bob froze this session ".into())]);
    }

    #[test]
    fn a_question_is_shown_with_how_to_answer_it_and_obeyed_in_nothing() {
        let asked = |by: &str, text: &str, options: &[&str]| Notice::Asked {
            question: "que_0123456789abcdef".into(),
            by: handle(by),
            text: text.into(),
            options: options.iter().map(|one| (*one).to_owned()).collect(),
        };
        let shown = |notice| hears(&mut Known::default(), &[notice]).remove(0);
        assert_eq!(
            shown(asked("agent:bot", "Deploy now?", &["yes", "no"])).unwrap(),
            " agent:bot asks: Deploy now? [yes/no] · Ctrl-\\ a answers (que_01234567) "
        );
        assert_eq!(shown(asked("human:ann", "Deploy now?", &[])), None, "who asks knows");
        let long = shown(asked("agent:bot", &"\x1b[2J".repeat(100), &[&"x".repeat(200)])).unwrap();
        assert!(long.contains("a answers (que_01234567)"), "{long}");
        assert!(!cut(&long, 400).chars().any(char::is_control));
    }

    #[test]
    fn who_comes_first_is_told_where_it_is_how_to_leave_and_who_is_here() {
        let others = |names: &[&str]| names.iter().map(|name| handle(name)).collect::<Vec<_>>();
        let claude = handle("agent:claude");
        assert_eq!(greeting("main", &[], None, Some('\\'), b'd'), " main · Ctrl-\\ d detaches, Ctrl-\\ ? helps ");
        assert_eq!(
            greeting("main", &others(&["human:bob", "agent:claude", "human:bob"]), Some(&claude), Some('A'), b'x'),
            " main · Ctrl-A x detaches, Ctrl-A ? helps · also here: human:bob, agent:claude (has the turn) "
        );
        let six = others(&["agent:a", "agent:b", "agent:c", "agent:d", "agent:e", "agent:f"]);
        assert_eq!(
            greeting("w", &six, None, None, b'd'),
            " w · also here: agent:a, agent:b, agent:c, agent:d and 2 more "
        );
    }

    #[test]
    fn rights_are_named() {
        let shown = |rights: Rights| hears(&mut Known::default(), &[Notice::Rights { rights }]).remove(0).unwrap();
        assert_eq!(shown("run,observe".parse().unwrap()), " you may now: observe,run ");
        assert_eq!(shown(Rights::NONE), " you have no rights here any more ");
    }

    #[test]
    fn hostile_texts_do_nothing_to_the_terminal_and_lines_never_wrap() {
        assert_eq!(visible("a\x1b]0;x\x07b\r\n\x7f\u{9b}31m\u{202e}\u{200b}ü"), "a^[]0;x^Gb^M^J??31m??ü");
        assert!(!cut("\x1b[2J\u{85}\u{9d}", 80).chars().any(char::is_control));
        for width in 0..20 {
            let line = cut("ab\x1bc終わりde · f", width);
            assert!(columns(&line) <= width, "{line}");
        }
        assert_eq!(cut("ab\x1bc終わり", 8), "ab^[c終");
    }

    #[test]
    fn refusals_name_who_and_how_to_ask() {
        let fault = |code, details| Fault { details, ..Fault::new(code, "the\x1bmessage") };
        let by =
            || Some(Box::new(serde_json::json!({"code": "turn_held", "by": {"id": "00", "handle": "agent:claude"}})));
        let shown = |code| refused_keys(&fault(code, by()), Some('\\'));
        assert_eq!(shown(Code::TurnHeld), " agent:claude has the turn · Ctrl-\\ t requests it ");
        assert_eq!(shown(Code::Frozen), " agent:claude froze this session ");
        assert_eq!(shown(Code::Denied), " you may not type here ");
        assert_eq!(cut(&shown(Code::FenceStale), 80), " the^[message ");
        assert_eq!(refused_keys(&fault(Code::TurnHeld, None), None), " the\x1bmessage ");
    }

    #[test]
    fn a_request_tells_whom_and_how_many_wait_before() {
        let answer = |before| TurnAnswer {
            fence: None,
            before,
            turn: TurnView { holder: holder("human:bob", None), ..TurnView::default() },
            handover: None,
        };
        assert_eq!(asked(&answer(Some(2)), false), " requested the turn from human:bob, 2 before you ");
        assert_eq!(asked(&answer(Some(0)), false), " requested the turn from human:bob, you are next ");
        assert_eq!(asked(&answer(Some(1)), true), " waiting for the turn, 1 before you ");
        assert_eq!(asked(&answer(None), false), YOURS);
        assert_eq!(whose(&answer(None).turn), " human:bob has the turn ");
        assert_eq!(whose(&TurnView::default()), " the turn is free ");
    }

    #[test]
    fn who_is_here_fits_one_line() {
        let client = |id, who: &str, read_only| {
            serde_json::json!({"id": id, "actor": {"id": "01".repeat(32), "handle": who}, "pid": 1, "tty": "/dev/pts/1",
                "size": "80x24", "read_only": read_only, "since_ms": 0})
        };
        let clients: Vec<ClientView> =
            [client(1, "human:ann", false), client(2, "agent:claude", false), client(3, "human:bob", true)]
                .into_iter()
                .map(|view| serde_json::from_value(view).unwrap())
                .collect();
        let mut session: SessionView = serde_json::from_value(serde_json::json!({
            "id": holdfast_types::SessionId::from_random_bits(1), "name": "w", "life": "running", "command": [], "cwd": "/",
            "created_ms": 0, "pid": 1, "keeper_pid": 1, "size": "80x24", "head": 0, "oldest": 0,
            "ring_bytes": 0, "clients": [], "turn": {"fence": 1}}))
        .unwrap();
        session.clients = clients;
        session.turn.holder = holder("agent:claude", Some(2));
        session.turn.queue = vec![handle("human:ann")];
        assert_eq!(
            operators(&session, 1),
            " human:ann (you) · agent:claude has the turn · human:bob watches · 1 waits "
        );
        assert_eq!(whom_to_give(&session, &handle("human:bob")), Some(handle("human:ann")), "who waits comes first");
        assert_eq!(whom_to_give(&session, &handle("human:ann")), None, "two others");
        session.clients.truncate(2);
        assert_eq!(whom_to_give(&session, &handle("human:ann")), Some(handle("agent:claude")));
        session.turn = TurnView { holder: holder("agent:claude", None), ..TurnView::default() };
        session.clients.truncate(1);
        assert_eq!(operators(&session, 1), " human:ann (you) · agent:claude has the turn ");
        session.turn.holder = None;
        assert_eq!(operators(&session, 1), " human:ann (you) · the turn is free ");
        assert_eq!(whom_to_give(&session, &handle("human:ann")), None);
    }
}
