//! The link of an invite: `https://RELAY/i#…`. Everything behind the `#` stays with whoever opens it: browsers do not send it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_types::HostKey;
use zeroize::Zeroizing;

/// Relays in a link: one host has two or three, and a QR code has room for no more.
pub const RELAYS_MAX: usize = 4;
/// Longest link that is read.
const LINK_BYTES_MAX: usize = 2048;
/// Longest address of a relay.
const RELAY_BYTES_MAX: usize = 200;
const NAME_BYTES_MAX: usize = 64;
const VERSION: u8 = 1;

/// What an invite carries.
#[derive(Clone, PartialEq, Eq)]
pub struct InviteLink {
    /// Where the host can be reached, as `https://NAME[:PORT]`; at least one.
    pub relays: Vec<String>,
    /// The host's key.
    pub host: HostKey,
    /// What the host calls itself; may be empty.
    pub name: String,
    /// Which invite.
    pub id: [u8; 16],
    /// Its secret.
    pub secret: Zeroizing<[u8; 32]>,
}

impl std::fmt::Debug for InviteLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "InviteLink({:?} {:?} {:?})", self.relays, self.host, self.name)
    }
}

/// Why a text is no invite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// There is nothing behind a `#`, or it cannot be read.
    #[error("this is not an invite link, or a part of it is missing")]
    Damaged,
    /// A later program made it.
    #[error("this invite is of version {0}, which this program does not know")]
    Version(u8),
}

impl InviteLink {
    /// The link.
    #[must_use]
    pub fn text(&self) -> String {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.host.0);
        bytes.extend_from_slice(&self.id);
        bytes.extend_from_slice(&*self.secret);
        bytes.push(u8::try_from(self.relays.len()).expect("relays are few"));
        for text in std::iter::once(&self.name).chain(&self.relays) {
            bytes.push(u8::try_from(text.len()).expect("names and addresses are bounded"));
            bytes.extend_from_slice(text.as_bytes());
        }
        let base = self.relays.first().map_or("", String::as_str);
        format!("{base}/i#{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Reads a link, or only what stands behind its `#`.
    pub fn read(text: &str) -> Result<InviteLink, LinkError> {
        let text = text.trim();
        let code = text.split_once('#').map_or(text, |(_, code)| code);
        if code.len() > LINK_BYTES_MAX {
            return Err(LinkError::Damaged);
        }
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(code).map_err(|_| LinkError::Damaged)?);
        let mut rest = match bytes.split_first() {
            Some((&VERSION, rest)) => rest,
            Some((version, _)) if text.contains('#') => return Err(LinkError::Version(*version)),
            _ => return Err(LinkError::Damaged),
        };
        let host = HostKey(take(&mut rest)?);
        let id = take(&mut rest)?;
        let secret = Zeroizing::new(take(&mut rest)?);
        let [count] = take(&mut rest)?;
        let mut texts = Vec::new();
        while let Some((length, behind)) = rest.split_first() {
            let (text, behind) = behind.split_at_checked(usize::from(*length)).ok_or(LinkError::Damaged)?;
            texts.push(String::from_utf8(text.to_vec()).map_err(|_| LinkError::Damaged)?);
            rest = behind;
        }
        let is_plain =
            |text: &String| text.len() <= RELAY_BYTES_MAX && text.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
        let relays = usize::from(count);
        if !(1..=RELAYS_MAX).contains(&relays) || texts.len() != 1 + relays || !texts.iter().all(is_plain) {
            return Err(LinkError::Damaged);
        }
        let relays = texts.split_off(1);
        let name = texts.remove(0);
        if name.len() > NAME_BYTES_MAX {
            return Err(LinkError::Damaged);
        }
        Ok(InviteLink { relays, host, name, id, secret })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], LinkError> {
    let (taken, behind) = rest.split_first_chunk().ok_or(LinkError::Damaged)?;
    *rest = behind;
    Ok(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> InviteLink {
        InviteLink {
            relays: vec!["https://a.example".into(), "https://b.example:8443".into()],
            host: HostKey([1; 32]),
            name: "gpu".into(),
            id: [2; 16],
            secret: Zeroizing::new([3; 32]),
        }
    }

    #[test]
    fn a_link_reads_back_whole_or_by_its_fragment_and_shows_no_secret() {
        let text = link().text();
        assert!(text.starts_with("https://a.example/i#"), "{text}");
        assert_eq!(InviteLink::read(&format!(" {text}\n")), Ok(link()));
        assert_eq!(InviteLink::read(text.split_once('#').unwrap().1), Ok(link()));
        assert!(!format!("{:?}", link()).contains("3, 3"));
    }

    #[test]
    fn a_link_that_is_cut_or_of_another_version_is_told() {
        let text = link().text();
        let start = text.find('#').unwrap();
        assert!((start..text.len()).all(|at| InviteLink::read(&text[..at]).is_err()));
        assert_eq!(InviteLink::read("https://a.example/i#Ag"), Err(LinkError::Version(2)));
        for bad in ["", "#", "https://a.example", "hello", "#!!"] {
            assert_eq!(InviteLink::read(bad), Err(LinkError::Damaged), "{bad}");
        }
    }
}
