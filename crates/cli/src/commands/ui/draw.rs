//! How the picker looks, at any size.

use super::model::{Mode, Model};
use super::surface::{Area, Style, Surface, wrapped};
use crate::show::{command_line, cut, now_ms, span, visible};
use holdfast_wire::params::{ScreenAnswer, SessionView};
use holdfast_wire::questions::QuestionView;
use unicode_width::UnicodeWidthStr;

/// From this width on the preview is beside the list; narrower, below it.
const WIDE: u16 = 70;
/// From this height on there is room for a preview below the list.
const TALL: u16 = 12;
/// Columns of the list where the preview is beside it; of a name and a state in it.
const LIST_COLUMNS: u16 = 44;
const NAME_COLUMNS: usize = 20;
const STATE_COLUMNS: usize = 11;
/// Too small for anything but a name.
const COLUMNS_MIN: u16 = 10;
const ROWS_MIN: u16 = 3;

/// Draws everything.
pub fn draw(model: &mut Model, surface: &mut Surface) {
    let area = surface.area();
    if area.height < ROWS_MIN || area.width < COLUMNS_MIN {
        let name = model.selected().map_or(String::new(), |session| visible(session.name.as_str()));
        surface.put(area, &name, Style::Plain);
        return;
    }
    let middle = Area { y: 1, height: area.height - 2, ..area };
    let (list, preview) = panes(middle);
    let selected = list_of(model, surface, list);
    header(model, surface, area.row(0));
    if let Mode::Answer(question, _) = &model.mode {
        // A question is read whole before it is answered: it may take the list's place.
        let pane = preview.unwrap_or(middle);
        let fits = ask(question, surface, pane);
        model.fits = fits || (preview.is_some() && ask(question, surface, middle));
    } else if let (Some(area), Some(session)) = (preview, selected) {
        beside(model, surface, area, &session);
    }
    footer(model, surface, area.row(area.height - 1));
}

fn panes(area: Area) -> (Area, Option<Area>) {
    if area.width >= WIDE {
        let list = Area { width: LIST_COLUMNS, ..area };
        (list, Some(Area { x: LIST_COLUMNS, width: area.width - LIST_COLUMNS, ..area }))
    } else if area.height >= TALL {
        let rows = area.height * 2 / 5;
        (Area { height: rows, ..area }, Some(Area { y: area.y + rows, height: area.height - rows, ..area }))
    } else {
        (area, None)
    }
}

fn header(model: &Model, surface: &mut Surface, area: Area) {
    let count = match (model.shown().len(), model.count()) {
        (_, 0) => String::new(),
        (shown, all) if shown == all => format!("{all} "),
        (shown, all) => format!("{shown} of {all} "),
    };
    let taken = surface.put(area, " holdfast ", Style::Bold);
    let rest = Area { x: area.x + taken, width: area.width - taken, ..area };
    let room = usize::from(rest.width).saturating_sub(count.width() + 4);
    match model.filter.is_empty() {
        true => surface.put(rest, &cut("· type to filter", room), Style::Dim),
        false => surface.put(rest, &format!("· {}_", cut(&visible(&model.filter), room)), Style::Plain),
    };
    let at = area.width.saturating_sub(count.width() as u16);
    surface.put(Area { x: area.x + at, width: area.width - at, ..area }, &count, Style::Dim);
}

fn list_of(model: &mut Model, surface: &mut Surface, area: Area) -> Option<SessionView> {
    let (at, page) = model.page(usize::from(area.height));
    if page.is_empty() {
        let text = match (model.is_loaded, model.count()) {
            (false, _) => " …",
            (true, 0) => " no sessions; Ctrl-N starts one",
            (true, _) => " no session fits",
        };
        surface.put(area, text, Style::Dim);
        return None;
    }
    for (row, session) in page.iter().enumerate() {
        let (word, waits) = model.word(session);
        let style = match (row == at, waits) {
            (true, _) => Style::Reversed,
            (false, true) => Style::Bold,
            (false, false) => Style::Plain,
        };
        let holder = session.turn.holder.as_ref().map_or(String::new(), |holder| holder.actor.handle.to_string());
        let mark = if waits { '●' } else { ' ' };
        let (name, word) = (pad(&visible(session.name.as_str()), NAME_COLUMNS), pad(word, STATE_COLUMNS));
        let text = format!("{mark} {name} {word} {}", visible(&holder));
        surface.put(area.row(row as u16), &pad(&text, usize::from(area.width)), style);
    }
    page.into_iter().nth(at)
}

