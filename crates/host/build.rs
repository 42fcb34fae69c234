//! Builds the keeper and what stands around a portable session as small static programs, and hands them to the host to embed
//! (docs/decisions/0003, 0035); and the library that `criu restore` is started with.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let root = PathBuf::from(var("CARGO_MANIFEST_DIR")).join("../..");
    for watched in ["crates/keeper", "crates/abi", "crates/host/ctty", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    let out = PathBuf::from(var("OUT_DIR"));
    let target = var("TARGET");
    // A target directory of its own: the outer cargo holds the lock of the shared one.
    let target_dir = out.join("keeper-target");
    let status = Command::new(var("CARGO"))
        .args(["build", "--release", "--locked", "--package", "holdfast-keeper", "--bins"])
        .args(["--target", &target])
        .arg("--manifest-path")
        .arg(root.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target_dir)
        // What clippy or an outer wrapper set is meant for the outer build.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", "-C target-feature=+crt-static -C relocation-model=static")
        .env("CARGO_PROFILE_RELEASE_PANIC", "abort")
        .env("CARGO_PROFILE_RELEASE_LTO", "fat")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "2")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        .env("CARGO_PROFILE_RELEASE_STRIP", "true")
        .status()
        .expect("cargo runs, it runs us");
    assert!(status.success(), "the keeper could not be built");
    let built = target_dir.join(&target).join("release");
    for (program, embedded) in [("holdfast-keeper", "keeper"), ("holdfast-portable", "portable")] {
        std::fs::copy(built.join(program), out.join(embedded)).expect("it was just built");
    }
    // A library without libraries: it is loaded beside whatever C library CRIU runs with, also where this program is static.
    let mut library = Command::new(var("RUSTC"));
    if let Ok(linker) = std::env::var("RUSTC_LINKER") {
        library.arg("-C").arg(format!("linker={linker}"));
    }
    let status = library
        .args(["--edition", "2024", "--crate-type", "cdylib", "--target", &target])
        .args(["-C", "panic=abort", "-C", "opt-level=2", "-C", "strip=symbols", "-C", "link-arg=-nostdlib"])
        .args(["-C", "target-feature=-crt-static"])
        .arg("-o")
        .arg(out.join("ctty.so"))
        // Named from the root: its bytes say nothing of where they were made.
        .arg("crates/host/ctty/ctty.rs")
        .current_dir(&root)
        .status()
        .expect("rustc runs, it compiled us");
    assert!(status.success(), "the library for restoring terminals could not be built");
}

fn var(key: &str) -> String {
    std::env::var(key).unwrap_or_else(|_| panic!("cargo sets {key} for build scripts"))
}
