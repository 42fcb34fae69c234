//! Socket paths of any length: the kernel takes 107 bytes, directories may be deeper.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Longest path in a socket address, less the terminating zero.
const PATH_BYTES_MAX: usize = 107;

/// A path that fits a socket address, and names the same file for as long as this lives.
#[derive(Debug)]
pub struct Address {
    path: PathBuf,
    /// Held open where the path goes through its descriptor.
    _dir: Option<File>,
}

impl Address {
    /// The address of a socket file, which need not exist yet; its directory must.
    pub fn of(path: &Path) -> io::Result<Address> {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if path.as_os_str().len() <= PATH_BYTES_MAX {
            return Ok(Address { path: path.to_owned(), _dir: None });
        }
        let dir = File::open(dir)?;
        let path = Path::new(&format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name);
        Ok(Address { path, _dir: Some(dir) })
    }

    /// What to give the kernel.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn a_socket_deep_down_can_be_bound_and_reached() {
        let top = std::env::temp_dir().join(format!("holdfast-address-{}", std::process::id()));
        let dir = top.join("d".repeat(60)).join("e".repeat(60));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("s");
        let listener = UnixListener::bind(Address::of(&path).unwrap().path()).unwrap();
        assert!(UnixStream::connect(Address::of(&path).unwrap().path()).is_ok());
        assert!(path.exists());
        drop(listener);
        std::fs::remove_dir_all(&top).unwrap();
    }
}
