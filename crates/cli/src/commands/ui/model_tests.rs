use super::super::draw::draw;
use super::super::surface::Surface;
use super::*;
use serde_json::json;

fn session(number: u128, name: &str, asks: u32) -> SessionView {
    serde_json::from_value(json!({
        "id": SessionId::from_random_bits(number), "name": name, "life": "running", "command": ["/bin/bash"], "cwd": "/",
        "created_ms": 0, "pid": 1, "keeper_pid": 1, "size": "80x24", "head": 10, "oldest": 0, "ring_bytes": 0,
        "clients": [], "turn": {"fence": 1}, "asks": asks}))
    .unwrap()
}

fn waits_for_a_password(number: u128) -> StateView {
    serde_json::from_value(json!({
        "session": SessionId::from_random_bits(number), "name": "x", "state": "waiting", "kind": "password",
        "prompt": "Password:", "since_ms": 0, "at": 0}))
    .unwrap()
}

fn model(count: u128) -> Model {
    let mut model = Model::new(None);
    model.listed((0..count).map(|number| session(number, &format!("s{number:03}"), 0)).collect());
    model
}

fn names(model: &Model) -> Vec<&str> {
    model.shown().iter().map(|session| session.name.as_str()).collect()
}

fn types(model: &mut Model, text: &str) {
    text.chars().for_each(|c| assert_eq!(model.press(Key::Char(c)), None));
}

fn selected(model: &Model) -> &str {
    model.selected().map_or("", |session| session.name.as_str())
}

/// The picker as text.
fn drawn(model: &mut Model, columns: u16, rows: u16) -> String {
    let mut surface = Surface::new(columns, rows);
    draw(model, &mut surface);
    surface.text()
}

#[test]
fn typing_finds_sessions_and_enter_chooses() {
    let mut model = model(200);
    assert_eq!((selected(&model), names(&model).len()), ("s000", 200));
    types(&mut model, "S11");
    assert_eq!(names(&model).len(), 10);
    assert_eq!(selected(&model), "s110", "one that fits");
    model.press(Key::Down);
    model.press(Key::Down);
    assert_eq!(model.press(Key::Enter), Some(Wish::Attach(SessionId::from_random_bits(112))));
    model.press(Key::Escape);
    assert_eq!((selected(&model), names(&model).len()), ("s112", 200), "the selection stays");
    types(&mut model, "BASH 99 s1");
    assert_eq!(names(&model), ["s199"], "every word, wherever it is");
    types(&mut model, "no such");
    assert_eq!((model.press(Key::Enter), selected(&model)), (None, ""));
    model.press(Key::Ctrl('u'));
    assert_eq!(model.press(Key::Escape), Some(Wish::Quit));
}

#[test]
fn the_selection_moves_by_rows_and_pages_and_stays_on_the_screen() {
    let mut model = model(200);
    model.page(20);
    for (key, at, on_page) in [
        (Key::PageDown, "s020", 19),
        (Key::Down, "s021", 19),
        (Key::Up, "s020", 18),
        (Key::End, "s199", 19),
        (Key::Down, "s199", 19),
        (Key::Home, "s000", 0),
        (Key::Up, "s000", 0),
    ] {
        model.press(key);
        let (row, page) = model.page(20);
        assert_eq!((selected(&model), row), (at, on_page), "{key:?}");
        assert_eq!(page[row].name.as_str(), at);
        assert_eq!(model.visible().len(), 20, "only those on the screen are looked at");
    }
    // It is gone: the nearest row is selected, and nothing of it was ended.
    model.listed(vec![session(7, "other", 0)]);
    assert_eq!(model.page(20).0, 0);
    assert_eq!(selected(&model), "other");
}

#[test]
fn ending_is_confirmed_and_any_other_key_ends_nothing() {
    let mut model = model(3);
    let id = SessionId::from_random_bits(0);
    for key in [Key::Enter, Key::Escape, Key::Char('n'), Key::Other] {
        assert_eq!(model.press(Key::Ctrl('x')), None);
        assert_eq!(model.mode, Mode::End(id));
        assert_eq!((model.press(key), &model.mode), (None, &Mode::Browse), "{key:?}");
    }
    model.press(Key::Ctrl('x'));
    assert_eq!(model.press(Key::Char('y')), Some(Wish::End(id)));
}

