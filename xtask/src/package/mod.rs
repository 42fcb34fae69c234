//! `cargo xtask package`: the program as people install it, and what says what it is made of.

mod archive;
mod build;
mod check;
mod content;
mod cross;
mod elsewhere;
mod kinds;
pub mod notes;
mod patched;
mod sbom;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use crate::step::{self, must, on_path, program, say, target};
use build::{needs, own_triple};
use cross::Depth;
use kinds::{Package, Source, filled};

/// The version of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Kinds of packages.
const KINDS: [&str; 4] = ["deb", "tar", "npm", "wheel"];

/// Static, for any Linux.
const STATIC: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

/// What was asked for.
struct Wanted {
    /// Where tools of other targets are kept.
    tools: PathBuf,
    /// One target; none: this machine's.
    triple: Option<String>,
    profile: String,
    program: Option<PathBuf>,
    out: PathBuf,
    only: Vec<String>,
    url: String,
    /// Seconds since 1970 that all files are of.
    time: u64,
    verify: bool,
    check: bool,
    /// Static programs too, for two processors.
    statics: bool,
    elsewhere: bool,
    /// A program of an earlier version.
    previous: Option<PathBuf>,
}

/// Makes packages, or checks them.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode> {
    let mut wanted = wanted(root, args)?;
    if wanted.elsewhere {
        return elsewhere::run(root, wanted.triple.as_deref());
    }
    if let Some(previous) = &wanted.previous {
        let program = wanted.program.clone().unwrap_or_else(|| target(root).join("debug/holdfast"));
        let mut versions = step::program("sh", root);
        must(versions.arg("packaging/check/versions.sh").arg(previous).arg(program))?;
        return Ok(ExitCode::SUCCESS);
    }
    if wanted.check {
        return check::run(root, wanted.program.as_deref());
    }
    wanted.time = time(root)?;
    make(root, &target(root), &wanted, &wanted.out)?;
    if wanted.verify {
        return verify(root, &wanted);
    }
    Ok(ExitCode::SUCCESS)
}

fn wanted(root: &Path, args: &[String]) -> Result<Wanted> {
    let mut wanted = Wanted {
        tools: root.to_owned(),
        triple: None,
        profile: "dist".into(),
        program: None,
        out: target(root).join("package"),
        only: KINDS.map(str::to_owned).to_vec(),
        url: "https://holdfast.invalid/releases".into(),
        time: 0,
        verify: false,
        check: false,
        statics: false,
        elsewhere: false,
        previous: None,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--target" => wanted.triple = Some(value()?.clone()),
            "--profile" => wanted.profile.clone_from(value()?),
            "--program" => wanted.program = Some(std::path::absolute(value()?)?),
            "--out" => wanted.out = std::path::absolute(value()?)?,
            "--url" => wanted.url.clone_from(value()?),
            "--only" => wanted.only = value()?.split(',').map(str::to_owned).collect(),
            "--verify" => wanted.verify = true,
            "--check" => wanted.check = true,
            "--static" => wanted.statics = true,
            "--elsewhere" => wanted.elsewhere = true,
            "--previous" => wanted.previous = Some(std::path::absolute(value()?)?),
            _ => bail!("`package` does not take {arg}; see: cargo xtask package --help"),
        }
    }
    if let Some(odd) = wanted.only.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
        bail!("there is no package {odd}; there are {}", KINDS.join(", "));
    }
    ensure!(!(wanted.verify && wanted.program.is_some()), "--verify builds the program itself: leave out --program");
    Ok(wanted)
}

/// Builds what is needed and writes the packages.
fn make(root: &Path, target: &Path, wanted: &Wanted, out: &Path) -> Result<Vec<Package>> {
    let mut packages: Vec<Package> = vec![];
    let own = own_triple(root)?;
    let builds = builds(wanted, &own)?;
    // Recipes have one tarball: the only one, or the static one.
    let recipes_of = if builds.len() == 1 { builds[0].0.clone() } else { STATIC[0].to_owned() };
    for (triple, kinds) in builds {
        let kinds: Vec<&str> =
            kinds.iter().filter(|kind| wanted.only.iter().any(|only| only == *kind)).copied().collect();
        if !kinds.is_empty() {
            packages.extend(made(root, target, wanted, &triple, &kinds, triple == recipes_of)?);
        }
    }
    let triple = wanted.triple.as_ref().unwrap_or(&own);
    packages.push((format!("holdfast-{VERSION}.cdx.json"), sbom::document(root, triple, VERSION, wanted.time)?.into()));
    packages.push(("Containerfile".into(), std::fs::read(root.join("docs/relay/Containerfile"))?));
    packages.sort();
    let sums: String = packages.iter().map(|(name, bytes)| format!("{}  {name}\n", archive::sha256(bytes))).collect();
    packages.push(("SHA256SUMS".into(), sums.into()));
    remove_earlier(out);
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    for (name, bytes) in &packages {
        std::fs::write(out.join(name), bytes).with_context(|| format!("cannot write {name}"))?;
        say(&format!("{:>12} bytes  {}", bytes.len(), out.join(name).display()));
    }
    Ok(packages)
}

