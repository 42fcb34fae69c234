//! Files of a package, and archives of them whose bytes depend on nothing else: sorted, owned by root, all of one time.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

/// One file.
#[derive(Clone)]
pub struct File {
    /// Its permissions.
    pub mode: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Files by their path, without a slash at the beginning.
#[derive(Clone, Default)]
pub struct Files(BTreeMap<String, File>);

impl Files {
    /// A file that everybody reads.
    pub fn add(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), File { mode: 0o644, bytes: bytes.into() });
    }

    /// A program.
    pub fn add_program(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), File { mode: 0o755, bytes: bytes.into() });
    }

    /// The same files below a directory.
    #[must_use]
    pub fn below(&self, dir: &str) -> Files {
        Files(self.0.iter().map(|(path, file)| (format!("{dir}{path}"), file.clone())).collect())
    }

    /// All of them, in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &File)> {
        self.0.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Bytes of all files.
    pub fn size(&self) -> u64 {
        self.0.values().map(|file| file.bytes.len() as u64).sum()
    }

    /// A tar archive, with its directories.
    pub fn tar(&self, time: u64) -> Result<Vec<u8>> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut made = std::collections::BTreeSet::new();
        for (path, file) in &self.0 {
            for dir in parents(path) {
                if made.insert(dir.to_owned()) {
                    let mut header = header(time, 0o755, 0, tar::EntryType::Directory);
                    builder.append_data(&mut header, format!("{dir}/"), &[][..]).with_context(|| dir.to_owned())?;
                }
            }
            let mut header = header(time, file.mode, file.bytes.len() as u64, tar::EntryType::Regular);
            builder.append_data(&mut header, path, &file.bytes[..]).with_context(|| path.clone())?;
        }
        Ok(builder.into_inner()?)
    }

    /// The same, compressed.
    pub fn tar_gz(&self, time: u64) -> Result<Vec<u8>> {
        gzip(&self.tar(time)?)
    }

    /// A zip archive.
    pub fn zip(&self, time: u64) -> Result<Vec<u8>> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (path, file) in &self.0 {
            let options = zip::write::SimpleFileOptions::default()
                .compression_method(zip::CompressionMethod::Deflated)
                .last_modified_time(zip_time(time)?)
                .unix_permissions(file.mode);
            writer.start_file(path.as_str(), options)?;
            writer.write_all(&file.bytes)?;
        }
        Ok(writer.finish()?.into_inner())
    }
}

/// Directories above a path, outermost first.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).filter(|dir| !dir.is_empty() && *dir != ".")
}

fn header(time: u64, mode: u32, size: u64, kind: tar::EntryType) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// A moment as zip has it: from 1980 on, to two seconds.
fn zip_time(time: u64) -> Result<zip::DateTime> {
    let (days, rest) = (time / 86_400, time % 86_400);
    let (year, month, day) = date(days);
    let part = |number: u64| u8::try_from(number).context("a part of a day");
    zip::DateTime::from_date_and_time(
        u16::try_from(year.max(1980)).context("a year")?,
        part(month)?,
        part(day)?,
        part(rest / 3600)?,
        part(rest / 60 % 60)?,
        part(rest % 60)?,
    )
    .context("a moment that zip can say")
}

/// Year, month and day of a day counted from 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // Counted from the first of March of the year 0, so that a leap day is the last of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let first = (153 * month + 2) / 5;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    (era * 400 + year, month, day - first + 1)
}

/// A moment as RFC 3339 writes it.
pub fn moment(time: u64) -> String {
    let ((year, month, day), rest) = (date(time / 86_400), time % 86_400);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Compressed, without a name or a time.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// The archive of a Debian package: these members in this order.
pub fn ar(members: &[(&str, &[u8])], time: u64) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let length = bytes.len();
        out.extend(format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{length:<10}`\n", 0, 0, "100644").bytes());
        out.extend(*bytes);
        if length % 2 == 1 {
            out.push(b'\n');
        }
    }
    out
}

/// SHA-256, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Files {
        let mut files = Files::default();
        files.add("usr/share/b", "bee");
        files.add_program("usr/bin/a", "ay");
        files
    }

    #[test]
    fn an_archive_has_its_directories_first_and_is_the_same_each_time() {
        let bytes = some().tar(1_700_000_000).unwrap();
        assert_eq!(bytes, some().tar(1_700_000_000).unwrap());
        let mut archive = tar::Archive::new(&bytes[..]);
        let entries: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.path().unwrap().display().to_string(), entry.header().mode().unwrap()))
            .collect();
        let wanted =
            [("usr/", 0o755), ("usr/bin/", 0o755), ("usr/bin/a", 0o755), ("usr/share/", 0o755), ("usr/share/b", 0o644)];
        assert_eq!(entries, wanted.map(|(path, mode)| (path.to_owned(), mode)));
        assert_eq!(some().zip(1_700_000_000).unwrap(), some().zip(1_700_000_000).unwrap());
    }

    #[test]
    fn a_moment_is_its_date() {
        assert_eq!(moment(0), "1970-01-01T00:00:00Z");
        assert_eq!(moment(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(moment(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(moment(1_795_000_000), "2026-11-18T11:06:40Z");
    }

    #[test]
    fn members_of_a_debian_package_are_padded_to_even_lengths() {
        let bytes = ar(&[("debian-binary", b"2.0\n"), ("odd", b"x")], 7);
        assert_eq!(bytes.len(), 8 + 60 + 4 + 60 + 2);
        assert!(bytes.starts_with(b"!<arch>\ndebian-binary   7           0     0     100644  4         `\n2.0\n"));
    }
}
