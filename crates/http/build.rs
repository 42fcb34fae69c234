//! Puts the web client into the program: what lies in `web/dist`, or is made there where npm is; else a page that says how.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let web = root.join("web");
    println!("cargo::rerun-if-changed=build.rs");
    let dist = web.join("dist");
    if web.join("package.json").exists() && !dist.join("index.html").exists() {
        make(&web);
    }
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    collect(&dist, &dist, &mut files);
    files.sort();
    let mut code = String::from(
        "/// Every file of the web client: its path, and what it has.\npub const FILES: &[(&str, &[u8])] = &[\n",
    );
    for (name, path) in files {
        let path = path.canonicalize().expect("a file that was just listed");
        writeln!(code, "    ({name:?}, include_bytes!({path:?})),").expect("a text takes more");
    }
    code.push_str("];\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says where")).join("files.rs");
    std::fs::write(out, code).expect("cargo's own directory can be written to");
}

/// Builds it with npm. Without one, or without a network, the program is built all the same.
fn make(web: &Path) {
    for args in [&["ci", "--no-audit", "--no-fund"][..], &["run", "build"]] {
        let ran = Command::new("npm").args(args).current_dir(web).output();
        match ran {
            Ok(ran) if ran.status.success() => {}
            Ok(ran) => {
                let why = String::from_utf8_lossy(&ran.stderr);
                let last = why.lines().rev().find(|line| !line.is_empty()).unwrap_or_default();
                return println!("cargo::warning=the web client was not built (npm {}): {last}", args.join(" "));
            }
            Err(_) => return println!("cargo::warning=no npm: the program is built without the web client"),
        }
    }
}

fn collect(dist: &Path, dir: &Path, files: &mut Vec<(String, PathBuf)>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(dist, &path, files);
        } else if let Some(name) = path.strip_prefix(dist).ok().and_then(Path::to_str) {
            files.push((format!("/{name}"), path));
        }
    }
}
