//! A home of its own for a test with somebody else's client: a host that listens, and a token. It ends with its sessions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::step::works;

/// A home, and the host that serves it.
pub struct World {
    /// The home.
    pub home: PathBuf,
    /// The program.
    pub holdfast: PathBuf,
    /// Where the host listens.
    pub url: String,
    /// Opens it, as `agent:tester`.
    pub token: String,
}

impl World {
    /// Starts a host in a fresh home.
    pub fn new(holdfast: &Path, name: &str) -> Result<World> {
        // Short: the paths of sockets are.
        let home = std::env::temp_dir().join(format!("hf{name}{}", std::process::id()));
        fs::create_dir(&home).with_context(|| format!("cannot make {}", home.display()))?;
        let mut world = World { home, holdfast: holdfast.to_owned(), url: String::new(), token: String::new() };
        let status = world.told(&["host", "start", "--http", "127.0.0.1:0", "--json"])?;
        let status: serde_json::Value = serde_json::from_str(&status)?;
        world.url = status["http"].as_str().context("the host does not listen")?.to_owned();
        world.token = world.told(&["--as", "agent:tester", "token", "new"])?.trim().to_owned();
        Ok(world)
    }

    /// A program in this home, and nobody else's.
    pub fn run(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("HOLDFAST_TEST_TOP", std::process::id().to_string());
        command.env("HOLDFAST_HOME", &self.home).env("HOME", &self.home).env("SHELL", "/bin/bash");
        command.env_remove("HOLDFAST_ACTOR").current_dir(&self.home);
        command
    }

    /// What `holdfast` prints.
    pub fn told(&self, args: &[&str]) -> Result<String> {
        let output = self.run(&self.holdfast).args(args).output().context("cannot run holdfast")?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "holdfast {}: {error}", args.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for args in [["end", "--all"], ["host", "stop"]] {
            works(self.run(&self.holdfast).args(["--as", "agent:tester"]).args(args));
            works(self.run(&self.holdfast).args(args));
        }
        // Shells that the host keeps ahead for agents are in no list, and wait for its next start.
        for keeper in keepers(&self.home) {
            works(Command::new("kill").args(["-9", &keeper]));
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// Processes that run a program of this home.
fn keepers(home: &Path) -> Vec<String> {
    let place = home.join("bin").into_os_string().into_encoded_bytes();
    let runs_it = |pid: &String| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(&place));
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).filter(runs_it).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_a_program_of_a_home_is_found_and_nothing_else() {
        let home = std::env::temp_dir().join(format!("hfkeepers{}", std::process::id()));
        fs::create_dir_all(home.join("bin")).unwrap();
        let program = home.join("bin/sleep");
        fs::copy("/bin/sleep", &program).unwrap();
        let mut child = Command::new(&program).arg("1000").spawn().unwrap();
        // Its words are those of the program once it runs.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let mut found = keepers(&home);
        while found.is_empty() && std::time::Instant::now() < deadline {
            found = keepers(&home);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_dir_all(&home).unwrap();
        assert_eq!(found, [child.id().to_string()]);
    }
}