/// Which targets, and which packages of each: the .deb and a tarball with this system's C library, everything else static.
fn builds(wanted: &Wanted, own: &str) -> Result<Vec<(String, Vec<&'static str>)>> {
    if wanted.program.is_some() || wanted.triple.is_some() || !wanted.statics {
        return Ok(vec![(wanted.triple.clone().unwrap_or_else(|| own.to_owned()), KINDS.to_vec())]);
    }
    // Before the first build, which takes long.
    for triple in STATIC {
        cross::prepare(&wanted.tools, triple, Depth::Linked).with_context(|| {
            format!("cannot build for {triple}; without --static only packages of this machine are made")
        })?;
    }
    let statics = STATIC.iter().map(|triple| ((*triple).to_owned(), vec!["tar", "npm", "wheel"]));
    Ok(std::iter::once((own.to_owned(), vec!["deb", "tar"])).chain(statics).collect())
}

/// The packages of one target.
fn made(
    root: &Path,
    target: &Path,
    wanted: &Wanted,
    triple: &str,
    kinds: &[&str],
    with_recipes: bool,
) -> Result<Vec<Package>> {
    let arch = triple.split('-').next().unwrap_or_default();
    let program = match &wanted.program {
        Some(program) => program.clone(),
        None => {
            let cross = cross::prepare(&wanted.tools, triple, Depth::Linked)?;
            build::program(root, target, triple, &wanted.profile, &cross)?
        }
    };
    let needs = needs(root, &program)?;
    let speaker = speaker(&wanted.tools, &program, arch)?;
    let source =
        Source { root, program: &program, speaker: &speaker, needs: &needs, version: VERSION, arch, time: wanted.time };
    let mut packages = vec![];
    for kind in kinds {
        let package = match *kind {
            "deb" => kinds::deb(&source)?,
            "npm" => kinds::npm(&source)?,
            "wheel" => kinds::wheel(&source)?,
            _ => kinds::tarball(&source)?,
        };
        if *kind == "tar" && with_recipes {
            packages.extend(recipes(&source, &package, &wanted.url)?);
        }
        packages.push(package);
    }
    Ok(packages)
}

/// Removes what an earlier run wrote, and nothing else: packages of an earlier version would be taken for today's.
fn remove_earlier(out: &Path) {
    let sums = std::fs::read_to_string(out.join("SHA256SUMS")).unwrap_or_default();
    for (_, name) in sums.lines().filter_map(|line| line.split_once("  ")).filter(|(_, name)| !name.contains('/')) {
        let _ = std::fs::remove_file(out.join(name));
    }
}

/// What other package managers make a package by, from the tarball.
fn recipes(source: &Source<'_>, (name, bytes): &Package, url: &str) -> Result<Vec<Package>> {
    let (sum, stem) = (archive::sha256(bytes), kinds::stem(source));
    let brew = if source.arch == "aarch64" { "arm64" } else { source.arch };
    let values = [
        ("VERSION", source.version),
        ("URL", url),
        ("TARBALL", name),
        ("STEM", &stem),
        ("SHA256", &sum),
        ("ARCH", source.arch),
        ("BREW_ARCH", brew),
    ];
    [("packaging/homebrew/holdfast.rb", "holdfast.rb"), ("packaging/aur/PKGBUILD", "PKGBUILD")]
        .into_iter()
        .map(|(path, name)| {
            let template =
                std::fs::read_to_string(source.root.join(path)).with_context(|| format!("cannot read {path}"))?;
            Ok((name.to_owned(), filled(&template, &values)?.into_bytes()))
        })
        .collect()
}

