//! What shapes a line besides its own words: which changes of a shell have a say in it, and which files it executes.
//!
//! The tables are of what is known to run code: they explain, and are never complete. Knows no file: what there is the caller tells.

use crate::facts::Surroundings;
use crate::line::{Command, Line};
use crate::places::{Lexical, Places, join};
use crate::word::{HOME, Word};
use crate::wrappers::SHELLS;

/// A change of a shell: its kind in the words of the record (`alias`, `variable`, `path`, …), and its name.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// What kind of thing.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// Files of one line: more is a line that nobody reads.
const FILES_MAX: usize = 64;

/// Variables that have a say in whatever runs, and around it.
const EVERYWHERE: [&str; 16] = [
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "RPS1",
    "IFS",
    "precmd_functions",
    "preexec_functions",
    "chpwd_functions",
    "zshaddhistory_functions",
    "fish_key_bindings",
    "fish_function_path",
];

/// Traps that a line sets off by itself; others wait for a signal.
const TRAPS: [&str; 5] = ["DEBUG", "ERR", "RETURN", "EXIT", "ZERR"];

/// Variables by the programs that listen to them; a name that ends with `*` stands for all that begin so.
const HEARD: [(&str, &[&str]); 20] = [
    ("git", &["GIT_*", "EDITOR", "VISUAL", "PAGER", "SSH_ASKPASS", "HOME", "XDG_CONFIG_HOME"]),
    ("sh", &["ENV", "BASH_ENV"]),
    ("bash", &["ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "INPUTRC", "HOME"]),
    ("dash", &["ENV"]),
    ("zsh", &["ZDOTDIR", "HOME"]),
    ("fish", &["XDG_CONFIG_HOME", "HOME"]),
    ("python", &["PYTHON*"]),
    ("pip", &["PYTHON*", "PIP_*"]),
    ("pytest", &["PYTHON*", "PYTEST_*"]),
    ("node", &["NODE_*"]),
    ("npm", &["NODE_*", "npm_config_*"]),
    ("npx", &["NODE_*", "npm_config_*"]),
    ("perl", &["PERL5LIB", "PERL5OPT", "PERLLIB"]),
    ("ruby", &["RUBYOPT", "RUBYLIB", "GEM_*"]),
    ("make", &["MAKEFLAGS", "MAKEFILES", "SHELL", "CC", "CXX", "CFLAGS"]),
    ("cargo", &["CARGO_*", "RUSTC*", "RUSTFLAGS"]),
    ("java", &["JAVA_TOOL_OPTIONS", "CLASSPATH"]),
    ("ssh", &["SSH_*"]),
    ("less", &["LESS*"]),
    ("man", &["PAGER", "MANPAGER", "LESS*"]),
];

/// The beginning of a program's name that has a version behind it: `python3.11`, `pip3`.
fn family(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Every name under which a line looks something up: what it runs, and what that is wrapped in.
fn looked_up(line: &Line) -> impl Iterator<Item = &str> {
    line.commands.iter().flat_map(|command| {
        let own = command.name.as_deref().filter(|_| command.path.is_none());
        own.into_iter().chain(command.via.iter().map(String::as_str))
    })
}

fn programs(line: &Line) -> impl Iterator<Item = &str> {
    line.commands.iter().flat_map(|one| one.name.as_deref().into_iter().chain(one.via.iter().map(String::as_str)))
}

/// Whether a text uses a variable: `$NAME`, `${NAME…`.
fn uses(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].trim_end_matches('{');
        let is_braced = before.len() + 1 >= at;
        before.ends_with('$') && is_braced && !text[at + name.len()..].starts_with(is_part)
    })
}

fn fits(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

/// Whether a change of the shell has a say in this line. `has` tells whether a directory has a program of a name.
#[must_use]
pub fn shapes(line: &Line, text: &str, change: Named<'_>, has: &dyn Fn(&str, &str) -> bool) -> bool {
    let name = change.name;
    match change.kind {
        "alias" | "function" | "builtin" | "hash" => looked_up(line).any(|known| known == name),
        "path" => looked_up(line).any(|known| has(name, known)),
        "trap" => TRAPS.contains(&name),
        "binding" | "setting" => true,
        "variable" if EVERYWHERE.contains(&name) || uses(text, name) => true,
        "variable" if name == "CDPATH" => programs(line).any(|program| program == "cd"),
        "variable" => programs(line).any(|program| {
            let heard = HEARD.iter().filter(|(known, _)| *known == program || *known == family(program));
            heard.flat_map(|(_, names)| names.iter()).any(|pattern| fits(pattern, name))
        }),
        _ => false,
    }
}

/// Files that a line executes or reads as code, by absolute path: only those that exist count, which the caller tells.
#[must_use]
pub fn files_of(line: &Line, around: &Surroundings) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for command in &line.commands {
        for dir in command.dirs.iter().flatten() {
            let from = Dir { dir: absolute(&around.cwd, dir, &around.home), home: &around.home };
            for file in from.files(command) {
                if !all.contains(&file) && all.len() < FILES_MAX {
                    all.push(file);
                }
            }
        }
    }
    all
}

