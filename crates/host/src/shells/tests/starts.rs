//! Which starts are integrated, and that they keep their meaning.

use super::super::{Kind, integrate};
use super::pty::{Live, Setting};
use std::path::Path;

#[test]
fn only_plain_interactive_starts_are_touched() {
    let cases = [
        ("bash", "bash --rcfile /d/start.bash"),
        ("/usr/bin/bash -i", "/usr/bin/bash --rcfile /d/start.bash -i"),
        ("bash -l", "bash --posix -l"),
        ("bash -il --noprofile", "bash --posix -il"),
        ("bash -i --login", "bash --posix --login -i"),
        ("bash --norc", "bash --posix"),
        ("bash --rcfile x", "bash --rcfile /d/start.bash"),
        ("bash -c ls", ""),
        ("bash script", ""),
        ("bash -x", ""),
        ("bash --posix", ""),
        ("bash --rcfile", ""),
        ("bash -", ""),
        ("bash -i -- x", ""),
        ("zsh", "zsh"),
        ("zsh -l", "zsh -l"),
        ("zsh -f", "zsh"),
        ("zsh -fi", "zsh -i"),
        ("zsh -c ls", ""),
        ("zsh script", ""),
        ("zsh -o nullglob", ""),
        ("fish", "fish --init-command source '/s/fish.fish' '/d'"),
        ("fish -N -l", "fish --init-command source '/s/fish.fish' '/d' -N -l"),
        ("fish -c ls", ""),
        ("fish script", ""),
        ("fish -C ls", ""),
        ("sh", ""),
        ("dash -i", ""),
        ("mybash", ""),
        ("", ""),
    ];
    for (given, expected) in cases {
        let command: Vec<String> = given.split(' ').map(str::to_owned).collect();
        let original = vec![b"HOME=/h".to_vec(), b"ZDOTDIR=/z".to_vec()];
        let mut env = original.clone();
        let got = integrate(&command, None, &mut env, Path::new("/s"), Path::new("/d"));
        assert_eq!(got.as_ref().map(|g| g.argv.join(" ")).unwrap_or_default(), expected, "{given}");
        assert!(got.is_some() || env == original, "{given}");
    }
}

#[test]
fn each_start_reads_the_files_it_would_have_read() {
    let bash: &[(&str, &str)] = &[
        (".bash_profile", "READ=${READ}profile:"),
        (".profile", "READ=${READ}wrong:"),
        ("other rc", "READ=${READ}other:"),
    ];
    let zsh: &[(&str, &str)] = &[
        (".zshenv", "READ=${READ}env:"),
        (".zprofile", "READ=${READ}profile:"),
        (".zlogin", "READ=${READ}login:"),
        ("z/.zshenv", "READ=${READ}zenv:"),
        ("z/.zshrc", "READ=${READ}zrc:"),
    ];
    let moved: &[(&str, &str)] = &[(".zshenv", "ZDOTDIR=$HOME/z"), ("z/.zshrc", "READ=${READ}zrc:")];
    let rc = "READ=${READ}rc:";
    type Case<'a> = (Kind, &'a [(&'a str, &'a str)], &'a [&'a str], Option<&'a str>, &'a [(&'a str, &'a str)], &'a str);
    let cases: &[Case] = &[
        (Kind::Bash, bash, &[], None, &[], "rc:"),
        (Kind::Bash, bash, &["-l"], None, &[], "profile:"),
        (Kind::Bash, bash, &[], Some("-bash"), &[], "profile:"),
        (Kind::Bash, bash, &["--noprofile", "-l"], None, &[], ""),
        (Kind::Bash, bash, &["--norc"], None, &[], ""),
        (Kind::Bash, bash, &["--rcfile", "other rc"], None, &[], "other:"),
        (Kind::Bash, &[(".profile", "READ=p:")], &["-l"], None, &[("ENV", "/dev/null")], "p:"),
        (Kind::Zsh, zsh, &[], None, &[], "env:rc:"),
        (Kind::Zsh, zsh, &["-l"], None, &[], "env:profile:rc:login:"),
        (Kind::Zsh, zsh, &[], Some("-zsh"), &[], "env:profile:rc:login:"),
        (Kind::Zsh, zsh, &["-f"], None, &[], ""),
        (Kind::Zsh, zsh, &[], None, &[("ZDOTDIR", "~/z")], "zenv:zrc:"),
        (Kind::Zsh, moved, &[], None, &[], "zrc:"),
        (Kind::Fish, &[], &[], None, &[], "rc:"),
        (Kind::Fish, &[], &["-N"], None, &[], ""),
        (Kind::Fish, &[], &[], Some("-fish"), &[], "rc:"),
    ];
    for (kind, files, arguments, argv0, env, expected) in cases {
        let rc = if *kind == Kind::Fish { "set -g READ \"$READ\"rc:" } else { rc };
        let setting = Setting { rc, files, arguments, argv0: *argv0, env };
        let mut live = Live::start(*kind, &setting);
        assert_eq!(
            live.run("echo \"<$READ>\"").words(),
            format!("<{expected}>"),
            "{kind:?} {arguments:?} {argv0:?} {env:?}"
        );
        let login = argv0.is_some() || arguments.contains(&"-l");
        let (ask, yes) = match kind {
            Kind::Bash => ("shopt -q login_shell; echo $?; echo $-; set -o | grep posix", "0"),
            Kind::Zsh => ("[[ -o login ]]; echo $?; echo $-", "0"),
            Kind::Fish => ("status is-login; echo $status", "0"),
        };
        let told = live.run(ask).words();
        assert_eq!(told.starts_with(yes), login, "{kind:?} {arguments:?} {argv0:?}: {told}");
        assert!(!told.contains("posix on"), "{told}");
        let home = live.home().display().to_string();
        let left = live.run("env | grep -e ^ENV= -e ^ZDOTDIR= -e POSIX").words();
        let kept: Vec<String> =
            env.iter().map(|(name, value)| format!("{name}={}", value.replace('~', &home))).collect();
        assert_eq!(left, kept.join(" "), "{kind:?} {arguments:?}");
        if *kind == Kind::Bash {
            assert_eq!(live.run("echo $HISTFILE").words(), format!("{home}/.bash_history"), "{arguments:?}");
        }
    }
}
