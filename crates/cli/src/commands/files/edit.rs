//! `holdfast files edit`: a file of a session in one's own editor, or one text replaced by another.

use super::get::whole;
use super::{session_of, told};
use crate::args::FilesEditArgs;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{print, print_json, visible};
use holdfast_wire::files::{FilesEditParams, FilesWriteParams};
use holdfast_wire::operations::op;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;

/// `holdfast files edit`.
pub fn edit(here: &Here, args: &FilesEditArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let place = &args.of.place;
    let session = session_of(&mut link, &place.session)?.to_string();
    if let Some((old, new)) = args.replace.clone().zip(args.with.clone()) {
        let params = FilesEditParams { session, path: place.path.clone(), old, new };
        // Once: where it was done and the answer got lost, the text is not there a second time.
        let (answer, _) = link.once::<op::FilesEdit>(&params, &[])?;
        match here.json {
            true => print_json(&answer)?,
            false => print(answer.diff.lines().map(|line| visible(line) + "\n").collect::<String>())?,
        }
        return Ok(0);
    }
    let (about, content) = whole(&mut link, &session, &place.path)?;
    let copy = Copy::of(&about.path, &content)?;
    let editor =
        ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".into());
    // As git does: the variable may have options in it.
    let status = Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg(&editor).arg(&copy.path).status();
    let status = status.map_err(|error| Failure::io(format!("cannot start {editor}"), error))?;
    if !status.success() {
        return Err(Failure::new("editor", format!("{} ended with an error; nothing was written", visible(&editor)))
            .hint("choose another one: EDITOR=nano holdfast files edit …"));
    }
    let edited = std::fs::read(&copy.path).map_err(|error| Failure::io("cannot read what was edited", error))?;
    if edited == content {
        print("not changed\n")?;
        return Ok(0);
    }
    let params =
        FilesWriteParams { session, path: place.path.clone(), etag: Some(about.etag), ..FilesWriteParams::default() };
    match link.once::<op::FilesWrite>(&params, &edited) {
        Ok((change, _)) => told(here, &change),
        Err(error) => {
            let failure = Failure::from(error);
            let kept = copy.keep();
            let advice = format!("{}\nyour text is in {}", failure.advice(), kept.display());
            Err(failure.hint(advice.trim_start().to_owned()))
        }
    }
}

/// A copy in a directory that only this user sees; gone with this value.
struct Copy {
    path: PathBuf,
    dir: PathBuf,
}

impl Copy {
    fn of(path: &str, content: &[u8]) -> Result<Copy, Failure> {
        let cannot = |error| Failure::io("cannot make a copy to edit", error);
        let mut token = [0; 8];
        getrandom::fill(&mut token).map_err(|error| Failure::new("internal", error.to_string()))?;
        let dir = std::env::temp_dir().join(format!("holdfast-edit-{}", holdfast_types::hex_text(&token)));
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&dir).map_err(cannot)?;
        let copy = Copy { path: dir.join(path.rsplit('/').next().unwrap_or("file")), dir };
        let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&copy.path);
        file.and_then(|mut file| file.write_all(content)).map_err(cannot)?;
        Ok(copy)
    }

    /// It stays.
    fn keep(mut self) -> PathBuf {
        self.dir = PathBuf::new();
        self.path.clone()
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if self.dir != PathBuf::new() {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}
