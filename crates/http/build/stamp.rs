//! From which sources the page in `web/dist` was built: a hash beside it.
//!
//! Shared by the build script of this crate, which warns of an old page, and by xtask, which builds and checks it.

use std::io;
use std::path::{Path, PathBuf};

/// Where the hash is kept.
pub const FILE: &str = "web/dist/stamp";
/// What goes into the page: files, and directories with everything below them.
pub const SOURCES: &[&str] = &[
    "sdk/typescript/src",
    "sdk/typescript/tsconfig.json",
    "web/index.html",
    "web/phone",
    "web/package-lock.json",
    "web/public",
    "web/scripts/pack.mjs",
    "web/scripts/phone.mjs",
    "web/src",
    "web/tsconfig.json",
    "web/vite.config.ts",
];

/// What to say of a page that is not built from today's sources; nothing where it is.
pub fn complaint(root: &Path) -> io::Result<Option<&'static str>> {
    match std::fs::read_to_string(root.join(FILE)) {
        Ok(built_from) if built_from.trim() == of(root)? => Ok(None),
        Ok(_) => Ok(Some("the page is older than web/src: run cargo xtask web-build")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(Some("the page is not built: run cargo xtask web-build"))
        }
        Err(error) => Err(error),
    }
}

/// The hash of today's sources: of their paths and contents.
pub fn of(root: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    for source in SOURCES {
        collect(&root.join(source), &mut files)?;
    }
    files.sort();
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    for file in files {
        let content = std::fs::read(&file)?;
        let path = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        hash.add(format!("{path}\0{}\0", content.len()).as_bytes());
        hash.add(&content);
    }
    Ok(format!("{:016x}", hash.0))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        // What an editor or a desktop left is no source.
        if !entry.file_name().to_string_lossy().starts_with('.') {
            collect(&entry.path(), files)?;
        }
    }
    Ok(())
}

/// FNV-1a: it tells sources apart, and needs no crate in a build script.
struct Fnv(u64);

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_old_once_a_source_has_changed() {
        let root = std::env::temp_dir().join(format!("holdfast-stamp-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), text).unwrap();
        };
        for source in SOURCES {
            let is_dir = !source.contains('.');
            write(&if is_dir { format!("{source}/inner/a.ts") } else { (*source).to_owned() }, "one");
        }
        let says = || complaint(&root).unwrap().unwrap_or_default();
        assert!(says().starts_with("the page is not built"));
        write(FILE, &format!("{}\n", of(&root).unwrap()));
        assert_eq!(says(), "");
        write("web/src/.a.ts.swp", "of an editor");
        assert_eq!(says(), "");
        let changes = [("web/src/inner/a.ts", "two"), ("web/src/inner/b.ts", ""), ("web/package-lock.json", "two")];
        for (path, text) in changes {
            let before = of(&root).unwrap();
            write(path, text);
            assert_ne!(of(&root).unwrap(), before, "{path}");
            assert_eq!(says(), "the page is older than web/src: run cargo xtask web-build");
        }
        std::fs::remove_dir_all(&root).unwrap();
    }
}
