//! What each CSI sequence does.

use super::{Modes, Vt};
use crate::parse::{Csi, controls_within};

impl Vt {
    /// Executes a complete sequence that starts with `ESC [`.
    pub(crate) fn csi_sequence(&mut self, sequence: &[u8]) {
        // A control inside a sequence is executed first, as if it stood before it.
        if sequence[2..].iter().any(|b| *b < 0x20) {
            for control in controls_within(sequence) {
                self.control(control);
            }
        }
        // The introducer itself may be torn apart by controls; they were executed above.
        let Some(bracket) = memchr::memchr(b'[', sequence) else { return };
        if let Some(csi) = Csi::parse(&sequence[bracket + 1..]) {
            self.csi(&csi);
        }
    }

    pub(crate) fn csi(&mut self, csi: &Csi) {
        let params = &csi.params;
        match (csi.prefix, csi.intermediate, csi.last) {
            (0, 0, _) => self.csi_plain(csi),
            (b'?', 0, b'J') => self.erase_display(params.or(0, 0)),
            (b'?', 0, b'K') => self.erase_line(params.or(0, 0)),
            (b'?', 0, b'h') => self.set_modes(true, params, true),
            (b'?', 0, b'l') => self.set_modes(true, params, false),
            (b'?', 0, b'u') => self.report_keyboard(),
            (b'>', 0, b'u') => self.keyboard.push(params.or(0, 0)),
            (b'<', 0, b'u') => self.keyboard.pop(params.or(0, 1)),
            (b'=', 0, b'u') => self.keyboard.set(params.or(0, 0), params.or(1, 1)),
            (b'>', 0, b'm') if params.or(0, 0) == 4 => self.keyboard.modify_other = params.or(1, 0).min(2) as u8,
            (b'>', 0, b'm') if params.all().is_empty() => self.keyboard.modify_other = 0,
            (0, b'!', b'p') => self.soft_reset(),
            (0, b' ', b'q') => self.set_cursor_style(csi),
            (0, b'\'', b'}') => self.insert_columns(params.or(0, 1).into()),
            (0, b'\'', b'~') => self.delete_columns(params.or(0, 1).into()),
            _ => self.query(csi),
        }
    }

    fn csi_plain(&mut self, csi: &Csi) {
        let params = &csi.params;
        let count = usize::from(params.or(0, 1));
        match csi.last {
            b'm' => self.sgr(params),
            b'H' | b'f' => self.goto(usize::from(params.or(1, 1)) - 1, count - 1),
            b'A' => self.move_up(count),
            b'B' => self.move_down(count),
            b'e' => {
                let (column, row, _) = self.place();
                let top = if self.modes.has(Modes::ORIGIN) { self.region.0 } else { 0 };
                self.goto(column, (row + count).saturating_sub(top));
            }
            b'C' | b'a' => self.move_right(count),
            b'D' => self.move_left(count),
            b'E' => {
                self.move_down(count);
                self.set_column(0);
            }
            b'F' => {
                self.move_up(count);
                self.set_column(0);
            }
            b'G' | b'`' => {
                self.set_column(count - 1);
                self.confine();
            }
            b'd' => {
                let (column, _, _) = self.place();
                self.goto(column, count - 1);
            }
            b'J' => self.erase_display(params.or(0, 0)),
            b'K' => self.erase_line(params.or(0, 0)),
            b'L' => self.insert_lines(count),
            b'M' => self.delete_lines(count),
            b'@' => self.insert_chars(count),
            b'P' => self.delete_chars(count),
            b'X' => self.erase_chars(count),
            b'S' => self.scroll_up(count),
            // With five numbers it asks for highlight tracking.
            b'T' if params.all().len() < 5 => self.scroll_down_plain(count),
            b'I' => self.tab(count),
            b'Z' => self.tab_back(count),
            b'b' => self.repeat(count),
            b'g' => self.clear_tab(params.or(0, 0)),
            b'h' => self.set_modes(false, params, true),
            b'l' => self.set_modes(false, params, false),
            b'r' => self.set_region(params.or(0, 1), params.or(1, 0)),
            b's' => self.save_cursor(),
            b'u' => self.restore_cursor(),
            b't' => self.window(csi),
            _ => self.query(csi),
        }
    }

    fn set_cursor_style(&mut self, csi: &Csi) {
        let style = if csi.params.all().is_empty() { 1 } else { csi.params.or(0, 0) };
        if style <= 6 {
            self.cursor_style = style as u8;
        }
    }

    /// DECIC and DECDC: columns of the whole region move.
    fn insert_columns(&mut self, count: usize) {
        let (column, row, _) = self.place();
        if (self.region.0..=self.region.1).contains(&row) {
            for row in self.region.0..=self.region.1 {
                self.insert_cells(row, column, count);
                self.unwrap_row(row);
            }
        }
    }

    fn delete_columns(&mut self, count: usize) {
        let before = self.grid.cursor.point;
        let (_, row, pending) = self.place();
        if (self.region.0..=self.region.1).contains(&row) {
            for row in self.region.0..=self.region.1 {
                self.grid.cursor.point.line.0 = row as i32;
                self.delete_chars(count);
                self.unwrap_row(row);
            }
        }
        self.grid.cursor.point = before;
        self.grid.cursor.input_needs_wrap = pending;
    }
}
