//! What a browser gets that opens an invite's link: the shell, as it was built into this program.
//!
//! The shell reads what stands behind the link's `#`, which is not sent here, and fetches everything else through the sealed channel from the
//! host. Nothing here knows a host or a secret.

use super::head::Extra;

/// A file: its path, its type and its bytes.
struct File(&'static str, &'static str, &'static [u8]);

macro_rules! built {
    ($name:literal) => {
        include_bytes!(concat!("../../../../web/dist/i/", $name))
    };
}

const FILES: &[File] = &[
    File("/i", "text/html; charset=utf-8", built!("index.html")),
    File("/i/shell.js", "text/javascript; charset=utf-8", built!("shell.js")),
    File("/i/shell.css", "text/css; charset=utf-8", built!("shell.css")),
    File("/i/sw.js", "text/javascript; charset=utf-8", built!("sw.js")),
    File("/i/icon.svg", "image/svg+xml", built!("icon.svg")),
    File("/i/icon-192.png", "image/png", built!("icon-192.png")),
    File("/i/manifest.webmanifest", "application/manifest+json", built!("manifest.webmanifest")),
];

/// Nothing from elsewhere. The frame that runs a host's page has no address of its own and inherits this: one small script of it is known by its hash.
const POLICY: &str = include_str!("../../../../web/dist/i/policy");

/// A file of the shell, and how it is answered.
pub(super) fn file(path: &str) -> Option<(&'static str, Extra, &'static [u8])> {
    let File(_, kind, bytes) = FILES.iter().find(|File(known, ..)| *known == path)?;
    Some((
        kind,
        Extra { policy: POLICY, more: "service-worker-allowed: /i\r\ncross-origin-opener-policy: same-origin\r\n" },
        bytes,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_asks_for_nothing_that_is_not_there() {
        let text = |path: &str| String::from_utf8(file(path).unwrap().2.to_vec()).unwrap();
        let (html, worker) = (text("/i"), text("/i/sw.js"));
        let mut count = 0;
        for part in html.split(['"', '\'']).chain(worker.split(['"', '\'', '`'])).filter(|part| part.starts_with("/i/"))
        {
            count += 1;
            assert!(file(part).is_some(), "{part}");
        }
        assert!(count > 4, "{count}");
        assert!(!html.contains("<script>") && !html.contains("style="), "nothing inline");
        assert!(POLICY.starts_with("default-src 'none'") && POLICY.contains("frame-ancestors 'none'"));
        assert!(!POLICY.contains("unsafe") && !POLICY.contains('\n'), "{POLICY}");
    }
}
