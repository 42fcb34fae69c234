//! Another machine over ssh: a server of the experiment's own, with its own keys, that serves one connection by a pipe. It opens no port.

use crate::browser::on_path;
use crate::place::{Place, Ran};
use crate::trial::{Stop, broken};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

/// Where the server is; it is on no user's search path.
const SERVER: &str = "/usr/sbin/sshd";
/// Where a server of root lets the process that reads a stranger's bytes live.
const EMPTY: &str = "/run/sshd";
/// What the far host is called.
pub const HOST: &str = "over-ssh";

/// A way to another home.
pub struct Ssh<'a> {
    near: &'a Place,
    made_empty: bool,
}

impl<'a> Ssh<'a> {
    /// What is missing for it.
    pub fn lacks() -> Option<&'static str> {
        match (Path::new(SERVER).is_file(), on_path("ssh").and(on_path("ssh-keygen"))) {
            (true, Some(_)) => None,
            (false, _) => Some("no sshd is installed"),
            (true, None) => Some("no ssh is installed"),
        }
    }

    /// Makes `far` known to `near`.
    pub fn join(near: &'a Place, far: &Place) -> Result<Ssh<'a>, Stop> {
        let fail = |error: std::io::Error| broken("an ssh server", error);
        let is_root = rustix::process::getuid().is_root();
        let made_empty = is_root && fs::DirBuilder::new().mode(0o755).create(EMPTY).is_ok();
        let ssh = Ssh { near, made_empty };
        let dir = near.path("ssh");
        fs::create_dir_all(&dir).map_err(fail)?;
        for key in ["id", "host_key"] {
            let mut make = Command::new("ssh-keygen");
            make.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(dir.join(key)).stdin(Stdio::null());
            if !make.status().map_err(fail)?.success() {
                return Err(broken("ssh-keygen", "it failed"));
            }
        }
        let (at, home) = (dir.display(), far.home().display().to_string());
        let config = format!(
            "HostKey {at}/host_key\nAuthorizedKeysFile {at}/id.pub\nStrictModes no\nUsePAM no\nPidFile none\n\
             SetEnv HOLDFAST_HOME={home} SHELL=/bin/sh\n"
        );
        fs::write(dir.join("sshd_config"), config).map_err(fail)?;
        let config = format!(
            "Host {HOST}\n  ProxyCommand {SERVER} -i -f {at}/sshd_config\n  IdentityFile {at}/id\n  IdentitiesOnly yes\n  \
             UserKnownHostsFile {at}/known\n  StrictHostKeyChecking accept-new\n  LogLevel ERROR\n"
        );
        fs::write(dir.join("ssh_config"), config).map_err(fail)?;
        let program = dir.join("ssh");
        fs::write(&program, format!("#!/bin/sh\nexec ssh -F {at}/ssh_config \"$@\"\n")).map_err(fail)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).map_err(fail)?;
        let binary = near.program().display().to_string();
        let added = ssh.run(&["hosts", "add", HOST, "--ssh", HOST, "--program", &binary])?;
        if added.status != 0 {
            return Err(broken("hosts add --ssh", added.err.trim()));
        }
        Ok(ssh)
    }

    /// Runs the program at the near one.
    pub fn run(&self, args: &[&str]) -> Result<Ran, Stop> {
        let program = self.near.path("ssh").join("ssh");
        self.near.run_with(args, &[("HOLDFAST_SSH", program.as_os_str())])
    }
}

impl Drop for Ssh<'_> {
    fn drop(&mut self) {
        // Ends the connection that commands share.
        let _ = self.run(&["hosts", "forget", HOST]);
        if self.made_empty {
            let _ = fs::remove_dir(EMPTY);
        }
    }
}
