//! A session's questions on disk: the file `questions`, a [line](holdfast_store::lines) for each change of one; the last line of a
//! question is what holds.
//!
//! A line that cannot be read costs that change. The file is written anew when most of it is the past.

use super::{Question, Questions};
use holdfast_store::{QUESTIONS, lines};
use std::io;
use std::path::Path;

const NAME: &str = "questions";
/// Length up to which nobody looks how much is the past: less than a screen history takes.
const FILE_BYTES_FREE: u64 = 256 * 1024;
/// A longer file is none of ours: a hundred times what all questions that are remembered need.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The questions of a session, oldest first.
pub(crate) fn load(dir: &Path) -> Questions {
    let path = dir.join(NAME);
    Questions::resume(lines::load(&QUESTIONS, &path, FILE_BYTES_MAX).unwrap_or_else(|why| {
        tracing::warn!("{}: {why}", path.display());
        Vec::new()
    }))
}

/// Writes what changed.
pub(crate) fn append(dir: &Path, changed: &[Question]) -> io::Result<()> {
    lines::append(&QUESTIONS, &dir.join(NAME), changed).map(drop)
}

/// Writes the file anew where most of it is the past.
pub(crate) fn tidy(dir: &Path, questions: &mut Questions) -> io::Result<()> {
    let length = std::fs::metadata(dir.join(NAME))?.len();
    if length <= questions.look_at.max(FILE_BYTES_FREE) {
        return Ok(());
    }
    let text = lines::encode(&QUESTIONS, questions.iter())?;
    // At twice its length again: each byte is written anew once for each that was added.
    questions.look_at = 2 * text.len() as u64;
    if length > questions.look_at {
        lines::rewrite(&QUESTIONS, dir, NAME, questions.iter())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::question;
    use super::*;
    use holdfast_wire::questions::QuestionState;
    use std::io::Write;

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
    fn the_questions_of_the_version_before_are_read() {
        let old =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/v1/sessions/ses_6jt1jh3shw3k6p9hrh3z5cdncr");
        let texts: Vec<_> = load(&old).iter().map(|one| (one.text.clone(), one.is_open())).collect();
        assert_eq!(texts, [("ready to go?".to_owned(), true)]);
    }

    #[test]
    fn where_there_is_no_file_there_are_no_questions() {
        assert_eq!(load(Path::new("/nowhere")).iter().count(), 0);
    }
}
