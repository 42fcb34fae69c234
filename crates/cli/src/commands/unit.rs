//! `holdfast host install-unit`: the host comes up with the machine, by systemd's manager of this user.

use crate::args::UnitArgs;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{print, print_json};
use holdfast_host::user;
use serde_json::json;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NAME: &str = "holdfast.service";

/// `holdfast host install-unit`.
pub fn install(here: &Here, args: &UnitArgs) -> Result<u8, Failure> {
    let text = unit(&here.program, std::env::var_os("HOLDFAST_HOME").map(PathBuf::from).as_deref())?;
    if args.print {
        print(text)?;
        return Ok(0);
    }
    if !Path::new("/run/systemd/system").exists() {
        let hint = format!(
            "start the host at boot by other means, for example in your crontab: @reboot {} host start\nto see the unit: holdfast host install-unit --print",
            here.program.display()
        );
        return Err(Failure::new("no_systemd", "this machine does not run systemd").hint(hint));
    }
    let path = directory()?.join(NAME);
    if args.remove {
        manager(&["disable", NAME]);
        std::fs::remove_file(&path).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(Failure::io(format!("cannot remove {}", path.display()), error)),
        })?;
        manager(&["daemon-reload"]);
        return told(here, &path, "removed", None);
    }
    let cannot = |error| Failure::io(format!("cannot write {}", path.display()), error);
    std::fs::create_dir_all(directory()?).map_err(cannot)?;
    std::fs::write(&path, text).map_err(cannot)?;
    let enabled = manager(&["daemon-reload"]) && manager(&["enable", NAME]);
    let user = user::find().map_or_else(|| "USER".to_owned(), |user| user.name);
    let lingers = Path::new("/var/lib/systemd/linger").join(&user).exists();
    let next = match (enabled, lingers) {
        (false, _) => Some(format!("could not enable it; run: systemctl --user enable {NAME}")),
        (true, false) => {
            Some(format!("to start it at boot and not at your first login: loginctl enable-linger {user}"))
        }
        (true, true) => None,
    };
    told(here, &path, "installed", next)
}

fn told(here: &Here, path: &Path, done: &str, next: Option<String>) -> Result<u8, Failure> {
    if here.json {
        print_json(&json!({ "unit": path, "done": done, "next": next }))?;
    } else {
        print(format!("{done} {}\n", path.display()))?;
        if let Some(next) = next {
            print(format!("{next}\n"))?;
        }
    }
    Ok(0)
}

fn directory() -> Result<PathBuf, Failure> {
    let set = |key: &str| std::env::var_os(key).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
    let config =
        config.ok_or_else(|| Failure::new("no_home", "cannot find the directory of units: HOME is not set"))?;
    Ok(config.join("systemd/user"))
}

/// Asks the user's manager; true where it did so.
fn manager(words: &[&str]) -> bool {
    let mut command = Command::new("systemctl");
    command.arg("--user").args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The unit. A stop of it ends the host and no session: keepers are in its cgroup.
fn unit(program: &Path, home: Option<&Path>) -> Result<String, Failure> {
    let quoted = |path: &Path| -> Result<String, Failure> {
        let bytes = path.as_os_str().as_bytes();
        let text =
            std::str::from_utf8(bytes).ok().filter(|text| !text.chars().any(|c| c.is_control() || "\"\\".contains(c)));
        let text = text.ok_or_else(|| Failure::new("bad_request", format!("a unit cannot name {}", path.display())))?;
        // A percent sign begins a specifier, a dollar sign a variable.
        Ok(format!("\"{}\"", text.replace('%', "%%").replace('$', "$$")))
    };
    let home =
        home.map(|home| Ok::<_, Failure>(format!("Environment=HOLDFAST_HOME={}\n", quoted(home)?))).transpose()?;
    Ok(format!(
        "# Written by `holdfast host install-unit`.\n[Unit]\nDescription=Holdfast: keeps terminal sessions alive\n\n[Service]\n\
         ExecStart={} host run\n{}# Stopping the host must not end the sessions' keepers.\nKillMode=process\nRestart=on-failure\n\n[Install]\nWantedBy=default.target\n",
        quoted(program)?,
        home.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_leaves_keepers_alone_and_quotes_what_it_names() {
        insta::assert_snapshot!(unit(Path::new("/opt/my bin/holdfast"), Some(Path::new("/srv/50%"))).unwrap(), @r#"
        # Written by `holdfast host install-unit`.
        [Unit]
        Description=Holdfast: keeps terminal sessions alive

        [Service]
        ExecStart="/opt/my bin/holdfast" host run
        Environment=HOLDFAST_HOME="/srv/50%%"
        # Stopping the host must not end the sessions' keepers.
        KillMode=process
        Restart=on-failure

        [Install]
        WantedBy=default.target
        "#);
        assert!(unit(Path::new("/a\nExecStart=/evil"), None).is_err());
    }
}
