//! The options of questions: asking, listing, answering.

use crate::values::Seconds;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "holdfast ask [-t <NAME>] [OPTIONS] <TEXT>...\n       holdfast ask --wait <QUESTION> [--timeout <S>]\n       holdfast ask --withdraw <QUESTION>"
)]
pub struct AskArgs {
    /// The session it is about, by name or id; without it, the one this runs in
    #[arg(short = 't', long, value_name = "NAME")]
    pub session: Option<String>,
    /// Something that can be answered; may be repeated. Without any: every text
    #[arg(long = "option", value_name = "TEXT")]
    pub options: Vec<String>,
    /// Wait this many seconds for the answer, then end with status 124; the question stays open
    #[arg(long, value_name = "S")]
    pub timeout: Option<Seconds>,
    /// After this many seconds nobody can answer it any more
    #[arg(long, value_name = "S")]
    pub expires: Option<Seconds>,
    /// Wait for the answer to a question that was asked before
    #[arg(long, value_name = "QUESTION", conflicts_with_all = ["text", "options", "expires", "session", "withdraw"])]
    pub wait: Option<String>,
    /// Take a question back
    #[arg(long, value_name = "QUESTION", conflicts_with_all = ["text", "options", "expires", "session", "timeout"])]
    pub withdraw: Option<String>,
    /// The question, joined by spaces
    #[arg(value_name = "TEXT", required_unless_present_any = ["wait", "withdraw"])]
    pub text: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub struct QuestionsArgs {
    /// Name, id, or the beginning of an id
    #[arg(value_name = "NAME")]
    pub session: Option<String>,
    /// Those that are no longer open too
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "holdfast answer <QUESTION> <TEXT>...\n       holdfast answer <QUESTION> --option <N>\n       holdfast answer [QUESTION]"
)]
pub struct AnswerArgs {
    /// The question's id, or its beginning. Without a text or an option it is shown, and the answer read from the terminal; the
    /// only open one can be left out then
    #[arg(value_name = "QUESTION")]
    pub question: Option<String>,
    /// The option of this number, from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "text", requires = "question")]
    pub option: Option<u32>,
    /// The answer, joined by spaces; where there are options, one of them
    #[arg(value_name = "TEXT")]
    pub text: Vec<String>,
}
