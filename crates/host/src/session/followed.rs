//! What a session takes over from the terminal that attached last: a file its shell can source, and a stable ssh-agent link.
//!
//! A program in the session acts on both, so they are input: only a human who may type there gives any, from a terminal of this
//! machine that writes, and only the variables that the host names.

use super::Session;
use crate::notes::About;
use holdfast_types::{Actor, Right};
use holdfast_wire::params::{AttachParams, FOLLOWED};
use std::path::Path;

/// Longest value taken over: a path, a display, a locale.
const VALUE_BYTES_MAX: usize = 4096;

/// The variables that are taken over, in the host's order; of two with one name the first.
fn taken(env: &[String]) -> impl Iterator<Item = (&'static str, &str)> {
    let plain = |value: &str| value.len() <= VALUE_BYTES_MAX && !value.chars().any(char::is_control);
    let pairs = || env.iter().filter_map(|pair| pair.split_once('='));
    FOLLOWED.iter().filter_map(move |name| {
        let (_, value) = pairs().find(|(key, _)| key == name)?;
        plain(value).then_some((*name, value))
    })
}

impl Session {
    /// Whether an actor's terminal may refresh the session's variables.
    fn may_refresh(&self, params: &AttachParams, actor: &Actor) -> bool {
        let state = self.state.borrow();
        let is_human = state.core.authority().policy().is_human(actor);
        is_human && !params.read_only && !params.remote && state.rights(actor).has(Right::Type)
    }

    /// Offers the latest client's variables to the session, if that client may.
    pub(super) fn follow_environment(&self, params: &AttachParams, actor: &Actor) {
        if !self.may_refresh(params, actor) {
            return;
        }
        let mut text = String::from("# Variables of the client that attached last. Source this file to use them.\n");
        for (name, value) in taken(&params.env) {
            if name == "SSH_AUTH_SOCK" {
                if self.point_agent_link(Path::new(value)) {
                    text.push_str(&export(name, &self.agent_link.to_string_lossy()));
                }
            } else {
                text.push_str(&export(name, value));
            }
        }
        let offered = crate::store::replace(&self.dir, "env", text.as_bytes());
        self.state.borrow_mut().notes.wrote(About::Variables, "the client's variables could not be offered", &offered);
    }

    /// The session's agent is the one at this path from now on; false: the link cannot be made.
    fn point_agent_link(&self, agent: &Path) -> bool {
        let link = &self.agent_link;
        if agent == link.as_path() {
            return true;
        }
        let beside = link.with_extension("agent.new");
        let _ = std::fs::remove_file(&beside);
        std::os::unix::fs::symlink(agent, &beside).and_then(|()| std::fs::rename(&beside, link)).is_ok()
    }
}

fn export(name: &str, value: &str) -> String {
    format!("export {name}='{}'\n", value.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hosts_names_with_plain_values_are_taken_over() {
        let long = format!("LC_ALL={}", "x".repeat(VALUE_BYTES_MAX + 1));
        let env = ["DISPLAY=:1", "PATH=/tmp", "DISPLAY=:2", "LANG=a\nb", "TERM=x\u{1b}y", "TERM", "=", "term=x", &long];
        let env: Vec<String> = env.iter().map(|pair| (*pair).to_owned()).collect();
        assert_eq!(taken(&env).collect::<Vec<_>>(), [("DISPLAY", ":1")]);
        assert_eq!(export("LANG", "it's $(x)"), "export LANG='it'\\''s $(x)'\n");
    }
}
