//! What a person types to the bot.

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command<'a> {
    /// What can be said.
    Help,
    /// Sessions and their state.
    List,
    /// Which session commands mean.
    Use(&'a str),
    /// The screen as text; of the session that is named, or the current one.
    Screen(Option<&'a str>),
    /// The screen as a picture.
    Picture(Option<&'a str>),
    /// The output as a file.
    Logs(Option<&'a str>),
    /// A command for the shell.
    Run(&'a str),
    /// Text, and Enter.
    Type(&'a str),
    /// Keys by their names.
    Key(&'a str),
    /// Take the turn.
    Seize(&'a str),
    /// Take the turn and stop the tree.
    Freeze(&'a str),
    /// Let the tree go on.
    Thaw,
    /// Open questions.
    Questions,
    /// Acts that wait for a human.
    Approvals,
    /// An answer in words.
    Answer(&'a str),
    /// Tell me when something happens.
    Tell(&'a str),
    /// The second factor.
    Unlock(&'a str),
    /// No longer unlocked.
    Lock,
    /// Who am I.
    Me,
    /// Forget me.
    Leave,
    /// Not known.
    Unknown(&'a str),
}

/// What a message means. Commands begin with `/` or `!` or stand alone; `$ make` is `/run make`.
pub fn read(text: &str) -> Command<'_> {
    let text = text.trim();
    if let Some(line) = text.strip_prefix("$ ") {
        return Command::Run(line.trim());
    }
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let name = word.strip_prefix(['/', '!']).unwrap_or(word);
    // Telegram appends the bot's name where several are in a chat.
    let name = name.split('@').next().unwrap_or_default().to_ascii_lowercase();
    let named = (!rest.is_empty()).then_some(rest);
    match name.as_str() {
        "help" | "start" | "?" => Command::Help,
        "ls" | "sessions" => Command::List,
        "use" => Command::Use(rest),
        "screen" => Command::Screen(named),
        "pic" | "picture" => Command::Picture(named),
        "logs" | "log" => Command::Logs(named),
        "run" => Command::Run(rest),
        "type" => Command::Type(rest),
        "key" | "keys" => Command::Key(rest),
        "seize" => Command::Seize(rest),
        "freeze" => Command::Freeze(rest),
        "thaw" => Command::Thaw,
        "questions" => Command::Questions,
        "approvals" => Command::Approvals,
        "answer" => Command::Answer(rest),
        "tell" => Command::Tell(rest),
        "unlock" => Command::Unlock(rest),
        "lock" => Command::Lock,
        "me" | "whoami" => Command::Me,
        "leave" => Command::Leave,
        _ => Command::Unknown(word),
    }
}

/// The commands, for people.
pub const HELP: &str = "\
/ls  sessions and what they do
/use NAME  the session that the other commands mean
/screen [NAME]  the screen as text, with keys
/pic [NAME]  the screen as a picture
/run COMMAND  run it at the prompt (also: $ COMMAND)
/type TEXT  type TEXT and Enter
/key C-c Up …  press keys
/logs [NAME]  the output as a file
/tell ends|waits|off  be told when it ends or waits for input
/questions  /approvals  what waits for an answer
/answer TEXT  answer a question in words
/seize REASON  /freeze REASON  /thaw
/unlock …  /lock  /me  /leave
Secrets do not belong here: answer password prompts at a terminal or on the page.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_read_in_the_forms_people_type_them() {
        assert_eq!(read("/ls"), Command::List);
        assert_eq!(read("/LS@my_bot"), Command::List);
        assert_eq!(read("!screen work"), Command::Screen(Some("work")));
        assert_eq!(read("screen"), Command::Screen(None));
        assert_eq!(read("$ make  -j8"), Command::Run("make  -j8"));
        assert_eq!(read("/run echo a\necho b"), Command::Run("echo a\necho b"));
        assert_eq!(read("hello there"), Command::Unknown("hello"));
        assert_eq!(read("rm -rf /"), Command::Unknown("rm"), "words are no command line by themselves");
    }
}
