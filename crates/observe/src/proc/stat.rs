//! One line of `/proc/<pid>/stat`.

/// Fields of the line that are kept, from the third on. Later kernels may append more.
const FIELDS: usize = 50;

/// A parsed line, which borrows from the text. Fields go by their numbers in proc_pid_stat(5).
pub(crate) struct Stat<'a> {
    pub(crate) pid: u32,
    /// Up to 15 bytes of anything.
    pub(crate) name: &'a [u8],
    fields: [&'a str; FIELDS],
}

impl<'a> Stat<'a> {
    /// `None` for what is no such line. The name may hold blanks and brackets too, so it ends at the last bracket.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Stat<'a>> {
        let open = line.iter().position(|&byte| byte == b'(')?;
        let close = line.iter().rposition(|&byte| byte == b')')?;
        let name = line.get(open + 1..close)?;
        let pid = std::str::from_utf8(&line[..open]).ok()?.trim().parse().ok()?;
        let mut fields = [""; FIELDS];
        let words = std::str::from_utf8(&line[close + 1..]).ok()?.split_ascii_whitespace();
        fields.iter_mut().zip(words).for_each(|(field, word)| *field = word);
        Some(Stat { pid, name, fields })
    }

    /// A field's text, if the line has it.
    pub(crate) fn text(&self, number: usize) -> Option<&'a str> {
        self.fields.get(number.checked_sub(3)?).copied().filter(|text| !text.is_empty())
    }

    /// A field as the number it is.
    pub(crate) fn number<T: std::str::FromStr>(&self, number: usize) -> Option<T> {
        self.text(number)?.parse().ok()
    }

    /// `R`, `S`, `D`, `T`, `t`, `Z` …, of the first thread.
    pub(crate) fn state(&self) -> Option<char> {
        self.text(3)?.chars().next()
    }
}
