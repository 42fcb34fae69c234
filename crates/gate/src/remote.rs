//! Commands whose effect is not a file: the machine, its processes and accounts, the network, what lies elsewhere.

use crate::line::Command;
use crate::risk::Risk;
use crate::word::Word;

/// What such a command risks.
pub(crate) fn risks(command: &Command) -> Vec<Risk> {
    let mut all = Vec::new();
    let word = |n: usize| command.operand(n).unwrap_or_default();
    let (first, second) = (word(0), word(1));
    let name = command.name();
    let mut add = |is: bool, risk: Risk| {
        if is {
            all.push(risk);
        }
    };
    machine(command, name, &first, &mut add);
    elsewhere(command, name, (&first, &second), &mut add);
    add(uses_network(command, &first), Risk::Network);
    add(command.via.iter().any(|via| crate::wrappers::ESCALATES.contains(&via.as_str())), Risk::Escalates);
    add(crate::wrappers::ESCALATES.contains(&name), Risk::Escalates);
    all
}

/// To this machine: its power, its processes, disks, accounts, firewall.
fn machine(command: &Command, name: &str, first: &str, add: &mut impl FnMut(bool, Risk)) {
    match name {
        "shutdown" | "reboot" | "halt" | "poweroff" | "kexec" => add(true, Risk::StopsMachine),
        "init" | "telinit" => add(matches!(first, "0" | "1" | "6"), Risk::StopsMachine),
        "systemctl" | "loginctl" => add(
            matches!(
                first,
                "poweroff" | "reboot" | "halt" | "kexec" | "suspend" | "hibernate" | "rescue" | "emergency" | "isolate"
            ),
            Risk::StopsMachine,
        ),
        "kill" => {
            let all_of_them = command.words.iter().skip(1).any(|word| matches!(word.beginning().as_str(), "-1"));
            add(
                all_of_them || command.operands().any(|word| word.text().as_deref() == Some("1")),
                Risk::KillsEverything,
            );
        }
        "killall5" => add(true, Risk::KillsEverything),
        "pkill" | "killall" | "skill" => {
            let patterns: Vec<String> = command.operands().filter_map(Word::text).collect();
            let any = |pattern: &String| pattern.is_empty() || pattern.chars().all(|c| ".*^$".contains(c));
            let by_user = command.has("uU", &["user", "euid", "uid"]);
            add(by_user || patterns.iter().any(any), Risk::KillsEverything);
            add(patterns.iter().any(|pattern| pattern.contains("holdfast")), Risk::ReachesHoldfast);
        }
        "mkfs" | "wipefs" | "blkdiscard" | "mkswap" | "sgdisk" | "sfdisk" | "fdisk" | "parted" | "cryptsetup"
        | "badblocks" => {
            let looks = command.has("l", &["list"]) || name == "parted" && command.operands().count() < 2;
            let opens = name == "cryptsetup" && !matches!(first, "luksFormat" | "erase" | "luksErase" | "reencrypt");
            let names_device = command.words.iter().any(|word| word.beginning().starts_with("/dev/"));
            add(!looks && !opens && names_device, Risk::DestroysDevice);
        }
        "userdel" | "usermod" | "useradd" | "groupdel" | "passwd" | "chpasswd" | "visudo" | "deluser" | "adduser" => {
            add(true, Risk::ChangesAccounts);
        }
        "iptables" | "ip6tables" => add(command.has("FX", &["flush"]), Risk::ChangesFirewall),
        "nft" => add(first == "flush", Risk::ChangesFirewall),
        "ufw" => add(matches!(first, "disable" | "reset"), Risk::ChangesFirewall),
        "crontab" => add(command.has("r", &[]), Risk::ChangesSchedule),
        _ if name.starts_with("mkfs.") => {
            add(command.words.iter().any(|word| word.beginning().starts_with("/dev/")), Risk::DestroysDevice);
        }
        _ => {}
    }
}

