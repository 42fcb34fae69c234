//! A session's questions on disk: the file `questions`, a line of JSON for each change of one; the last line of a question is
//! what holds.
//!
//! A line that cannot be read costs that change. The file is written anew when most of it is the past.

use super::{Question, Questions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const NAME: &str = "questions";
/// Length up to which nobody looks how much is the past: less than a screen history takes.
const FILE_BYTES_FREE: u64 = 256 * 1024;

/// The questions of a session, oldest first.
pub(crate) fn load(dir: &Path) -> Questions {
    let text = std::fs::read(dir.join(NAME)).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    Questions::resume(lines.filter_map(|line| serde_json::from_slice::<Question>(line).ok()).collect())
}

/// Writes what changed.
pub(crate) fn append(dir: &Path, changed: &[Question]) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(dir.join(NAME))?;
    // After a write that failed halfway the line begins anew.
    let mut lines = if file.metadata()?.len() > 0 { b"\n".to_vec() } else { Vec::new() };
    lines.extend(written(changed.iter())?);
    file.write_all(&lines)
}

/// Writes the file anew where most of it is the past.
pub(crate) fn tidy(dir: &Path, questions: &mut Questions) -> io::Result<()> {
    let length = std::fs::metadata(dir.join(NAME))?.len();
    if length <= questions.look_at.max(FILE_BYTES_FREE) {
        return Ok(());
    }
    let text = written(questions.iter())?;
    // At twice its length again: each byte is written anew once for each that was added.
    questions.look_at = 2 * text.len() as u64;
    if length > questions.look_at { crate::store::replace(dir, NAME, &text) } else { Ok(()) }
}

fn written<'a>(questions: impl Iterator<Item = &'a Question>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for question in questions {
        serde_json::to_writer(&mut text, question)?;
        text.push(b'\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::tests::question;
    use super::*;
    use holdfast_wire::questions::QuestionState;

    #[test]
    fn the_last_line_of_a_question_holds_and_a_torn_one_costs_itself_alone() {
        let dir = tempfile::tempdir().unwrap();
        append(dir.path(), &[question(1)]).unwrap();
        append(dir.path(), &[question(2)]).unwrap();
        let half = serde_json::to_vec(&question(3)).unwrap();
        let mut file = std::fs::OpenOptions::new().append(true).open(dir.path().join(NAME)).unwrap();
        file.write_all(&half[..40]).unwrap();
        append(dir.path(), &[Question { state: QuestionState::Withdrawn, ..question(1) }]).unwrap();
        let loaded = load(dir.path());
        let states: Vec<_> = loaded.iter().map(|one| (one.id, one.state)).collect();
        assert_eq!(states, [(question(1).id, QuestionState::Withdrawn), (question(2).id, QuestionState::Open)]);
    }

    #[test]
    fn the_file_is_bounded_whatever_is_asked() {
        let dir = tempfile::tempdir().unwrap();
        let mut questions = Questions::default();
        for number in 0..300 {
            let open = Question { text: "x".repeat(4096), ..question(number) };
            let closed = Question { state: QuestionState::Withdrawn, ..open.clone() };
            for one in [open, closed] {
                append(dir.path(), std::slice::from_ref(&one)).unwrap();
                questions.put(one);
                tidy(dir.path(), &mut questions).unwrap();
            }
        }
        let length = std::fs::metadata(dir.path().join(NAME)).unwrap().len();
        assert!(length < 3 * 64 * 4500, "{length}");
        assert!(load(dir.path()).iter().eq(questions.iter()));
    }

    #[test]
    fn where_there_is_no_file_there_are_no_questions() {
        assert_eq!(load(Path::new("/nowhere")).iter().count(), 0);
    }
}
