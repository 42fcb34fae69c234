//! `holdfast completions`: what the parser knows, and the names of sessions and actors asked for when they are needed.

use crate::args::{Args, Shell};
use crate::failure::Failure;
use crate::show::print;
use clap::CommandFactory;
use clap_complete::generate;
use clap_complete::shells;

/// Commands whose first word is a session.
const NAMING: &str = "attach a info graph ps ports screen logs send state env watch wait resize rename detach signal end turn take request withdraw give release seize thaw grant revoke grants journal export questions";

// A colon ends a word for bash: of `agent:cl` it asks to complete `cl` alone.
const BASH: &str = r#"
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
    elif [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[COMP_CWORD]} != -* && " @NAMING@ " == *" ${COMP_WORDS[1]} "* ]]; then
        COMPREPLY=($(compgen -W "$(holdfast __names 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
    else
        _holdfast "$@"
    fi
}
complete -F _holdfast_named -o bashdefault -o default holdfast
"#;

const FISH: &str = r#"
complete -c holdfast -n "__fish_seen_subcommand_from @NAMING@" -f -a "(holdfast __names 2>/dev/null)"
complete -c holdfast -l as -x -a "(holdfast __actors 2>/dev/null)"
complete -c holdfast -n "__fish_seen_subcommand_from give grant revoke" -l to -x -a "(holdfast __actors 2>/dev/null)"
"#;

const ZSH: &str = r#"
_holdfast_names() {
    local -a names
    names=(${(f)"$(holdfast __names 2>/dev/null)"})
    compadd -a names
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
        Shell::Bash => text + &BASH.replace("@NAMING@", NAMING),
        Shell::Fish => text + &FISH.replace("@NAMING@", NAMING),
        Shell::Zsh => with_names(&text),
    })?;
    Ok(0)
}

/// zsh names what completes each word: ours takes the place of files where a session or an actor is meant.
fn with_names(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let session = line.contains("session -- ") && line.contains(":_default");
        let line = line.replace(":ACTOR:_default", ":ACTOR:_holdfast_actors");
        out.push_str(&if session { line.replace(":_default", ":_holdfast_names") } else { line.clone() });
        out.push('\n');
        if line.starts_with("autoload ") {
            out.push_str(ZSH);
        }
    }
    out
}
