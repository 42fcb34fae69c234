//! What a carrier of the channel's messages can do to it: stop it, and nothing else.

#![allow(clippy::unwrap_used)]

use holdfast_channel::{
    Asks, Channel, ChannelError, Initiator, Invited, Kind, Responder, Secret, Welcome, exchange_key,
};
use holdfast_channel::{DATA_BYTES_MAX, REKEY_BYTES, REKEY_FRAMES, REKEY_MS};
use zeroize::Zeroizing;

fn host() -> Secret {
    Secret::new([1; 32])
}

fn client() -> Secret {
    Secret::new([2; 32])
}

fn invited(secret: u8) -> Invited {
    Invited { id: [9; 16], secret: Zeroizing::new([secret; 32]) }
}

fn begin() -> (Initiator, Vec<u8>) {
    Initiator::new(&client(), &host().public(), None, [3; 32]).unwrap()
}

fn joined() -> (Channel, Channel) {
    let (initiator, first) = begin();
    let responder = Responder::read(&host(), &first, [4; 32]).unwrap();
    assert_eq!(responder.asks(), Asks::Known(exchange_key(&client().public()).unwrap()));
    let (theirs, second) = responder.welcome(&"human:ann".parse().unwrap()).unwrap();
    let (ours, welcome) = initiator.finish(&second).unwrap();
    assert_eq!(welcome, Welcome::Known("human:ann".parse().unwrap()));
    (ours, theirs)
}

fn one(channel: &mut Channel, body: &[u8]) -> Vec<u8> {
    let mut messages = channel.seal(Kind::Data, body, 0).unwrap();
    assert_eq!(messages.len(), 1);
    messages.remove(0)
}

#[test]
fn any_changed_bit_of_a_handshake_ends_it() {
    let (_, first) = begin();
    for at in 0..first.len() {
        let mut bad = first.clone();
        bad[at] ^= 1 << (at % 8);
        assert!(Responder::read(&host(), &bad, [4; 32]).is_err(), "byte {at}");
        assert!(Responder::read(&host(), &first[..at], [4; 32]).is_err(), "cut at {at}");
    }
    let (_, second) =
        Responder::read(&host(), &first, [4; 32]).unwrap().welcome(&"human:ann".parse().unwrap()).unwrap();
    for at in 0..second.len() {
        let mut bad = second.clone();
        bad[at] ^= 1 << (at % 8);
        assert!(begin().0.finish(&bad).is_err(), "byte {at}");
    }
}

#[test]
fn a_host_with_another_key_cannot_answer() {
    let (_, first) = begin();
    let other = Secret::new([7; 32]);
    assert_eq!(Responder::read(&other, &first, [4; 32]).unwrap_err(), ChannelError::Handshake);
    // Nor can one that was itself dialled pass the answer on.
    let (_, own) = Initiator::new(&client(), &other.public(), None, [5; 32]).unwrap();
    let (_, second) = Responder::read(&other, &own, [6; 32]).unwrap().welcome(&"human:ann".parse().unwrap()).unwrap();
    assert_eq!(begin().0.finish(&second).unwrap_err(), ChannelError::Handshake);
}

#[test]
fn a_repeated_first_message_opens_no_channel_that_its_repeater_could_use() {
    let (initiator, first) = begin();
    let (mut one_side, second) =
        Responder::read(&host(), &first, [4; 32]).unwrap().welcome(&"human:ann".parse().unwrap()).unwrap();
    let (mut ours, _) = initiator.finish(&second).unwrap();
    let sent = one(&mut ours, b"rm -rf build");
    assert!(one_side.open(&sent).is_ok());
    // The same messages again, to a host that draws other random bytes.
    let (mut again, _) =
        Responder::read(&host(), &first, [8; 32]).unwrap().welcome(&"human:ann".parse().unwrap()).unwrap();
    assert_eq!(again.open(&sent).unwrap_err(), ChannelError::Frame);
    assert_ne!(again.binding(), ours.binding());
}

#[test]
fn an_invite_needs_its_secret_on_both_sides() {
    let (initiator, first) = Initiator::new(&client(), &host().public(), Some(&invited(5)), [3; 32]).unwrap();
    let read = || Responder::read(&host(), &first, [4; 32]).unwrap();
    assert_eq!(read().asks(), Asks::Invited { key: exchange_key(&client().public()).unwrap(), id: [9; 16] });
    let (_, wrong) = read().welcome_guest(&[6; 32]).unwrap();
    let (_, right) = read().welcome_guest(&[5; 32]).unwrap();
    assert_eq!(initiator.finish(&wrong).unwrap_err(), ChannelError::Handshake);
    let (initiator, _) = Initiator::new(&client(), &host().public(), Some(&invited(5)), [3; 32]).unwrap();
    assert_eq!(initiator.finish(&right).unwrap().1, Welcome::Invited);
    // A guest without it cannot read the answer either, so it never sends a frame that opens.
    let (guesser, first) = Initiator::new(&client(), &host().public(), Some(&invited(7)), [3; 32]).unwrap();
    let (_, second) = Responder::read(&host(), &first, [4; 32]).unwrap().welcome_guest(&[5; 32]).unwrap();
    assert_eq!(guesser.finish(&second).unwrap_err(), ChannelError::Handshake);
}

