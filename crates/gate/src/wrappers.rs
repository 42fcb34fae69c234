//! Commands that run other commands: each is taken off, so that what is judged is what runs.

use crate::line::{Command, INNER_MAX, Line, Reads};
use crate::word::{Head, Word};

/// A program that runs the rest of its words.
struct Wrapper {
    name: &'static str,
    /// Options that take the next word as their value.
    values: &'static [&'static str],
    /// Words of its own before the command.
    own: usize,
    /// `NAME=VALUE` may stand before the command.
    assigns: bool,
}

/// Variables whose value a shell or git runs as a line.
const RUN_AS_LINES: [&str; 8] = [
    "PROMPT_COMMAND",
    "GIT_SSH_COMMAND",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "EDITOR",
    "VISUAL",
    "PAGER",
];

/// And settings of git, in small letters.
const GIT_RUNS: [&str; 6] =
    ["core.pager", "core.editor", "core.sshcommand", "core.fsmonitor", "sequence.editor", "diff.external"];

/// Options of `ssh` that take the next word as their value.
const SSH_VALUES: [&str; 20] = [
    "-B", "-b", "-c", "-D", "-E", "-e", "-F", "-I", "-i", "-J", "-L", "-l", "-m", "-O", "-o", "-p", "-P", "-Q", "-R",
    "-W",
];

const fn wrapper(name: &'static str, values: &'static [&'static str]) -> Wrapper {
    Wrapper { name, values, own: 0, assigns: false }
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        name: "sudo",
        values: &[
            "-u", "-g", "-h", "-p", "-C", "-T", "-r", "-t", "-U", "-D", "-R", "--user", "--group", "--host",
            "--prompt", "--chdir", "--chroot", "--role", "--type",
        ],
        own: 0,
        assigns: true,
    },
    Wrapper { name: "doas", values: &["-u", "-C"], own: 0, assigns: true },
    wrapper("pkexec", &["--user"]),
    wrapper("run0", &["-u", "-g", "-D", "--user", "--group", "--chdir"]),
    Wrapper { name: "env", values: &["-u", "-C", "--unset", "--chdir"], own: 0, assigns: true },
    wrapper("nice", &["-n", "--adjustment"]),
    wrapper("ionice", &["-c", "-n", "-t", "--class", "--classdata"]),
    wrapper("nohup", &[]),
    wrapper("setsid", &[]),
    wrapper("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"]),
    Wrapper { name: "timeout", values: &["-s", "-k", "--signal", "--kill-after"], own: 1, assigns: false },
    wrapper("time", &["-o", "-f", "--output", "--format"]),
    wrapper("command", &[]),
    wrapper("builtin", &[]),
    wrapper("exec", &["-a"]),
    wrapper(
        "xargs",
        &[
            "-n",
            "-P",
            "-I",
            "-L",
            "-s",
            "-d",
            "-E",
            "-a",
            "--max-args",
            "--max-procs",
            "--replace",
            "--delimiter",
            "--arg-file",
        ],
    ),
    Wrapper { name: "chroot", values: &[], own: 1, assigns: false },
    Wrapper { name: "taskset", values: &[], own: 1, assigns: false },
    Wrapper { name: "chrt", values: &["-T", "-P", "-D"], own: 1, assigns: false },
    Wrapper { name: "flock", values: &["-w", "-E", "--timeout", "--conflict-exit-code"], own: 1, assigns: false },
    wrapper("strace", &["-o", "-e", "-p", "-s", "-u", "-E", "-I", "-O", "-S", "-a", "-b", "-P", "-X"]),
    wrapper("ltrace", &["-o", "-e", "-p", "-s", "-u", "-n", "-l"]),
    wrapper("unshare", &["-S", "-G", "-R", "-w", "--setuid", "--setgid", "--root", "--wd"]),
    wrapper("nsenter", &["-t", "-S", "-G", "--target", "--setuid", "--setgid"]),
    wrapper("setpriv", &["--reuid", "--regid", "--groups", "--inh-caps", "--ambient-caps", "--bounding-set"]),
    wrapper("systemd-run", &["-u", "-p", "-E", "--unit", "--property", "--setenv", "--slice", "--uid", "--gid"]),
    wrapper("systemd-inhibit", &["--what", "--who", "--why", "--mode"]),
    wrapper("dbus-run-session", &[]),
    wrapper("busybox", &[]),
    wrapper("toybox", &[]),
    wrapper("catchsegv", &[]),
    wrapper("fakeroot", &["-l", "-s", "-i", "-b"]),
    wrapper("firejail", &[]),
    wrapper("proxychains", &["-f"]),
    wrapper("proxychains4", &["-f"]),
    wrapper("torsocks", &[]),
    wrapper("rlwrap", &[]),
    wrapper("unbuffer", &[]),
    wrapper("noglob", &[]),
    wrapper("nocorrect", &[]),
    wrapper("and", &[]),
    wrapper("or", &[]),
    wrapper("not", &[]),
    wrapper("begin", &[]),
];