/// A program of this version that runs here: it writes completions and the manual page.
fn speaker(root: &Path, program: &Path, arch: &str) -> Result<PathBuf> {
    if own_triple(root)?.starts_with(arch) {
        return Ok(program.to_owned());
    }
    let own = target(root).join("debug/holdfast");
    ensure!(
        own.is_file(),
        "completions are written by the program, and that of {arch} does not run here: run `cargo build` first"
    );
    Ok(own)
}

/// The moment all files are of: what the builder says, or the last commit's.
fn time(root: &Path) -> Result<u64> {
    if let Ok(said) = std::env::var("SOURCE_DATE_EPOCH") {
        return said.parse().context("SOURCE_DATE_EPOCH is not a number");
    }
    ensure!(on_path("git").is_some(), "neither SOURCE_DATE_EPOCH nor git says which time the packages are of");
    let output = program("git", root).args(["log", "-1", "--format=%ct"]).output().context("cannot run git")?;
    String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .context("git does not say when the last commit was; set SOURCE_DATE_EPOCH")
}

/// Builds once more in a copy of the tree elsewhere: the same bytes must come out.
fn verify(root: &Path, wanted: &Wanted) -> Result<ExitCode> {
    let copy = std::env::temp_dir().join(format!("holdfast-verify-elsewhere-{}", std::process::id()));
    copied(root, &copy)?;
    let again = make(&copy, &copy.join("target"), wanted, &copy.join("packages"));
    let outcome = again.and_then(|again| {
        let differ: Vec<&str> = again
            .iter()
            .filter(|(name, bytes)| std::fs::read(wanted.out.join(name)).ok().as_ref() != Some(bytes))
            .map(|(name, _)| name.as_str())
            .collect();
        ensure!(
            differ.is_empty(),
            "two builds gave different bytes: {}; the second is in {}",
            differ.join(", "),
            copy.display()
        );
        Ok(again.len())
    });
    let same = outcome?;
    let _ = std::fs::remove_dir_all(&copy);
    say(&format!("built twice, in {} and elsewhere: {same} files with the same bytes", root.display()));
    Ok(ExitCode::SUCCESS)
}

/// The tree as it is here, without what git ignores.
fn copied(root: &Path, to: &Path) -> Result<()> {
    let output = program("git", root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).output();
    let output = output.context("cannot run git")?;
    ensure!(output.status.success(), "git ls-files failed");
    for path in String::from_utf8_lossy(&output.stdout).split('\0').filter(|path| !path.is_empty()) {
        let (from, to) = (root.join(path), to.join(path));
        if let Some(dir) = to.parent() {
            std::fs::create_dir_all(dir)?;
        }
        // One that was deleted and not yet committed.
        if from.is_file() {
            std::fs::copy(&from, &to).with_context(|| format!("cannot copy {path}"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use build::Needs;

    #[test]
    fn wrong_arguments_of_package_are_told() {
        let root = crate::root();
        let told = |line: &str| {
            let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            wanted(&root, &args).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(told("--only rpm").contains("there are deb, tar, npm, wheel"));
        assert!(told("--target").contains("needs a value"));
        assert!(told("--verify --program x").contains("--program"));
        assert!(told("now").contains("does not take now"));
        assert_eq!(told("--only deb,npm --profile dev"), "");
    }

    #[test]
    fn a_run_removes_what_an_earlier_one_wrote_and_nothing_else() {
        let dir = std::env::temp_dir().join(format!("hfpack{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        for (name, text) in
            [("old.deb", ""), ("photo", ""), ("SHA256SUMS", "abc  old.deb\nabc  ../photo\nabc  photo/../photo\n")]
        {
            std::fs::write(dir.join(name), text).unwrap();
        }
        remove_earlier(&dir);
        assert!(!dir.join("old.deb").exists() && dir.join("photo").exists());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn the_recipes_of_other_package_managers_are_filled_from_the_tarball() {
        let root = crate::root();
        let (program, needs) = (PathBuf::from("/bin/true"), Needs::Nothing);
        let source = Source {
            root: &root,
            program: &program,
            speaker: &program,
            needs: &needs,
            version: "1.2.3",
            arch: "x86_64",
            time: 0,
        };
        let made = recipes(
            &source,
            &("holdfast-1.2.3-x86_64-linux-gnu.tar.gz".into(), b"abc".to_vec()),
            "https://dist.invalid",
        )
        .unwrap();
        for (name, bytes) in made {
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains("https://dist.invalid/holdfast-1.2.3-x86_64-linux-gnu.tar.gz"), "{name}: {text}");
            assert!(
                text.contains("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
                "{name}: {text}"
            );
        }
    }
}