/// Where a command runs.
struct Dir<'a> {
    dir: String,
    home: &'a str,
}

fn absolute(cwd: &str, path: &str, home: &str) -> String {
    let path = match path.strip_prefix(HOME) {
        Some(rest) => join(home, rest.trim_start_matches('/')),
        None if path.is_empty() => cwd.to_owned(),
        None => join(cwd, path),
    };
    Lexical.resolve(&path, true)
}

impl Dir<'_> {
    fn at(&self, path: &str) -> String {
        absolute(&self.dir, path, self.home)
    }

    fn word(&self, word: &Word) -> Option<String> {
        word.directory().map(|path| self.at(&path))
    }

    fn files(&self, command: &Command) -> Vec<String> {
        let mut files: Vec<String> = command.path.iter().map(|path| self.at(path)).collect();
        // `< script`
        let name = family(command.name());
        let operand = |number: usize| command.operands().nth(number).and_then(|word| self.word(word));
        if SHELLS.contains(&command.name()) || matches!(command.name(), "source" | ".") {
            let reads = command.redirects.iter().filter(|redirect| !redirect.writes);
            files.extend(reads.filter_map(|redirect| self.word(&redirect.target)));
            if !command.has("c", &[]) {
                files.extend(operand(0));
            }
            if command.operands().next().is_none() {
                files.extend(rc_files(name).iter().map(|file| join(self.home, file)));
            }
            return files;
        }
        match name {
            "python" | "perl" | "ruby" | "node" | "php" | "lua" | "deno" | "bun" | "awk" | "gawk" => {
                files.extend(self.interpreted(command, name));
            }
            "make" | "gmake" => files.extend(self.makefiles(command)),
            "git" => files.extend(self.git(command)),
            _ => {}
        }
        files.extend(project_files(name).iter().map(|file| self.at(file)));
        files
    }

    fn interpreted(&self, command: &Command, name: &str) -> Vec<String> {
        let value = |letter: &str| {
            let at = command.words.iter().position(|word| word.text().as_deref() == Some(letter))?;
            command.words.get(at + 1)
        };
        if let Some(module) = value("-m").filter(|_| name == "python").and_then(Word::text) {
            let path = module.replace('.', "/");
            return vec![self.at(&format!("{path}.py")), self.at(&format!("{path}/__main__.py"))];
        }
        if matches!(name, "awk" | "gawk") {
            return value("-f").and_then(|word| self.word(word)).into_iter().collect();
        }
        let has_code = if name == "python" { command.has("c", &[]) } else { command.has("e", &["eval"]) };
        let script = command.operands().next().filter(|_| !has_code);
        script.and_then(|word| self.word(word)).into_iter().collect()
    }

    fn makefiles(&self, command: &Command) -> Vec<String> {
        let mut words = command.words.iter();
        let (mut dir, mut files) = (self.dir.clone(), Vec::new());
        while let Some(word) = words.next() {
            let text = word.beginning();
            match text.as_str() {
                "-C" | "--directory" => {
                    if let Some(to) = words.next().and_then(Word::directory) {
                        dir = absolute(&dir, &to, self.home);
                    }
                }
                "-f" | "--file" | "--makefile" => files.extend(words.next().and_then(Word::directory)),
                _ => files.extend(text.strip_prefix("--file=").map(str::to_owned)),
            }
        }
        if files.is_empty() {
            files.extend(["GNUmakefile", "makefile", "Makefile"].map(str::to_owned));
        }
        files.iter().map(|file| absolute(&dir, file, self.home)).collect()
    }

    /// Hooks and settings of the repository that a git command works in: whichever directory above has one, the caller finds out.
    fn git(&self, command: &Command) -> Vec<String> {
        let mut words = command.words.iter();
        let (mut dir, mut verb) = (self.dir.clone(), String::new());
        while let Some(word) = words.next() {
            let text = word.beginning();
            match text.as_str() {
                "-C" => {
                    if let Some(to) = words.next().and_then(Word::directory) {
                        dir = absolute(&dir, &to, self.home);
                    }
                }
                "-c" | "--git-dir" | "--work-tree" => drop(words.next()),
                option if option.starts_with('-') => {}
                _ => {
                    verb = text;
                    break;
                }
            }
        }
        let hooks: &[&str] = match verb.as_str() {
            "commit" => &["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"],
            "push" => &["pre-push"],
            "merge" | "pull" => &["pre-merge-commit", "post-merge", "commit-msg"],
            "checkout" | "switch" | "clone" | "worktree" => &["post-checkout"],
            "rebase" => &["pre-rebase", "post-rewrite", "post-checkout"],
            "am" | "apply" => &["applypatch-msg", "pre-applypatch", "post-applypatch"],
            _ => &[],
        };
        let mut files = vec![join(self.home, ".gitconfig")];
        let mut up = dir.as_str();
        loop {
            files.push(join(up, ".git/config"));
            files.extend(hooks.iter().map(|hook| join(up, &format!(".git/hooks/{hook}"))));
            match up.rsplit_once('/') {
                Some((above, _)) if !above.is_empty() && files.len() < FILES_MAX / 2 => up = above,
                _ => return files,
            }
        }
    }
}

