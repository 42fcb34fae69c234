//! Homes and configurations that somebody else decides over are refused, with what to do about it.

use holdfast_harness::{Home, Ran, TESTER, settle};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

/// A user that is neither us nor root.
const OTHER: u32 = 54_321;

/// What is in a configuration that somebody planted.
fn planted(home: &Home) -> String {
    let rule = "[[notify]]\non = [\"exit\"]\nrun = [\"/usr/bin/touch\", ";
    format!("{rule}\"{}\"]\n", home.join("pwned").display())
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[track_caller]
fn refuses(home: &Home, dir: &Path, remedy: &str) {
    let run = |args: &[&str]| -> Ran {
        let mut command = home.command(args);
        command.env("HOLDFAST_HOME", dir).output().unwrap().into()
    };
    for args in [&["new", "-d", "--", "true"][..], &["ls"], &["whoami"], &["host", "run"], &["host", "spawn"]] {
        let ran = run(args);
        assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{args:?}: {ran}");
        assert!(ran.err.contains(remedy), "{args:?}: {ran}");
    }
    let doctor = run(&["doctor"]);
    assert_eq!(doctor.status, 1, "{doctor}");
    let line = doctor.out.lines().find(|line| line.split_whitespace().nth(1) == Some("home")).unwrap_or_default();
    assert!(line.starts_with("missing") && line.contains(remedy), "{doctor}");
    assert!(!home.join("pwned").exists());
    assert_eq!(home.processes(), [0; 0], "no host was started");
}

#[test]
fn a_home_or_configuration_that_others_can_write_is_refused_with_the_remedy() {
    let home = Home::new();
    let (dir, file) = (home.path().to_owned(), home.join("config.toml"));
    std::fs::write(&file, planted(&home)).unwrap();
    for mode in [0o664, 0o602] {
        set_mode(&file, mode);
        let ran = home.run(&["new", "-d", "--", "true"]);
        let remedy = format!("chmod go-w {}", file.display());
        assert!(ran.status == 1 && ran.err.contains(&remedy), "{ran}");
        let doctor = home.run(&["doctor"]);
        assert!(doctor.status == 1 && doctor.out.contains(&remedy), "{doctor}");
    }
    std::fs::remove_file(&file).unwrap();
    for mode in [0o770, 0o707, 0o1777] {
        set_mode(&dir, mode);
        refuses(&home, &dir, &format!("chmod go-w {}", dir.display()));
    }
    set_mode(&dir, 0o700);
    // Above it: whoever can rename what is there puts another in its place.
    let (open, inner) = (home.join("open"), home.join("open/inner"));
    std::fs::create_dir_all(&inner).unwrap();
    set_mode(&inner, 0o700);
    set_mode(&open, 0o777);
    refuses(&home, &inner, &format!("chmod go-w {}", open.display()));
    symlink(&inner, home.join("link")).unwrap();
    refuses(&home, &home.join("link"), &format!("chmod go-w {}", open.display()));
    // As /tmp is: nobody replaces what is another's there.
    set_mode(&open, 0o1777);
    settle(&inner, TESTER);
    let ran: Ran = home.command(&["ls"]).env("HOLDFAST_HOME", &inner).output().unwrap().into();
    assert_eq!(ran.status, 0, "{ran}");
    let ran: Ran = home.command(&["host", "stop"]).env("HOLDFAST_HOME", &inner).output().unwrap().into();
    assert_eq!(ran.status, 0, "{ran}");
}

#[test]
fn what_another_user_owns_is_refused_and_its_configuration_runs_nothing() {
    if !rustix::process::geteuid().is_root() {
        // Only root gives files away; CI runs this as root, and `holdfast-store` judges owners by their numbers.
        return eprintln!("needs root");
    }
    let home = Home::new();
    let theirs = home.join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::write(theirs.join("config.toml"), planted(&home)).unwrap();
    for path in [theirs.join("config.toml"), theirs.clone()] {
        chown(&path, Some(OTHER), Some(OTHER)).unwrap();
    }
    set_mode(&theirs, 0o755);
    refuses(&home, &theirs, "--home DIR");
    let below = theirs.join("below");
    std::fs::create_dir(&below).unwrap();
    set_mode(&below, 0o700);
    refuses(&home, &below, "--home DIR");
    // A link that somebody else made leads wherever it is made to lead next.
    let (mine, link) = (home.join("mine"), home.join("link"));
    std::fs::create_dir(&mine).unwrap();
    set_mode(&mine, 0o700);
    symlink(&mine, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(OTHER), Some(OTHER)).unwrap();
    refuses(&home, &link, "--home DIR");
    // The file alone, in a directory of ours.
    settle(&mine, TESTER);
    std::fs::copy(theirs.join("config.toml"), mine.join("config.toml")).unwrap();
    chown(mine.join("config.toml"), Some(OTHER), Some(OTHER)).unwrap();
    let ran: Ran = home.command(&["new", "-d", "--", "true"]).env("HOLDFAST_HOME", &mine).output().unwrap().into();
    assert!(ran.status == 1 && ran.err.contains("uid 54321"), "{ran}");
    assert!(!home.join("pwned").exists());
}
