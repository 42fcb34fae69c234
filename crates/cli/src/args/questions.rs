//! The options of questions: asking, listing, answering.

use crate::values::Seconds;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "holdfast ask [-t <NAME>] [OPTIONS] <TEXT>...\n       holdfast ask --wait <QUESTION> [--timeout <S>]\n       holdfast ask --withdraw <QUESTION>"
)]
pub struct AskArgs {
    /// Session the question is about, by name or id [default: the session this runs in]
    #[arg(short = 't', long, value_name = "NAME")]
    pub session: Option<String>,
    /// Allowed answer; can be repeated [default: any text]
    #[arg(long = "option", value_name = "TEXT")]
    pub options: Vec<String>,
    /// Wait S seconds for the answer, then exit with status 124; the question stays open
    #[arg(long, value_name = "S")]
    pub timeout: Option<Seconds>,
    /// Close the question after S seconds
    #[arg(long, value_name = "S")]
    pub expires: Option<Seconds>,
    /// Wait for the answer to an earlier question
    #[arg(long, value_name = "QUESTION", conflicts_with_all = ["text", "options", "expires", "session", "withdraw"])]
    pub wait: Option<String>,
    /// Withdraw a question
    #[arg(long, value_name = "QUESTION", conflicts_with_all = ["text", "options", "expires", "session", "timeout"])]
    pub withdraw: Option<String>,
    /// The question, joined by spaces
    #[arg(value_name = "TEXT", required_unless_present_any = ["wait", "withdraw"])]
    pub text: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub struct QuestionsArgs {
    /// Name, id, or prefix of an id
    #[arg(value_name = "NAME")]
    pub session: Option<String>,
    /// Include questions that are no longer open
    #[arg(long)]
    pub all: bool,
    /// List the questions of every host you added, too; exit with 1 if one does not answer
    #[arg(long, conflicts_with = "session")]
    pub all_hosts: bool,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "holdfast answer <QUESTION> <TEXT>...\n       holdfast answer <QUESTION> --option <N>\n       holdfast answer [QUESTION]"
)]
pub struct AnswerArgs {
    /// Id of the question, or a prefix of it; HOST/QUESTION for one of another host. Without an answer, Holdfast shows the question and reads the answer from the
    /// terminal; if only one question is open, the id can be omitted
    #[arg(value_name = "QUESTION")]
    pub question: Option<String>,
    /// Choose the option with this number, counting from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "text", requires = "question")]
    pub option: Option<u32>,
    /// The answer, joined by spaces; if the question has options, one of them
    #[arg(value_name = "TEXT")]
    pub text: Vec<String>,
}