/// Those that give other rights.
pub(crate) const ESCALATES: [&str; 8] = ["sudo", "doas", "pkexec", "run0", "su", "nsenter", "setpriv", "runuser"];

/// Those that start a shell where no command is given.
const SHELL_ALONE: [&str; 9] = ["sudo", "doas", "run0", "su", "runuser", "nsenter", "chroot", "unshare", "script"];

pub(crate) const SHELLS: [&str; 12] =
    ["sh", "bash", "zsh", "dash", "ksh", "ksh93", "mksh", "fish", "ash", "rbash", "yash", "oksh"];

/// The user's shell, as a line names it.
const USERS_SHELL: [&str; 4] = ["$SHELL", "\"$SHELL\"", "\"${SHELL:-sh}\"", "${SHELL:-sh}"];

/// What a program reads as one line: `su -c LINE`, `watch LINE`.
const LINE_OPTION: [(&str, &[&str]); 4] = [
    ("su", &["-c", "--command"]),
    ("runuser", &["-c", "--command"]),
    ("script", &["-c", "--command"]),
    ("flock", &["-c"]),
];

impl Line {
    /// Adds a command of these words, without what it is wrapped in. `fed` is what a here-document gives it to read.
    pub(crate) fn add(&mut self, command: Command, words: Vec<Word>, fed: Option<Option<String>>, depth: u32) {
        let reads = Reads { piped: command.piped || fed.is_some(), from: command.fed_by.clone() };
        let outer = std::mem::replace(&mut self.reads, reads);
        self.add_unwrapped(command, words, fed, depth);
        self.reads = outer;
    }

