//! config.toml, the environment and `--home`.

use holdfast_harness::{Home, Ran, TESTER, settle};

#[test]
fn a_mistake_in_the_file_names_file_line_and_nearest_key() {
    let home = Home::new();
    let _settled = home.settle_snapshots();
    let mut told = String::new();
    for text in [
        "ring = \"1MiB\"\ngarce = \"1s\"\n",
        "detach-key = \"x\"\n",
        "colour = \"red\"\n",
        "ring = 12\n",
        "history_lines = \"many\"\n",
        "chord = \"\\u001b\"\n",
        "attach_history = 1\n",
        "ended_keep = \"1 fortnight\"\n",
        "grace = \n",
        "rights_agent = \"observe,fly\"\n",
        "metrics_listen = \"0.0.0.0:9464\"\n",
        "[host]\nring = 1\n",
    ] {
        std::fs::write(home.join("config.toml"), text).unwrap();
        let ran = home.run(&["new", "-d", "--", "true"]);
        assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{text}");
        told.push_str(&format!("{text}{}\n", ran.err));
    }
    insta::assert_snapshot!(told);
    assert_eq!(home.processes(), [0u32; 0], "no host was started");
    std::fs::remove_file(home.join("config.toml")).unwrap();
}

#[test]
fn a_wrong_variable_is_named() {
    let home = Home::new();
    let output = home.command(&["--json", "host", "start"]).env("HOLDFAST_GRACE", "x").output().unwrap();
    let error: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["error"]["code"], "config");
    assert!(error["error"]["message"].as_str().unwrap().starts_with("HOLDFAST_GRACE: expected seconds"), "{error}");
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let home = Home::new();
    std::fs::write(home.join("config.toml"), "ring = \"512k\"\nshell = \"/bin/cat\"\n").unwrap();
    let ring = |args: &[&str], variable: Option<&str>| {
        let mut command = home.command(&[&["--json", "new", "-d"], args].concat());
        command.envs(variable.map(|value| ("HOLDFAST_RING", value)));
        let output = command.output().unwrap();
        let view: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(view["command"], serde_json::json!(["/bin/cat"]), "the configured shell");
        view["ring_bytes"].as_u64().unwrap()
    };
    assert_eq!(ring(&[], None), 512 << 10);
    assert_eq!(ring(&[], Some("2m")), 2 << 20);
    assert_eq!(ring(&["--ring", "4MiB"], Some("2m")), 4 << 20);
}

#[test]
fn home_may_be_a_relative_path_and_wins_over_the_variable() {
    let home = Home::new();
    std::fs::create_dir(home.join("inner")).unwrap();
    settle(&home.join("inner"), TESTER);
    let output = home.command(&["--home", "inner", "--json", "host", "start"]).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["state"], home.join("inner").to_str().unwrap());
    assert_eq!(home.run(&["host", "status"]).status, 1, "the outer home has no host");
    let inner = home.join("inner");
    assert_eq!(home.run(&["--home", inner.to_str().unwrap(), "host", "stop"]).status, 0);
}

#[test]
fn a_home_that_cannot_be_is_named() {
    let home = Home::new();
    let _settled = home.settle_snapshots();
    std::fs::write(home.join("file"), "").unwrap();
    insta::assert_snapshot!("home_below_a_file", home.run(&["--home", "file/below", "ls"]));
    let output = home.command(&["ls"]).env_remove("HOLDFAST_HOME").env_remove("HOME").output().unwrap();
    insta::assert_snapshot!("no_home", Ran::from(output));
}