#[test]
fn a_new_session_is_named_or_not() {
    let mut model = model(0);
    model.press(Key::Ctrl('n'));
    assert_eq!(model.press(Key::Enter), Some(Wish::New(None)));
    model.press(Key::Ctrl('n'));
    types(&mut model, "a b");
    assert_eq!(model.press(Key::Enter), None);
    assert!(model.message.is_some() && model.mode == Mode::New("a b".into()), "what is wrong is said");
    model.press(Key::Ctrl('u'));
    types(&mut model, "web");
    assert_eq!(model.press(Key::Enter), Some(Wish::New(Some("web".parse().unwrap()))));
}

fn question(text: &str) -> QuestionView {
    serde_json::from_value(json!({
        "id": "que_00000000000000000000000000", "session": SessionId::from_random_bits(1), "name": "ask",
        "by": {"id": "01".repeat(32), "handle": "agent:bot"}, "text": text, "options": ["yes", "no"], "hash": "02".repeat(32),
        "asked_ms": 0, "state": "open", "answer": null}))
    .unwrap()
}

#[test]
fn a_question_is_answered_only_where_it_was_read_whole() {
    let mut model = Model::new(None);
    model.listed(vec![session(0, "a", 0), session(1, "ask", 1)]);
    assert_eq!(model.press(Key::Ctrl('a')), None);
    assert_eq!(model.message.as_deref(), Some("no open question there"));
    model.press(Key::Tab);
    assert_eq!(selected(&model), "ask", "what waits is found by a key");
    assert_eq!(model.press(Key::Ctrl('a')), Some(Wish::Questions(SessionId::from_random_bits(1))));
    model.asked(vec![question("Deploy\u{1b}[2J now?")]);
    let shown = drawn(&mut model, 80, 24);
    assert!(shown.contains("agent:bot asks in ask:") && shown.contains("2: no"), "{shown}");
    assert!(!shown.contains('\u{1b}'));
    types(&mut model, "maybe");
    assert_eq!(model.press(Key::Enter), None, "no such option");
    model.press(Key::Ctrl('u'));
    types(&mut model, "2");
    assert_eq!(model.press(Key::Enter), Some(Wish::Answer(Box::new(question("Deploy\u{1b}[2J now?")), "no".into())));
    model.asked(vec![question(&"words ".repeat(300))]);
    drawn(&mut model, 40, 8);
    types(&mut model, "yes");
    assert_eq!(model.press(Key::Enter), None);
    assert!(model.message.as_ref().is_some_and(|text| text.contains("holdfast answer que_")), "{:?}", model.message);
}

#[test]
fn it_draws_at_every_size_and_shows_what_waits() {
    let mut model = Model::new(None);
    model.listed(vec![session(0, "build", 0), session(1, "deploy", 2), session(2, "web", 0)]);
    model.saw(waits_for_a_password(0));
    let rows: Vec<String> = (0..24).map(|row| format!("row {row} \u{1b}[31m")).collect();
    let screen = json!({"offset": 10, "size": "80x24", "rows": rows, "history": [], "cursor": [0, 23], "alternate": false, "title": ""});
    model.looked(SessionId::from_random_bits(0), serde_json::from_value(screen).unwrap());
    let shown = drawn(&mut model, 80, 24);
    for text in ["● build", "password", "● deploy", "asks", "row 23", "Enter attach", "Ctrl-X end"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert_eq!(model.preview_due(), None, "nothing was printed since");
    for columns in [1, 2, 9, 10, 20, 39, 69, 70, 80, 200] {
        for rows in [1, 2, 3, 4, 7, 11, 12, 24, 60] {
            for mode in [Mode::Browse, Mode::New("x".repeat(90)), Mode::End(SessionId::from_random_bits(0))] {
                model.mode = mode;
                let shown = drawn(&mut model, columns, rows);
                assert!(!shown.contains('\u{1b}'), "{shown}");
            }
            model.mode = Mode::Answer(Box::new(question("ok?")), String::new());
            drawn(&mut model, columns, rows);
        }
    }
}