#[test]
fn a_client_that_is_not_known_is_told_by_the_host_itself() {
    let (initiator, first) = begin();
    let second = Responder::read(&host(), &first, [4; 32]).unwrap().refuse().unwrap();
    assert_eq!(initiator.finish(&second).unwrap().1, Welcome::Unknown);
}

/// What a relay makes of the messages it passes on.
type Deed = fn(Vec<Vec<u8>>) -> Vec<Vec<u8>>;

#[test]
fn a_frame_that_is_changed_lost_repeated_moved_or_made_up_kills_the_channel() {
    let hostile: [(&str, Deed); 6] = [
        ("flipped", |mut m| {
            m[1][5] ^= 4;
            m
        }),
        ("dropped", |mut m| {
            m.remove(1);
            m
        }),
        ("repeated", |mut m| {
            m.insert(1, m[0].clone());
            m
        }),
        ("swapped", |mut m| {
            m.swap(1, 2);
            m
        }),
        ("made up", |mut m| {
            m.insert(1, vec![7; 40]);
            m
        }),
        ("cut", |mut m| {
            m[1].pop();
            m
        }),
    ];
    for (how, change) in hostile {
        let (mut ours, mut theirs) = joined();
        let sent: Vec<Vec<u8>> = [&b"one"[..], b"two", b"three"].map(|body| one(&mut ours, body)).to_vec();
        let mut opened = Vec::new();
        let mut failed = None;
        for message in change(sent) {
            match theirs.open(&message) {
                Ok((_, body)) => opened.push(body),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        assert_eq!((opened, failed), (vec![b"one".to_vec()], Some(ChannelError::Frame)), "{how}");
        assert_eq!(theirs.seal(Kind::Alive, b"", 0), Err(ChannelError::Dead), "{how}");
        assert_eq!(theirs.open(&one(&mut ours, b"four")), Err(ChannelError::Dead), "{how}");
    }
}

#[test]
fn a_frame_of_one_direction_is_none_of_the_other() {
    let (mut ours, mut theirs) = joined();
    let sent = one(&mut ours, b"x");
    assert!(ours.open(&sent).is_err());
    assert!(theirs.open(&sent).is_ok());
}

#[test]
fn keys_change_by_time_frames_and_bytes_and_the_channel_goes_on() {
    let (mut ours, mut theirs) = joined();
    let mut send = |body: &[u8], now_ms| -> Vec<Kind> {
        let messages = ours.seal(Kind::Data, body, now_ms).unwrap();
        let opened = messages.iter().map(|message| theirs.open(message).unwrap());
        let opened: Vec<_> = opened.collect();
        assert_eq!(opened.last().unwrap().1, body);
        opened.into_iter().map(|(kind, _)| kind).collect()
    };
    assert_eq!(send(b"x", 5), [Kind::Data]);
    assert_eq!(send(b"x", REKEY_MS + 4), [Kind::Data]);
    assert_eq!(send(b"x", REKEY_MS + 5), [Kind::Rekey, Kind::Data]);
    assert_eq!(send(b"x", REKEY_MS + 6), [Kind::Data]);
    let large = vec![7; DATA_BYTES_MAX];
    let mut changes = 0;
    for _ in 0..=REKEY_BYTES / DATA_BYTES_MAX as u64 {
        changes += usize::from(send(&large, REKEY_MS + 7).len() == 2);
    }
    assert_eq!(changes, 1);
    for _ in 0..=REKEY_FRAMES {
        changes += usize::from(send(b"x", REKEY_MS + 8).len() == 2);
    }
    assert_eq!(changes, 2);
}

#[test]
fn an_end_is_the_end_and_nothing_longer_than_a_frame_is_sealed() {
    let (mut ours, mut theirs) = joined();
    assert_eq!(ours.seal(Kind::Data, &vec![0; DATA_BYTES_MAX + 1], 0), Err(ChannelError::Long));
    assert_eq!(ours.seal(Kind::Data, b"", 0), Err(ChannelError::Long));
    assert_eq!(ours.seal(Kind::Alive, b"x", 0), Err(ChannelError::Long));
    let end = ours.seal(Kind::End, b"", 0).unwrap();
    assert_eq!(theirs.open(&end[0]), Ok((Kind::End, Vec::new())));
    assert_eq!(ours.seal(Kind::Alive, b"", 0), Err(ChannelError::Dead));
    // The other direction goes on.
    let answer = one(&mut theirs, b"bye");
    assert_eq!(ours.open(&answer), Ok((Kind::Data, b"bye".to_vec())));
    assert_eq!(theirs.open(&[0; 40]), Err(ChannelError::Dead));
}
