//! `holdfast man`: one page, made from the same words as the help.

use crate::args::Args;
use crate::failure::Failure;
use crate::show::print;
use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;
use std::io;

const REST: &str = r#".SH EXIT STATUS
0 on success, 1 on failure, 2 on a wrong command line, 124 on a timeout.
\fBattach\fR, \fBwait\fR and \fBrun\fR exit with the status of the session's command, or with 128+n if signal n ended it.
.SH FILES
.TP
\fI$XDG_CONFIG_HOME/holdfast/config.toml\fR
chord ("C\-\e\e", or "none"), detach_key ("d"), greeting (true), title (true), status ("off", or "bottom"), ring ("1MiB"), history_lines (10000), ended_keep ("1d"), runs_keep ("7d"), flows_keep ("30d"), flows_archive, grace ("5s"),
shell, recover ("manual"), attach_history (true). Flags override environment variables (HOLDFAST_KEY), which
override the file.
.IP
Rights of actors in a session before any grant: rights_human ("all"), rights_agent ("observe,type,run,start,files:read,files:write"),
rights_service, rights_device, rights_unknown ("none"), and of the actor that started it: rights_spawner ("all").
Rights are observe, type, run, start, signal, seize, grant, approve, checkpoint, fork, end, configure, files:read, files:write.
.IP
policy ("solo"): by which policy acts are judged: solo, careful, locked or off. Files in policy/*.cedar beside it add rules.
.IP
metrics_listen, for example "127.0.0.1:9464": the host serves its metrics there over HTTP, on this machine only.
.IP
log ("info"): what the host logs to host.log beside the sessions: off, error, warn, info, debug or trace, and levels of modules as in
"info,holdfast_host::notify=debug". log_format ("text"): text or json.
.IP
history_lines, ended_keep, runs_keep, the rights, policy, metrics_listen, log and log_format are read when the host starts: \fBholdfast host restart\fR takes
them over.
.TP
\fI$XDG_STATE_HOME/holdfast\fR
Sessions, the keys of actors (\fIactors\fR) and the host's log.
.TP
\fI$XDG_RUNTIME_DIR/holdfast\fR
Sockets.
.SH WHO YOU ARE
An actor is a key with a handle: human:ann, agent:claude, service:deploy, device:phone.
\fB\-\-as\fR or HOLDFAST_ACTOR names the actor. Otherwise a process with a coding agent's marker in its environment is the agent
of that name, and a process inside a session or without a terminal is agent:LOGIN. A person at a terminal outside any session is
human:LOGIN. Holdfast creates keys at first use. Programs of the same user can read the same keys: to protect your key from an
agent, run the agent as another user.
.SH ENVIRONMENT
.TP
\fBHOLDFAST_HOME\fR
Keeps state, sockets and configuration under one directory.
.TP
\fBHOLDFAST_ACTOR\fR
The actor to act as: a handle, or the path of a key file.
.TP
\fBHOLDFAST_SESSION\fR, \fBHOLDFAST_SESSION_NAME\fR
Inside a session: its id and name.
.TP
\fBHOLDFAST_ENV\fR
Inside a session: a file to source, with the variables of the client that attached last.
"#;

/// `holdfast man`.
pub fn man() -> Result<u8, Failure> {
    let page = page().map_err(|e| Failure::io("cannot write the manual page", e))?;
    print(page)?;
    Ok(0)
}

fn page() -> io::Result<Vec<u8>> {
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    let man = Man::new(command.clone());
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    out.extend_from_slice(b".SH COMMANDS\n");
    for sub in command.get_subcommands() {
        section(sub, &mut out)?;
        for below in sub.get_subcommands() {
            section(below, &mut out)?;
        }
    }
    out.extend_from_slice(REST.as_bytes());
    Ok(out)
}

/// A command's synopsis and options, one level below the page's sections.
fn section(command: &Command, out: &mut Vec<u8>) -> io::Result<()> {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default().replace('\\', "\\e");
    // What every command has stands once, at the top.
    let common = |arg: &Arg| arg.is_global_set() || arg.get_id() == "help";
    let command = command.clone().mut_args(|arg| if common(&arg) { arg.hide(true) } else { arg });
    let man = Man::new(command);
    let mut parts = Vec::new();
    man.render_synopsis_section(&mut parts)?;
    man.render_options_section(&mut parts)?;
    out.extend_from_slice(format!(".SS \"{name}\"\n{about}\n.PP\n").as_bytes());
    let parts = String::from_utf8_lossy(&parts).into_owned();
    for line in parts.lines().filter(|line| !line.starts_with(".SH ")) {
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    Ok(())
}