fn beside(model: &Model, surface: &mut Surface, area: Area, session: &SessionView) {
    let age = span(now_ms().saturating_sub(session.created_ms));
    let title = format!("─ {} · {age} · {} ", session.size, command_line(&session.command));
    let title = cut(&title, usize::from(area.width).saturating_sub(1));
    let line = "─".repeat(usize::from(area.width).saturating_sub(title.width() + 1));
    surface.put(area, &format!("┌{title}{line}"), Style::Dim);
    let inner = Area { x: area.x + 1, y: area.y + 1, width: area.width - 1, height: area.height - 1 };
    for row in 0..inner.height {
        surface.put(Area { x: area.x, width: 1, ..inner.row(row) }, "│", Style::Dim);
    }
    if let Some(screen) = model.preview() {
        for (row, text) in rows(screen, inner.height).enumerate() {
            surface.put(inner.row(row as u16), &visible(text), Style::Plain);
        }
    }
}

/// The part of a screen that fits: its end, up to the last row that has something or the cursor.
fn rows(screen: &ScreenAnswer, height: u16) -> impl Iterator<Item = &String> {
    let used = screen.rows.iter().rposition(|row| !row.trim_end().is_empty()).map_or(0, |at| at + 1);
    let used = used.max(usize::from(screen.cursor.1) + 1).min(screen.rows.len());
    screen.rows[used.saturating_sub(usize::from(height))..used].iter()
}

/// A question whole; false: it does not fit.
fn ask(question: &QuestionView, surface: &mut Surface, area: Area) -> bool {
    let columns = usize::from(area.width.saturating_sub(2)).max(1);
    let who = format!("{} asks in {}:", question.by, visible(question.name.as_str()));
    let texts = question.text.lines().map(visible);
    let options = question.options.iter().enumerate().map(|(n, option)| format!(" {}: {}", n + 1, visible(option)));
    let mut lines: Vec<(String, Style)> = wrapped(&who, columns).into_iter().map(|line| (line, Style::Bold)).collect();
    let plain = texts.chain(options).flat_map(|text| wrapped(&text, columns));
    lines.extend(plain.map(|line| (line, Style::Plain)));
    surface.clear(area);
    for (row, (line, style)) in lines.iter().take(usize::from(area.height)).enumerate() {
        let row = area.row(row as u16);
        surface.put(Area { x: row.x + 1, width: row.width - 1, ..row }, line, *style);
    }
    lines.len() <= usize::from(area.height)
}

fn footer(model: &Model, surface: &mut Surface, area: Area) {
    let width = usize::from(area.width);
    let (label, text) = match &model.mode {
        Mode::Browse => {
            let (text, style) = match &model.message {
                Some(message) => (format!(" {}", visible(message)), Style::Bold),
                None => (help(width).to_owned(), Style::Dim),
            };
            surface.put(area, &cut(&text, width), style);
            return;
        }
        Mode::New(text) => (" new session (a name, or Enter): ".to_owned(), text.as_str()),
        Mode::End(id) => {
            let name = model.session(*id).map_or(String::new(), |session| visible(session.name.as_str()));
            (format!(" end {name} and everything it runs? y/N "), "")
        }
        Mode::Answer(_, text) => (" answer: ".to_owned(), text.as_str()),
    };
    let label = match &model.message {
        Some(message) => format!(" {} ·{label}", visible(message)),
        None => label,
    };
    let label = cut(&label, width.saturating_sub(4));
    let text = visible(text);
    let mut shown = text.as_str();
    while label.width() + shown.width() >= width && !shown.is_empty() {
        let mut rest = shown.chars();
        rest.next();
        shown = rest.as_str();
    }
    let taken = surface.put(area, &label, Style::Bold);
    let at = area.x
        + taken
        + surface.put(Area { x: area.x + taken, width: area.width - taken, ..area }, shown, Style::Plain);
    surface.cursor = Some((at.min(area.width - 1), area.y));
}

fn help(width: usize) -> &'static str {
    match width {
        80.. => " Enter attach · Ctrl-N new · Ctrl-X end · Ctrl-A answer · Tab what waits · Esc",
        50.. => " Enter attach · ^N new · ^X end · ^A answer · Esc",
        _ => " Enter ^N new ^X end ^A answer",
    }
}

fn pad(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let rest = " ".repeat(width.saturating_sub(text.width()));
    text + &rest
}