    fn add_unwrapped(&mut self, mut command: Command, words: Vec<Word>, fed: Option<Option<String>>, depth: u32) {
        // What an interactive shell takes from its history.
        if words.iter().any(|word| is_history(&word.raw)) {
            self.opaque("a word of the shell's history");
        }
        let mut words: std::collections::VecDeque<Word> = words.into();
        loop {
            let Some(first) = words.pop_front() else {
                // `sudo` alone, or `env X=1`.
                command.name = command.via.last().cloned();
                if self.reads.piped && command.name.as_deref().is_some_and(|name| SHELL_ALONE.contains(&name)) {
                    self.opaque("a shell that reads a pipe");
                }
                self.commands.push(command);
                return;
            };
            // The user's own shell, unless this line says that it is something else.
            let is_shell = USERS_SHELL.contains(&first.raw.as_str()) && !self.sets.contains("SHELL");
            let Some(text) = first.text().or_else(|| is_shell.then(|| "sh".to_owned())) else {
                self.opaque("a variable or pattern as command");
                command.words = words.into();
                self.commands.push(command);
                return;
            };
            let name = text.rsplit('/').next().unwrap_or_default().to_owned();
            let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) else {
                command.path = text.contains('/').then_some(text);
                command.name = Some(name);
                command.words = words.into();
                break;
            };
            command.via.push(name.clone());
            if let Some(stopped) = self.unwrap(wrapper, &mut words, &mut command, depth) {
                command.name = Some(name);
                command.words = stopped;
                break;
            }
        }
        self.finish(command, fed, depth);
    }

    /// Takes a wrapper's own words off. Gives the words that are left to it where it runs nothing of them.
    fn unwrap(
        &mut self,
        wrapper: &Wrapper,
        words: &mut std::collections::VecDeque<Word>,
        command: &mut Command,
        depth: u32,
    ) -> Option<Vec<Word>> {
        let whole: Vec<Word> = words.iter().cloned().collect();
        let lines = LINE_OPTION.iter().find(|(name, _)| *name == wrapper.name).map_or(&[][..], |(_, options)| *options);
        let mut own = wrapper.own;
        while let Some(word) = words.front() {
            let text = word.beginning();
            if word.text().as_deref() == Some("--") {
                words.pop_front();
                continue;
            }
            if wrapper.name == "command" && (text == "-v" || text == "-V") {
                return Some(whole);
            }
            if wrapper.name == "xargs" {
                command.stands_in = stands_in(&text, words.get(1)).or(command.stands_in.take());
            }
            if wrapper.name == "env" && (text.starts_with("-S") || text.starts_with("--split-string")) {
                self.opaque("env -S");
            }
            let is_assignment = wrapper.assigns
                && text.split_once('=').is_some_and(|(name, _)| {
                    !name.is_empty() && !name.starts_with('-') && name.chars().all(|c| c.is_alphanumeric() || c == '_')
                });
            if lines.contains(&text.as_str()) {
                words.pop_front();
                self.line_of(words.pop_front().as_ref(), &mut command.dirs.clone(), depth);
                return Some(whole);
            }
            if wrapper.values.contains(&text.as_str()) {
                let takes_dir = matches!(text.as_str(), "-D" | "--chdir" | "-C") && wrapper.name != "strace";
                words.pop_front();
                let value = words.pop_front();
                if takes_dir {
                    command.dirs = vec![value.as_ref().and_then(Word::text)];
                }
            } else if is_assignment {
                self.sets.insert(text.split('=').next().unwrap_or_default().to_owned());
                if let Some(word) = words.pop_front() {
                    self.assigned(&word, &command.dirs, depth);
                }
            } else if word.is_option() {
                words.pop_front();
            } else if own > 0 {
                own -= 1;
                words.pop_front();
            } else {
                break;
            }
        }
        if wrapper.name == "chroot" {
            // Its paths are another tree's.
            command.dirs = vec![None];
        }
        None
    }

    /// A word that is read as a line.
    fn line_of(&mut self, word: Option<&Word>, dirs: &mut Vec<Option<String>>, depth: u32) {
        match word.and_then(Word::text) {
            Some(text) if depth < INNER_MAX => self.read_inner(&text, dirs, depth + 1),
            Some(_) | None => self.opaque("a line that is put together"),
        }
    }

    /// A variable whose value is run as a line, if it is one. Of those that are put together only the shell's own counts: the others
    /// are set from each other all the time.
    pub(crate) fn assigned(&mut self, word: &Word, dirs: &[Option<String>], depth: u32) {
        let text = word.beginning();
        let name = text.split('=').next().unwrap_or_default().trim_end_matches('+');
        if !RUN_AS_LINES.contains(&name) || !text.contains('=') {
            return;
        }
        match word.text().and_then(|text| Some(text.split_once('=')?.1.to_owned())) {
            Some(line) => self.line_of(Some(&Word::plain(&line)), &mut dirs.to_vec(), depth),
            None if name == "PROMPT_COMMAND" => self.opaque("a line that is put together"),
            None => {}
        }
    }

    /// What `ssh` has another machine run. Where its words are put together, it is the network and no more.
    fn far(&mut self, command: &Command, depth: u32) {
        let mut words = command.words.iter();
        while let Some(word) = words.next() {
            let text = word.beginning();
            if SSH_VALUES.contains(&text.as_str()) {
                words.next();
            } else if !word.is_option() {
                // The machine's name.
                break;
            }
        }
        // `~` is this machine's home, whose name is most often the other's too.
        let text_of = |word: &Word| word.text().or_else(|| (word.head == Head::Home).then(|| word.raw.clone()));
        let texts: Option<Vec<String>> = words.map(text_of).collect();
        let Some(text) = texts.map(|texts| texts.join(" ")).filter(|text| !text.is_empty()) else { return };
        let mut line = Line { parsed: true, ..Line::default() };
        line.read_inner(&text, &mut vec![Some(String::new())], depth + 1);
        self.far.push(line);
    }

    /// What a command runs besides itself.
    fn finish(&mut self, command: Command, fed: Option<Option<String>>, depth: u32) {
        let mut dirs = command.dirs.clone();
        let name = command.name().to_owned();
        let first = command.words.first().cloned();
        match name.as_str() {
            "eval" => {
                let texts: Option<Vec<String>> = command.words.iter().map(Word::text).collect();
                match texts {
                    Some(texts) if depth < INNER_MAX => self.read_inner(&texts.join(" "), &mut dirs, depth + 1),
                    Some(_) | None => self.opaque("eval"),
                }
            }
            "source" | "." if first.as_ref().is_none_or(|word| word.text().is_none() && is_shells(word)) => {
                self.opaque("source");
            }
            "alias" => {
                let lines = command.words.iter().filter_map(|word| Some(word.text()?.split_once('=')?.1.to_owned()));
                let lines: Vec<String> = lines.collect();
                lines.iter().for_each(|line| self.line_of(Some(&Word::plain(line)), &mut dirs.clone(), depth));
            }
            "git" => {
                let lines = git_lines(&command);
                lines.iter().for_each(|line| self.line_of(Some(&Word::plain(line)), &mut dirs.clone(), depth));
            }
            "ssh" => self.far(&command, depth),
            "export" | "declare" | "typeset" | "readonly" | "local" => {
                command.operands().for_each(|word| self.assigned(word, &dirs, depth));
                let names = command.operands().map(Word::beginning);
                self.sets.extend(names.map(|text| text.split('=').next().unwrap_or_default().to_owned()));
            }
            "trap" if command.words.len() > 1 => {
                self.line_of(first.as_ref().filter(|w| !w.is_option()), &mut dirs, depth)
            }
            "su" | "runuser" | "script" => {
                let at = command.words.iter().position(|word| {
                    let text = word.beginning();
                    LINE_OPTION.iter().any(|(of, options)| *of == name && options.contains(&text.as_str()))
                });
                match at {
                    Some(at) => self.line_of(command.words.get(at + 1), &mut dirs, depth),
                    None if self.reads.piped => self.opaque("a shell that reads a pipe"),
                    None => {}
                }
            }
            "watch" => {
                // Its own options, and the value of `-n`, come first.
                let is_number = |word: &Word| word.text().is_some_and(|text| text.parse::<f64>().is_ok());
                let rest = command.words.iter().skip_while(|word| word.is_option() || is_number(word));
                let texts: Option<Vec<String>> = rest.map(Word::text).collect();
                if let Some(texts) = texts.filter(|_| depth < INNER_MAX) {
                    self.read_inner(&texts.join(" "), &mut dirs, depth + 1);
                }
            }
            "parallel" => self.opaque("parallel"),
            "at" | "batch" if self.reads.piped => self.opaque("a shell that reads a pipe"),
            "find" | "fd" => crate::find::inner(self, &command, depth),
            shell if SHELLS.contains(&shell) => self.shell(&command, fed, &mut dirs, depth),
            _ => {}
        }
        self.commands.push(command);
    }

    fn shell(&mut self, command: &Command, fed: Option<Option<String>>, dirs: &mut Vec<Option<String>>, depth: u32) {
        let mut words = command.words.iter();
        while let Some(word) = words.next() {
            let text = word.beginning();
            match text.as_str() {
                "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => {
                    words.next();
                }
                "--command" => return self.line_of(words.next(), dirs, depth),
                "-s" | "-" => break,
                option if option.starts_with('-') && !option.starts_with("--") && option.contains('c') => {
                    // Its value is the first word that is no option.
                    let line = words.find(|word| !word.is_option());
                    let name = words.next().and_then(Word::text);
                    let given: Option<Vec<String>> = words.map(Word::text).collect();
                    let with =
                        |line: &Word| Some(Word::plain(&with_given(&line.text()?, name.as_ref(), given.as_deref())));
                    let line = line.and_then(with).or(line.cloned());
                    // A name that nobody knows yet is put into it.
                    let name = command.stands_in.as_deref().filter(|name| !name.is_empty());
                    let named = |line: &Word| Some(Word::plain(&line.text()?.replace(name?, "$1")));
                    return self.line_of(line.as_ref().and_then(named).or(line).as_ref(), dirs, depth);
                }
                option if option.starts_with(['-', '+']) && option.len() > 1 => {}
                // A script of its own.
                _ if word.text().is_some() => return,
                _ => return self.opaque("a shell that runs a file nobody can name"),
            }
        }
        match fed {
            Some(Some(text)) if depth < INNER_MAX => self.read_inner(&text, dirs, depth + 1),
            Some(_) => self.opaque("a shell that reads what is put together"),
            None if command.piped => self.opaque("a shell that reads a pipe"),
            None => {}
        }
    }
}

