//! What the policy says of a program that is about to start.
//!
//! Judged are the real words, under every name the program goes by: the path that was given, its first word, and the file behind links.
//! What only a shell knows of its line is no matter here: what that line starts is judged when it starts.

use super::doer::Doer;
use super::talk::Exec;
use crate::gate::{Asked, Considered, Found, Place, Text, class_of, real_text};
use crate::session::Session;
use holdfast_gate::{
    Action, Facts, Lexical, Line, Places, Principal, Request, Resource, Risk, Seen, Surroundings, Verdict, look,
};
use holdfast_types::Hash;
use std::cell::Cell;

/// Words of more bytes are looked at on another thread: a long line of a shell takes its time.
const SHORT_BYTES: usize = 8 * 1024;
/// Bytes of a command as people read it.
const SHOWN_BYTES_MAX: usize = 4096;

/// Paths by their text alone, and whether that was enough: then nothing of the file system matters.
#[derive(Default)]
struct Apart {
    looked: Cell<bool>,
}

impl Places for Apart {
    fn resolve(&self, path: &str, follows: bool) -> String {
        self.looked.set(true);
        Lexical.resolve(path, follows)
    }

    fn expand(&self, pattern: &str) -> Option<Vec<String>> {
        self.looked.set(true);
        Lexical.expand(pattern)
    }
}

/// Where a session's programs start, as far as that stays the same.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    home: String,
    start: String,
    own: Vec<String>,
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

impl Exec {
    /// Its words as a command, under the name of the path that was given.
    fn command(&self) -> Vec<String> {
        let name = match file_name(&self.path) {
            // It was given by its descriptor.
            "" => file_name(&self.program),
            name => name,
        };
        std::iter::once(name.to_owned()).chain(self.words.iter().skip(1).cloned()).collect()
    }

    /// As people read it.
    pub(super) fn shown(&self) -> String {
        let mut text = self.command().join(" ");
        if text.len() > SHOWN_BYTES_MAX {
            let end = (0..=SHOWN_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(end);
            text.push('…');
        }
        text
    }

    fn is_short(&self) -> bool {
        self.words.iter().map(String::len).sum::<usize>() <= SHORT_BYTES
    }

    /// What it would do.
    fn look(&self, ground: &Ground, places: &dyn Places) -> Seen {
        if !self.is_whole {
            return Seen::hidden("a program whose words could not be read");
        }
        let around = Surroundings::new(&self.cwd, &ground.home, Some(&ground.start), ground.own.clone());
        let mut command = self.command();
        let mut seen = Seen { parsed: true, ..Seen::default() };
        let first =
            self.words.first().map(|word| file_name(word).trim_start_matches('-')).unwrap_or_default().to_owned();
        let mut names = vec![command[0].clone(), first, file_name(&self.program).to_owned()];
        names.dedup();
        for (at, name) in names.into_iter().filter(|name| !name.is_empty()).enumerate() {
            command[0] = name;
            let under = look(&Line::of_words(&command), &around, places);
            // Which file it is behind links is told by its path.
            if at == 0 {
                seen.names = under.names;
            }
            seen.risks.extend(under.risks);
            seen.writes.extend(under.writes);
            seen.deletes.extend(under.deletes);
        }
        // Words that a shell fills in are known when what it starts is judged.
        if seen.risks.remove(&Risk::DeletesUnknown)
            && !seen.risks.iter().any(|risk| risk.wider() == Some(Risk::Catastrophic))
        {
            seen.risks.remove(&Risk::Catastrophic);
        }
        seen
    }
}

/// A program, judged.
#[derive(Debug)]
pub(super) struct Judged {
    pub seen: Seen,
    pub verdict: Verdict,
}

impl Session {
    /// Where its programs start. The first time it is looked at.
    fn ground(&self) -> Ground {
        let known = self.seam.ground.get_or_init(|| {
            let place = self.place_of_acts();
            let start = place.start.clone().unwrap_or_default();
            Ground { home: real_text(&place.home), start: real_text(&start), own: self.gate.own_paths_real() }
        });
        known.clone()
    }

    /// What the policy says, where that can be told without a look at the file system; none: it cannot, and nothing is judged where
    /// the policy is off.
    pub(super) fn judge_at_once(&self, exec: &Exec, doer: &Doer) -> Option<Judged> {
        if !exec.is_short() {
            return None;
        }
        let apart = Apart::default();
        let seen = exec.look(&self.ground(), &apart);
        (!apart.looked.get()).then(|| self.judged(exec, doer, seen))
    }

    /// The same with a look at it, on another thread.
    pub(super) async fn judge_there(&self, exec: &Exec, doer: &Doer) -> Judged {
        let (ground, there) = (self.ground(), exec.clone());
        let looked = crate::gate::look_soon(move |places| there.look(&ground, places));
        let seen = looked.await.unwrap_or_else(|| Seen::hidden("the file system does not answer"));
        self.judged(exec, doer, seen)
    }

    fn judged(&self, exec: &Exec, doer: &Doer, seen: Seen) -> Judged {
        let is_human = self.is_human(&doer.actor);
        let class = class_of(&doer.actor, is_human);
        let verdict = self.gate.judge_exec(class, &seen, || self.request(exec, doer, class, seen.clone()));
        Judged { seen, verdict }
    }