/// What a shell without a script reads first.
fn rc_files(shell: &str) -> &'static [&'static str] {
    match shell {
        "bash" => &[".bashrc", ".bash_profile", ".profile"],
        "zsh" => &[".zshenv", ".zshrc"],
        "fish" => &[".config/fish/config.fish"],
        "sh" | "dash" | "ksh" => &[".profile"],
        _ => &[],
    }
}

/// What programs read as code from the directory they are started in.
fn project_files(name: &str) -> &'static [&'static str] {
    match name {
        "npm" | "npx" | "yarn" | "pnpm" | "bun" => &["package.json", ".npmrc"],
        "cargo" => &["Cargo.toml", "build.rs", ".cargo/config.toml", ".cargo/config"],
        "pytest" | "py.test" => &["conftest.py", "pytest.ini", "setup.cfg"],
        "tox" => &["tox.ini"],
        "pip" => &["setup.py", "pyproject.toml"],
        "just" => &["justfile", "Justfile", ".justfile"],
        "rake" => &["Rakefile"],
        "gradle" => &["build.gradle", "build.gradle.kts"],
        "mvn" => &["pom.xml"],
        "cmake" => &["CMakeLists.txt"],
        "docker" => &["Dockerfile", "docker-compose.yml", "compose.yaml"],
        "vim" | "vi" | "nvim" => &[".exrc", ".vimrc"],
        "direnv" => &[".envrc"],
        "go" => &["go.mod"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_shaped(line: &str, kind: &str, name: &str) -> bool {
        let has = |dir: &str, program: &str| dir == "/evil" && program == "ls";
        shapes(&Line::read(line), line, Named { kind, name }, &has)
    }

    #[test]
    fn a_change_has_a_say_in_lines_that_look_it_up_and_in_no_others() {
        for (line, kind, name, expected) in [
            ("ls -l", "alias", "ls", true),
            ("cd x && ls | wc", "alias", "wc", true),
            ("/bin/ls", "alias", "ls", false),
            ("sudo ls", "alias", "sudo", true),
            ("echo ls", "alias", "ls", false),
            ("git push", "function", "git", true),
            ("ls", "path", "/evil", true),
            ("make", "path", "/evil", false),
            ("./ls", "path", "/evil", false),
            ("ls", "hash", "ls", true),
            ("echo x", "builtin", "echo", true),
            ("true", "trap", "DEBUG", true),
            ("true", "trap", "SIGUSR1", false),
            ("true", "binding", "\\C-m", true),
            ("true", "variable", "LD_PRELOAD", true),
            ("true", "variable", "PROMPT_COMMAND", true),
            ("git fetch", "variable", "GIT_SSH_COMMAND", true),
            ("ls", "variable", "GIT_SSH_COMMAND", false),
            ("python3.11 x.py", "variable", "PYTHONPATH", true),
            ("sh x", "variable", "BASH_ENV", true),
            ("rm -rf \"${DIR}/x\"", "variable", "DIR", true),
            ("rm -rf $DIR", "variable", "DIR", true),
            ("rm -rf $DIRS", "variable", "DIR", false),
            ("rm -rf DIR", "variable", "DIR", false),
            ("cd x", "variable", "CDPATH", true),
            ("ls", "directory", "cwd", false),
            ("ls", "option", "extglob", false),
        ] {
            assert_eq!(is_shaped(line, kind, name), expected, "{line}: {kind} {name}");
        }
    }

    #[test]
    fn scripts_makefiles_modules_hooks_and_rc_files_are_found() {
        let around = Surroundings::new("/w", "/home/ann", None, Vec::new());
        let found = |line: &str| files_of(&Line::read(line), &around);
        for (line, file) in [
            ("./x.sh a b", "/w/x.sh"),
            ("sh x", "/w/x"),
            ("bash -x ~/x", "/home/ann/x"),
            (". ./env", "/w/env"),
            ("bash < x", "/w/x"),
            ("make -j2 all", "/w/Makefile"),
            ("make -C sub", "/w/sub/Makefile"),
            ("make -f other.mk", "/w/other.mk"),
            ("cd sub && make", "/w/sub/Makefile"),
            ("python3 m.py x", "/w/m.py"),
            ("python -m tool.run", "/w/tool/run.py"),
            ("git commit -m x", "/w/.git/hooks/pre-commit"),
            ("git -C /r push", "/r/.git/hooks/pre-push"),
            ("git status", "/w/.git/config"),
            ("bash", "/home/ann/.bashrc"),
            ("npm test", "/w/package.json"),
            ("sudo ./x.sh", "/w/x.sh"),
        ] {
            assert!(found(line).contains(&file.to_owned()), "{line}: {:?}", found(line));
        }
        for line in ["sh -c 'echo x'", "echo ./x.sh", "python3 -c 'print(1)'", "ls"] {
            assert_eq!(found(line), [""; 0], "{line}");
        }
    }
}