/// What `xargs -I NAME`, `-i` and `--replace` put names in place of.
fn stands_in(option: &str, next: Option<&Word>) -> Option<String> {
    match option {
        "-I" => next.and_then(Word::text),
        "-i" | "--replace" => Some("{}".into()),
        _ => option.strip_prefix("-I").or_else(|| option.strip_prefix("--replace=")).map(str::to_owned),
    }
}

/// Lines among git's words: `-c core.pager=LINE`, `config alias.x !LINE`.
fn git_lines(command: &Command) -> Vec<String> {
    let texts: Vec<String> = command.words.iter().map(|word| word.text().unwrap_or_default()).collect();
    let runs = |key: &str, value: &str| {
        let is_line = GIT_RUNS.contains(&key.to_ascii_lowercase().as_str()) || value.starts_with('!');
        is_line.then(|| value.trim_start_matches('!').to_owned())
    };
    let is_config = texts.iter().any(|text| text == "config");
    let pairs = texts.windows(2).filter_map(|pair| match pair[1].split_once('=') {
        Some((key, value)) if pair[0] == "-c" => runs(key, value),
        _ if is_config => runs(&pair[0], &pair[1]),
        _ => None,
    });
    pairs.collect()
}

/// The line of a `sh -c LINE NAME WORD…` with what stands for its words: `"$0"` is the name, `"$@"` the others.
fn with_given(line: &str, name: Option<&String>, given: Option<&[String]>) -> String {
    let all = given.filter(|given| !given.is_empty()).map(quoted);
    let parts =
        line.split("\"$0\"").map(|part| all.as_ref().map_or(part.to_owned(), |all| part.replace("\"$@\"", all)));
    let name = name.map_or("\"$0\"".to_owned(), |name| quoted(std::slice::from_ref(name)));
    parts.collect::<Vec<_>>().join(&name)
}

/// Words as a shell reads them back.
fn quoted(words: &[String]) -> String {
    words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect::<Vec<_>>().join(" ")
}

/// `!!`, `!rm`, `!-2`, `!$`.
fn is_history(raw: &str) -> bool {
    let mut chars = raw.chars();
    chars.next() == Some('!') && chars.next().is_some_and(|c| c.is_alphanumeric() || "!$^*?:-#".contains(c))
}

/// Only the live shell knows the word.
fn is_shells(word: &Word) -> bool {
    word.tail().contains(crate::word::UNKNOWN)
}
