use holdfast_abi::protocol::{FRAME_BYTES_MAX, RIGHT_WRITE, ToKeeper, WRITER_ANY, refused};

use crate::harness::*;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn frames_that_make_no_sense_are_refused_and_at_last_the_connection_is_closed() {
    let session = Session::shell("read line");
    let mut host = session.host();
    let mut client = session.client(&mut host, 0);
    client.send_bytes(&[0x03, 1]).unwrap();
    assert_eq!(client.refused(), refused::FRAME);
    client.send_bytes(&vec![0x07; FRAME_BYTES_MAX + 1]).unwrap();
    assert_eq!(client.refused(), refused::FRAME);
    client.send_bytes(&[]).unwrap();
    assert_eq!(client.refused(), refused::FRAME);
    client.send_bytes(&[0x44]).unwrap();
    assert_eq!(client.refused(), refused::UNKNOWN);
    for _ in 0..13 {
        client.send_bytes(&[0x03]).unwrap();
        assert_eq!(client.refused(), refused::FRAME);
    }
    client.closed();
    host.sync();
}

/// Random datagrams, and random fields in well-formed frames, from clients of all kinds: the session goes on.
#[test]
fn noise_never_hurts_a_session() {
    let seed = 0x5eed_0001_u64;
    let mut random = Random(seed);
    let mut session = Session::raw("echo ready; cat >/dev/null");
    session.wait_for_text("ready");
    let mut host = session.host();
    host.send(ToKeeper::Writer { fence: 1, connection: WRITER_ANY });
    let (mut sent, mut connections) = (0, 0);
    while sent < 6000 {
        let mut client = match random.next() % 4 {
            0 => session.connect(),
            _ => session.client(&mut host, RIGHT_WRITE),
        };
        connections += 1;
        for _ in 0..random.next() % 200 {
            let mut datagram = vec![0; (random.next() % 100) as usize];
            datagram.iter_mut().for_each(|byte| *byte = random.next() as u8);
            if let Some(kind) = datagram.first_mut().filter(|_| random.0 & 1 == 0) {
                *kind = (random.0 >> 8) as u8 % 0x12;
            }
            let _ = client.pump();
            if client.send_bytes(&datagram).is_err() {
                break;
            }
            sent += 1;
        }
        while host.try_take(|_| Some(())).is_some() {}
    }
    assert!(connections > 20, "seed {seed:#x}");
    while host.try_take(|_| Some(())).is_some() {}
    host.sync();
    assert!(session.is_running());
    let files = session.open_files();
    assert!(files < 30, "seed {seed:#x}: {files} descriptors");
}