/// To what lies elsewhere: branches, clusters, databases, registries; and to Holdfast.
fn elsewhere(command: &Command, name: &str, (first, second): (&str, &str), add: &mut impl FnMut(bool, Risk)) {
    match name {
        "git" => git(command, add),
        "terraform" | "tofu" | "pulumi" | "cdk" => add(matches!(first, "destroy"), Risk::DestroysElsewhere),
        "kubectl" | "oc" => add(matches!(first, "delete" | "drain"), Risk::DestroysElsewhere),
        "helm" => add(matches!(first, "uninstall" | "delete"), Risk::DestroysElsewhere),
        "docker" | "podman" => {
            let prunes = second == "prune" && (first != "image" && first != "builder" || command.has("a", &["all"]));
            add(prunes || first == "volume" && second == "rm", Risk::DestroysElsewhere);
            // Whoever has the whole file system, or the daemon, in a container is root outside.
            let gives = |word: &Word| {
                let text = word.beginning();
                let text = text.trim_start_matches("-v").trim_start_matches("--volume=");
                text.starts_with("/:") || text.contains("docker.sock") || text.contains("source=/,")
            };
            add(command.has("", &["privileged"]) || command.words.iter().any(gives), Risk::Escalates);
        }
        "aws" => {
            let recursive =
                command.has("", &["recursive"]) && command.operands().any(|w| w.text().as_deref() == Some("rm"));
            let deletes = command
                .operands()
                .filter_map(Word::text)
                .any(|w| w == "rb" || w.starts_with("delete-") || w.starts_with("terminate-"));
            add(recursive || deletes, Risk::DestroysElsewhere);
        }
        "gcloud" | "az" | "doctl" | "flyctl" | "fly" | "heroku" => {
            let deletes = |text: String| matches!(text.as_str(), "delete" | "destroy" | "apps:destroy" | "pg:reset");
            add(command.operands().filter_map(Word::text).any(deletes), Risk::DestroysElsewhere);
        }
        "gh" => add(second == "delete" && matches!(first, "repo" | "release" | "secret"), Risk::DestroysElsewhere),
        "dropdb" | "dropuser" => add(true, Risk::DestroysElsewhere),
        "psql" | "mysql" | "mariadb" | "sqlite3" | "mongosh" | "redis-cli" => {
            let text = command.words.iter().map(|word| word.raw.to_ascii_lowercase()).collect::<Vec<_>>().join(" ");
            let drops =
                ["drop database", "drop table", "drop schema", "truncate table", "flushall", "flushdb", "dropdatabase"];
            add(drops.iter().any(|drop| text.contains(drop)), Risk::DestroysElsewhere);
        }
        "npm" | "cargo" | "twine" | "gem" | "pnpm" | "yarn" => {
            add(matches!(first, "publish" | "unpublish" | "upload" | "push" | "yank"), Risk::Publishes);
        }
        "holdfast" => add(
            first == "policy" && matches!(second, "set" | "edit")
                || first == "approvals" && matches!(second, "approve" | "deny")
                || first == "host" && second == "stop",
            Risk::ReachesHoldfast,
        ),
        _ => {}
    }
}

fn git(command: &Command, add: &mut impl FnMut(bool, Risk)) {
    let operands: Vec<String> = command.operands().map(|word| word.text().unwrap_or_default()).collect();
    // `git -C dir push`: the value of an option stands among the operands.
    let Some(at) = operands.iter().position(|word| word == "push") else { return };
    if at > 2 {
        return;
    }
    let forced = command.has("f", &["force", "mirror", "delete", "prune"]) || command.has("d", &[]);
    let plus = operands[at + 1..].iter().any(|word| word.starts_with('+') || word.starts_with(':'));
    add(forced || plus, Risk::RewritesRemote);
}

fn uses_network(command: &Command, first: &str) -> bool {
    match command.name() {
        "curl" | "wget" | "ssh" | "scp" | "sftp" | "nc" | "ncat" | "netcat" | "socat" | "ftp" | "telnet" | "aria2c"
        | "http" | "https" | "mosh" | "nmap" | "dig" | "ping" => true,
        "rsync" => command.operands().any(|word| word.beginning().contains(':')),
        "git" => command
            .operands()
            .take(3)
            .filter_map(Word::text)
            .any(|word| matches!(word.as_str(), "push" | "pull" | "fetch" | "clone" | "ls-remote" | "submodule")),
        "npm" | "pnpm" | "yarn" => {
            matches!(first, "install" | "i" | "add" | "ci" | "update" | "publish" | "exec" | "create" | "dlx")
        }
        "npx" | "uvx" | "pipx" => true,
        "pip" | "pip3" | "uv" | "poetry" => {
            matches!(first, "install" | "download" | "add" | "sync" | "publish" | "pip")
        }
        "cargo" => matches!(first, "install" | "update" | "add" | "publish" | "fetch" | "search"),
        "go" => matches!(first, "get" | "install"),
        "apt" | "apt-get" | "dnf" | "yum" | "apk" | "pacman" | "brew" | "snap" | "flatpak" => true,
        "docker" | "podman" => matches!(first, "pull" | "push" | "login" | "build" | "run" | "compose"),
        "gh" | "aws" | "gcloud" | "az" | "kubectl" | "helm" | "terraform" => true,
        _ => false,
    }
}
