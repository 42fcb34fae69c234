//! Whether a prompt lists its answers.

/// An answer longer than this is prose in brackets: `fingerprint` has 11.
const ANSWER_CHARS_MAX: usize = 16;

/// Whether a text ends with a list of answers in brackets, one of which is a yes or a no: `[Y/n]`, `(yes/no)`,
/// `[y,n,?]?`.
pub(super) fn ends_with_answers(text: &str) -> bool {
    let text = text.trim_end_matches(|c: char| c.is_whitespace() || "?:>".contains(c));
    let Some(inner) = last_bracket(text) else { return false };
    let answers: Vec<&str> = inner.split(['/', ',', '|']).map(|answer| answer.trim_matches(['[', ']', ' '])).collect();
    let is_answer = |answer: &&str| {
        let length = answer.chars().count();
        (1..=ANSWER_CHARS_MAX).contains(&length) && answer.chars().all(|c| c.is_alphanumeric() || "?-".contains(c))
    };
    let is_yes_or_no = |answer: &&str| ["y", "n", "yes", "no"].iter().any(|word| answer.eq_ignore_ascii_case(word));
    answers.len() >= 2 && answers.iter().all(is_answer) && answers.iter().any(is_yes_or_no)
}

/// What is inside the bracket that closes at the text's end.
fn last_bracket(text: &str) -> Option<&str> {
    if !text.ends_with([']', ')']) {
        return None;
    }
    let mut depth = 0;
    for (at, c) in text.char_indices().rev() {
        match c {
            ']' | ')' => depth += 1,
            '[' | '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text.get(at + 1..text.len() - 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_answers_are_known_by_a_yes_or_a_no() {
        for text in [
            "Do you want to continue? [Y/n] ",
            "Overwrite (y/N)?",
            "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
            "Stage this hunk [y,n,q,a,d,e,?]? ",
            "Proceed [y|n]: ",
        ] {
            assert!(ends_with_answers(text), "{text}");
        }
        for text in [
            "",
            "[",
            "]",
            "()",
            "Name: ",
            "Directory (usr/local): ",
            "user@host [~/src]",
            "[y]",
            "(y/n) later",
            "[a [y/n",
        ] {
            assert!(!ends_with_answers(text), "{text}");
        }
    }
}
