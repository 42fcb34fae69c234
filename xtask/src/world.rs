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
        let _ = fs::remove_dir_all(&self.home);
    }
}
