//! Puts the page into the program as it lies in `web/dist`, built and packed by `cargo xtask web-build`; warns where it is old.

#[path = "build/stamp.rs"]
mod stamp;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Below this lie the files of the page in one piece.
const PHONE: &str = "/phone/";

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dist = root.join("web/dist");
    for source in ["build.rs", "build/stamp.rs"] {
        println!("cargo::rerun-if-changed={source}");
    }
    for source in stamp::SOURCES.iter().map(|source| root.join(source)).chain([dist.clone()]) {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    match stamp::complaint(&root) {
        Ok(complaint) => complaint.iter().for_each(|complaint| println!("cargo::warning={complaint}")),
        Err(error) => println!("cargo::warning=the sources of the page cannot be read: {error}"),
    }
    let mut files = BTreeMap::new();
    collect(&dist, &dist, &mut files);
    files.remove("/stamp");
    // The policy goes with the shell's files, and is none of them.
    files.remove("/i/policy");
    let (phone, files): (BTreeMap<_, _>, BTreeMap<_, _>) =
        files.into_iter().partition(|(name, _)| name.starts_with(PHONE));
    let mut code = String::from("/// Every file of the page, by its path.\nconst FILES: &[File] = &[\n");
    for (name, path) in &files {
        let Some(body) = body(name, path, &files) else { continue };
        writeln!(code, "    File {{ name: {:?}, tag: {:?}, body: {body} }},", served(name), tag(path))
            .expect("a text takes more");
    }
    code.push_str("];\n");
    code.push_str("/// The page in one piece, for browsers that come through a relay: names and bytes.\npub const PHONE: &[(&str, &[u8])] = &[\n");
    for (name, path) in &phone {
        writeln!(code, "    ({:?}, include_bytes!({path:?})),", &name[PHONE.len()..]).expect("a text takes more");
    }
    code.push_str("];\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says where")).join("files.rs");
    std::fs::write(out, code).expect("cargo's own directory can be written to");
}

/// The name under which a file is asked for.
fn served(name: &str) -> &str {
    name.strip_suffix(".gz").unwrap_or(name)
}

/// What a file has. The Brotli form has no entry of its own: it is the other form of the gzip one. Nor has a file that is there
/// packed: an earlier build left it.
fn body(name: &str, path: &Path, files: &BTreeMap<String, PathBuf>) -> Option<String> {
    if name.ends_with(".br") || files.contains_key(&format!("{name}.gz")) {
        return None;
    }
    let Some(br) = name.strip_suffix(".gz").and_then(|plain| files.get(&format!("{plain}.br"))) else {
        return Some(format!("Body::Plain(include_bytes!({path:?}))"));
    };
    Some(format!("Body::Packed {{ br: include_bytes!({br:?}), gzip: include_bytes!({path:?}) }}"))
}

/// By which a browser knows the content it has.
fn tag(path: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    std::fs::read(path).expect("a file that was just listed").hash(&mut hasher);
    format!("W/\"{:016x}\"", hasher.finish())
}

fn collect(dist: &Path, dir: &Path, files: &mut BTreeMap<String, PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(dist, &path, files);
        } else if let Some(name) = path.strip_prefix(dist).ok().and_then(Path::to_str) {
            files.insert(format!("/{name}"), path.canonicalize().expect("a file that was just listed"));
        }
    }
}