    fn request(&self, exec: &Exec, doer: &Doer, class: &str, seen: Seen) -> Request {
        let place = self.place_of_acts();
        let (hour, weekday) = crate::gate::time_of_day();
        let (id, name) = place.session.clone().map(|(id, name)| (id.to_string(), name.to_string())).unwrap_or_default();
        let facts = Facts {
            line: exec.shown(),
            seen,
            cwd: exec.cwd.clone(),
            home: place.home,
            state: place.state.into(),
            humans: place.humans,
            hour,
            weekday,
            intent: None,
            signal: None,
            program: Some(exec.program.clone()),
            contract: None,
            record: self.gate.records.borrow().standing(doer.actor.id, exec.command().first().map(String::as_str)),
            ..Facts::default()
        };
        let record = self.gate.records.borrow().standing(doer.actor.id, None);
        let principal = Principal { handle: doer.actor.handle.to_string(), class: class.to_owned(), record };
        Request { principal, action: Action::Exec, resource: Resource { id, name }, facts }
    }

    /// Everything that an approval of it is about.
    pub(super) async fn considered(&self, exec: &Exec, doer: &Doer, judged: Judged) -> Considered {
        let Found { hash, shapers, .. } = self.found_of(exec, doer).await;
        let asked = self.asked_for(exec, doer, Text::Line(exec.shown()));
        let class = class_of(&doer.actor, asked.is_human);
        let request = self.request(exec, doer, class, judged.seen);
        Considered { asked, found: Found { request, hash, shapers }, verdict: judged.verdict }
    }

    /// What the program is and what it is about to touch, as that is now.
    pub(super) async fn hash_of(&self, exec: &Exec, doer: &Doer) -> Hash {
        self.found_of(exec, doer).await.hash
    }

    async fn found_of(&self, exec: &Exec, doer: &Doer) -> Found {
        let mut words = exec.command();
        // By its path, so that who wrote it is looked for.
        words[0].clone_from(&exec.program);
        words.push(exec.program.clone());
        self.gate.facts(&self.asked_for(exec, doer, Text::Words(words))).await
    }

    fn asked_for(&self, exec: &Exec, doer: &Doer, text: Text) -> Asked {
        Asked {
            by: doer.actor.clone(),
            is_human: self.is_human(&doer.actor),
            action: Action::Exec,
            text,
            place: Place { cwd: exec.cwd.clone(), past: Some(self.files_past()), ..self.place_of_acts() },
            signal: None,
            intent: None,
            contract: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exec(path: &str, program: &str, words: &[&str]) -> Exec {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Exec {
            id: 1,
            pid: 1,
            path: path.into(),
            program: program.into(),
            words,
            cwd: "/srv/work".into(),
            is_whole: true,
        }
    }

    fn risks(exec: &Exec) -> Vec<&'static str> {
        let ground = Ground { home: "/home/ann".into(), start: "/srv/work".into(), own: Vec::new() };
        exec.look(&ground, &Lexical).risks.iter().map(|risk| risk.word()).collect()
    }

    #[test]
    fn a_program_is_judged_under_every_name_it_goes_by() {
        let plain = risks(&exec("/usr/bin/rm", "/usr/bin/rm", &["rm", "-rf", "/home/ann"]));
        assert!(plain.contains(&"deletes-home"), "{plain:?}");
        for (path, program, first) in [
            ("/usr/bin/rm", "/usr/bin/rm", "ls"),
            ("./ls", "/usr/bin/rm", "ls"),
            ("/bin/busybox", "/bin/busybox", "rm"),
        ] {
            assert_eq!(risks(&exec(path, program, &[first, "-rf", "/home/ann"])), plain, "{path} {first}");
        }
        assert!(risks(&exec("/usr/bin/ls", "/usr/bin/ls", &["ls", "/home/ann"])).is_empty());
    }

    #[test]
    fn what_a_shell_fills_in_later_is_judged_later() {
        assert!(
            risks(&exec("/bin/sh", "/usr/bin/dash", &["sh", "-c", "rm -rf \"$OUT\""]))
                .iter()
                .all(|risk| *risk != "catastrophic")
        );
        assert!(risks(&exec("/bin/sh", "/usr/bin/dash", &["sh", "-c", "rm -rf ~"])).contains(&"catastrophic"));
    }

    #[test]
    fn a_program_that_touches_no_file_needs_no_look_at_them() {
        let ground = Ground { home: "/home/ann".into(), start: "/srv/work".into(), own: Vec::new() };
        let looks = |exec: &Exec| {
            let apart = Apart::default();
            exec.look(&ground, &apart);
            apart.looked.get()
        };
        assert!(!looks(&exec("/usr/bin/true", "/usr/bin/true", &["true"])));
        assert!(looks(&exec("/usr/bin/rm", "/usr/bin/rm", &["rm", "x"])));
    }

    #[test]
    fn what_could_not_be_read_is_not_clear() {
        let ground = Ground { home: "/home/ann".into(), start: "/srv/work".into(), own: Vec::new() };
        let cut = Exec { is_whole: false, ..exec("/bin/true", "/bin/true", &[]) };
        assert!(!cut.look(&ground, &Lexical).is_clear());
    }
}
