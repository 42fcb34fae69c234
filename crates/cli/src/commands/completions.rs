//! `holdfast completions`: what the parser knows, and the names of sessions, hosts and actors asked for when they are needed.

use crate::args::{Args, McpClient, Shell};
use crate::failure::Failure;
use crate::show::print;
use clap::{CommandFactory, ValueEnum};
use clap_complete::generate;
use clap_complete::shells;
use holdfast_types::Right;

/// Commands whose first word is a session.
const NAMING: &str = "run attach a info graph ps ports screen logs send state env watch wait resize rename keep detach signal end kill turn take request withdraw give release seize thaw grant revoke grants journal export questions invite";

/// Words behind `run` that are about runs, and those of them that name one.
const ABOUT_RUNS: &str = "ls status wait output cancel";
/// Words behind `flow` that name a flow.
const FLOWING: &str = "show history watch signal answer cancel retry";
/// What `wait --for` knows.
const AWAITED: &str = "exit idle waiting text: port: quiet:";

// A colon ends a word for bash: of `agent:cl` it asks to complete `cl` alone.
const BASH: &str = r#"
_holdfast_sessions() {
    local begun=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=($(compgen -W "$1 $(holdfast __names "$begun" 2>/dev/null)" -- "$begun"))
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
_holdfast_named() {
    local at=$COMP_CWORD class=
    if [[ ${COMP_WORDS[at]} == : ]]; then
        class=${COMP_WORDS[at-1]}: at=$((at - 1))
    elif [[ $at -gt 2 && ${COMP_WORDS[at-1]} == : ]]; then
        class=${COMP_WORDS[at-2]}: at=$((at - 2))
    fi
    if [[ ${COMP_WORDS[at-1]} == --as || ${COMP_WORDS[at-1]} == --to ]]; then
        local begun=${COMP_WORDS[COMP_CWORD]}
        COMPREPLY=($(compgen -W "$(holdfast __actors 2>/dev/null)" -- "$class${begun#:}"))
        COMPREPLY=("${COMPREPLY[@]#"$class"}")
    elif [[ ${COMP_WORDS[at-1]} == --host ||
        ( $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == connect && ${COMP_WORDS[2]} != -* ) ||
        ( $COMP_CWORD -eq 3 && ${COMP_WORDS[1]} == hosts && " rename forget " == *" ${COMP_WORDS[2]} "* ) ]]; then
        COMPREPLY=($(compgen -W "$(holdfast __hosts 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
    elif [[ ${COMP_WORDS[1]} == wait && ${COMP_WORDS[at-1]} == --for ]]; then
        compopt -o nospace 2>/dev/null
        COMPREPLY=($(compgen -W "@AWAITED@" -- "${COMP_WORDS[COMP_CWORD]}"))
    elif [[ ${COMP_WORDS[at-1]} == --can ]]; then
        local done=${COMP_WORDS[COMP_CWORD]%"${COMP_WORDS[COMP_CWORD]##*,}"}
        compopt -o nospace 2>/dev/null
        COMPREPLY=($(compgen -P "$done" -W "@RIGHTS@" -- "${COMP_WORDS[COMP_CWORD]##*,}"))
    elif [[ ${COMP_WORDS[1]} == files && ${COMP_WORDS[COMP_CWORD]} != -* && (
        ( $COMP_CWORD -eq 3 && " ls get edit undo changes diff " == *" ${COMP_WORDS[2]} "* ) ||
        ( $COMP_CWORD -eq 4 && ${COMP_WORDS[2]} == put ) ) ]]; then
        _holdfast_sessions ""
        compopt -o nospace 2>/dev/null
        if [[ " changes diff " != *" ${COMP_WORDS[2]} "* ]]; then
            COMPREPLY=("${COMPREPLY[@]/%/:}")
            COMPREPLY=("${COMPREPLY[@]/%\/:/\/}")
        fi
    elif [[ $COMP_CWORD -eq 3 && ${COMP_WORDS[1]} == run && " status wait output cancel " == *" ${COMP_WORDS[2]} "* ]]; then
        COMPREPLY=($(compgen -W "$(holdfast __runs 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
    elif [[ $COMP_CWORD -eq 3 && ${COMP_WORDS[1]} == flow && " @FLOWING@ " == *" ${COMP_WORDS[2]} "* ]]; then
        COMPREPLY=($(compgen -W "$(holdfast __flows 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
    elif [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == run && ${COMP_WORDS[COMP_CWORD]} != -* ]]; then
        _holdfast_sessions "@ABOUT@"
    elif [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[COMP_CWORD]} != -* && " @NAMING@ " == *" ${COMP_WORDS[1]} "* ]]; then
        _holdfast_sessions ""
    else
        _holdfast "$@"
    fi
}
complete -F _holdfast_named -o bashdefault -o default holdfast
"#;

const FISH: &str = r#"
complete -c holdfast -n "__fish_seen_subcommand_from @NAMING@; and not __fish_seen_subcommand_from hosts" -f -a "(holdfast __names (commandline -ct) 2>/dev/null)"
complete -c holdfast -n "__fish_seen_subcommand_from files; and __fish_seen_subcommand_from ls get put edit undo" -a "(holdfast __names (commandline -ct) 2>/dev/null | string replace -r '([^/])$' '\$1:')"
complete -c holdfast -n "__fish_seen_subcommand_from files; and __fish_seen_subcommand_from changes diff" -f -a "(holdfast __names (commandline -ct) 2>/dev/null)"
complete -c holdfast -n "__fish_seen_subcommand_from connect" -f -a "(holdfast __hosts 2>/dev/null)"
complete -c holdfast -n "__fish_seen_subcommand_from hosts; and __fish_seen_subcommand_from rename forget" -f -a "(holdfast __hosts 2>/dev/null)"
complete -c holdfast -l host -x -a "(holdfast __hosts 2>/dev/null)"
complete -c holdfast -n "__fish_seen_subcommand_from run; and not __fish_seen_subcommand_from @ABOUT@" -f -a "@ABOUT@"
complete -c holdfast -n "__fish_seen_subcommand_from run; and __fish_seen_subcommand_from status wait output cancel" -f -a "(holdfast __runs 2>/dev/null)"
complete -c holdfast -n "__fish_seen_subcommand_from flow; and __fish_seen_subcommand_from @FLOWING@" -f -a "(holdfast __flows 2>/dev/null)"
complete -c holdfast -n "__fish_seen_subcommand_from mcp; and __fish_seen_subcommand_from install" -f -a "@AGENTS@"
complete -c holdfast -n "__fish_seen_subcommand_from completions" -f -a "bash zsh fish"
complete -c holdfast -n "__fish_seen_subcommand_from wait" -l for -x -a "@AWAITED@"
complete -c holdfast -n "__fish_seen_subcommand_from grant token invite" -l can -x -a "(__fish_append , @RIGHTS@)"
complete -c holdfast -l as -x -a "(holdfast __actors 2>/dev/null)"
complete -c holdfast -n "__fish_seen_subcommand_from give grant revoke" -l to -x -a "(holdfast __actors 2>/dev/null)"
"#;

const ZSH: &str = r#"
_holdfast_names() {
    local -a names hosts
    names=(${(f)"$(holdfast __names "$PREFIX" 2>/dev/null)"})
    hosts=(${(M)names:#*/})
    names=(${names:#*/})
    compadd -a names
    compadd -S '' -a hosts
}
_holdfast_places() {
    local -a names hosts
    names=(${(f)"$(holdfast __names "$PREFIX" 2>/dev/null)"})
    hosts=(${(M)names:#*/})
    names=(${names:#*/})
    compadd -S ':' -a names
    compadd -S '' -a hosts
}
_holdfast_hosts() {
    local -a hosts
    hosts=(${(f)"$(holdfast __hosts 2>/dev/null)"})
    compadd -a hosts
}
_holdfast_runs() {
    local -a runs
    runs=(${(f)"$(holdfast __runs 2>/dev/null)"})
    compadd -a runs
}
_holdfast_flows() {
    local -a flows
    flows=(${(f)"$(holdfast __flows 2>/dev/null)"})
    compadd -a flows
}
_holdfast_awaited() {
    compadd -S '' @AWAITED@
}
_holdfast_rights() {
    _sequence compadd - @RIGHTS@
}
_holdfast_actors() {
    local -a actors
    actors=(${(f)"$(holdfast __actors 2>/dev/null)"})
    compadd -a actors
}
"#;

/// `holdfast completions`.
pub fn completions(shell: Shell) -> Result<u8, Failure> {
    let mut command = Args::command();
    let mut out = Vec::new();
    match shell {
        Shell::Bash => generate(shells::Bash, &mut command, "holdfast", &mut out),
        Shell::Zsh => generate(shells::Zsh, &mut command, "holdfast", &mut out),
        Shell::Fish => generate(shells::Fish, &mut command, "holdfast", &mut out),
    }
    let text = String::from_utf8_lossy(&out).into_owned();
    print(match shell {
        Shell::Bash => text + &filled(BASH),
        Shell::Fish => text + &filled(FISH),
        Shell::Zsh => with_names(&text),
    })?;
    Ok(0)
}

/// Ours, with the words that it offers.
fn filled(text: &str) -> String {
    let rights: Vec<&str> = Right::EACH.iter().map(|right| right.word()).collect();
    let agents = McpClient::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    let agents: Vec<String> = agents.map(|agent| agent.get_name().to_owned()).collect();
    let words = [("@NAMING@", NAMING), ("@ABOUT@", ABOUT_RUNS), ("@AWAITED@", AWAITED), ("@FLOWING@", FLOWING)];
    let text = words.iter().fold(text.to_owned(), |text, (mark, words)| text.replace(mark, words));
    text.replace("@RIGHTS@", &rights.join(" ")).replace("@AGENTS@", &agents.join(" "))
}

/// zsh names what completes each word: ours takes the place of files where a session, a host or an actor is meant.
fn with_names(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let session = line.contains("session -- ") && line.contains(":_default");
        let line = line
            .replace(":ACTOR:_default", ":ACTOR:_holdfast_actors")
            .replace(":HOST:_default", ":HOST:_holdfast_hosts")
            .replace(":WHAT:_default", ":WHAT:_holdfast_awaited")
            .replace(":RIGHTS:_default", ":RIGHTS:_holdfast_rights");
        let host = line.contains("to -- Give this machine") || line.contains("name -- What you call it");
        let line = if host { line.replace(":_default", ":_holdfast_hosts") } else { line };
        let line = if line.contains("run -- ") { line.replace(":_default", ":_holdfast_runs") } else { line };
        let line = if line.contains("flow -- ") { line.replace(":_default", ":_holdfast_flows") } else { line };
        let line = if line.contains("place -- ") { line.replace(":_default", ":_holdfast_places") } else { line };
        out.push_str(&if session { line.replace(":_default", ":_holdfast_names") } else { line.clone() });
        out.push('\n');
        if line.starts_with("autoload ") {
            out.push_str(&filled(ZSH));
        }
    }
    out
}
