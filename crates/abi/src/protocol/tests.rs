//! Every frame's bytes, pinned.

use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The bytes of every frame a host or client sends. They never change.
#[test]
fn the_bytes_of_every_frame_to_a_keeper_are_frozen() {
    const TOKEN: Token = [0xaa; 16];
    const AA: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    let mut patterns: [&[u8]; PATTERNS_MAX] = [&[]; PATTERNS_MAX];
    patterns[0] = b"\x1c";
    patterns[1] = b"\x1b[92;5u";
    let vectors: &[(ToKeeper, String)] = &[
        (ToKeeper::Hello { version: 1, role: 1, token: TOKEN }, format!("010101{AA}")),
        (ToKeeper::Follow { position: 0x0102, flags: 3 }, "02020100000000000003".into()),
        (ToKeeper::Ack { position: 5 }, "030500000000000000".into()),
        (ToKeeper::Sleep { position: 5, wake_at: 6 }, "0405000000000000000600000000000000".into()),
        (
            ToKeeper::Tty { flags: 3, path: b"/dev/pts/1", patterns },
            "05030a002f6465762f7074732f3101001c07001b5b39323b3575".into(),
        ),
        (ToKeeper::TtyBack, "06".into()),
        (
            ToKeeper::Input { fence: 1, stream: 2, seq: 3, bytes: b"ls" },
            "070100000000000000020000000000000003000000000000006c73".into(),
        ),
        (ToKeeper::Resize { fence: 1, cols: 80, rows: 24 }, "08010000000000000050001800".into()),
        (ToKeeper::Signal { fence: 1, target: 2, number: 15 }, "090100000000000000020f".into()),
        (ToKeeper::Admit { token: TOKEN, rights: 1 }, format!("0a{AA}01")),
        (ToKeeper::Writer { fence: 9, connection: WRITER_HOST }, "0b0900000000000000ffffffff".into()),
        (ToKeeper::Expel { connection: 4 }, "0c04000000".into()),
        (ToKeeper::Drained { position: 56 }, "0d3800000000000000".into()),
        (ToKeeper::End { grace_ms: 5000 }, "0e88130000".into()),
        (ToKeeper::Probe, "0f".into()),
        (ToKeeper::Flush { fence: 10 }, "100a00000000000000".into()),
        (
            ToKeeper::Spare { flags: 1, processes: &spare_list(&[(7, 8), (9, 10)]) },
            "1101070000000800000000000000090000000a00000000000000".into(),
        ),
        (
            ToKeeper::Lease { fence: 7, until_ms: 0x0102, flags: LEASE_HARD | LEASE_STILL, cgroup: b"/c" },
            "1207000000000000000201000000000000030200".to_owned() + "2f63",
        ),
    ];
    let mut out = vec![];
    for (frame, bytes) in vectors {
        frame.encode(&mut out);
        assert_eq!(&hex(&out), bytes, "{frame:?}");
        assert_eq!(ToKeeper::decode(&out), Ok(*frame));
    }
}

/// The bytes of every frame a keeper sends. They never change.
#[test]
fn the_bytes_of_every_frame_from_a_keeper_are_frozen() {
    let welcome = Welcome {
        version: 1,
        connection: 2,
        features: 0,
        head: 3,
        log_head: 4,
        fence: 5,
        cols: 80,
        rows: 24,
        child_pid: 6,
    };
    let vectors: &[(FromKeeper, &str)] = &[
        (
            FromKeeper::Welcome(welcome),
            "8101020000000000000000000000030000000000000004000000000000000500000000000000500018000600\
             0000",
        ),
        (FromKeeper::Wake { position: 7 }, "820700000000000000"),
        (FromKeeper::Keys { bytes: b"\x1cd" }, "831c64"),
        (FromKeeper::Written { stream: 1, seq: 2, head: 3 }, "84010000000000000002000000000000000300000000000000"),
        (
            FromKeeper::Refused { code: refused::STALE, fence: 1, stream: 2, seq: 3 },
            "8503010000000000000002000000000000000300000000000000",
        ),
        (FromKeeper::Resized { head: 1, cols: 80, rows: 24 }, "86010000000000000050001800"),
        (
            FromKeeper::Joined { connection: 1, pid: 2, token: [0xbb; 16], rights: 1 },
            "870100000002000000bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb01",
        ),
        (FromKeeper::Left { connection: 1, acked: 2 }, "88010000000200000000000000"),
        (FromKeeper::Logged { log_head: 3 }, "890300000000000000"),
        (
            FromKeeper::Probed { foreground: 1, iflag: 2, oflag: 3, lflag: 4, unread: 5 },
            "8a0100000002000000030000000400000005000000",
        ),
        (FromKeeper::Exited { status: 256, head: 9 }, "8b000100000900000000000000"),
        (
            FromKeeper::Fenced { fenced: 1, until_ms: 5, late_ms: 6, left: 7, head: 8 },
            "8c01050000000000000006000000070000000800000000000000",
        ),
    ];
    let mut out = vec![];
    for (frame, bytes) in vectors {
        frame.encode(&mut out);
        assert_eq!(&hex(&out), bytes, "{frame:?}");
        assert_eq!(FromKeeper::decode(&out), Ok(*frame));
    }
}

#[test]
fn cut_frames_are_malformed_and_unknown_kinds_are_named() {
    let mut out = vec![];
    ToKeeper::Hello { version: 1, role: 0, token: [1; 16] }.encode(&mut out);
    for cut in 0..out.len() {
        assert_eq!(ToKeeper::decode(&out[..cut]), Err(FrameError::Malformed), "cut at {cut}");
    }
    assert_eq!(ToKeeper::decode(&[0x7f, 1, 2]), Err(FrameError::Unknown(0x7f)));
    assert_eq!(FromKeeper::decode(&[0x01]), Err(FrameError::Unknown(0x01)));
    assert_eq!(ToKeeper::decode(&[0x11, 0, 1, 2]), Err(FrameError::Malformed));
    let oversized = vec![0x07; 25 + INPUT_BYTES_MAX + 1];
    assert_eq!(ToKeeper::decode(&oversized), Err(FrameError::Malformed));
}

/// Any bytes decode to a frame or an error; nothing panics.
#[test]
fn random_datagrams_never_panic() {
    let seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut state = seed;
    let mut decoded = 0;
    for _ in 0..200_000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let bytes = state.to_le_bytes().repeat(8);
        let datagram = &bytes[..(state >> 32) as usize % 64];
        decoded += usize::from(ToKeeper::decode(datagram).is_ok());
        decoded += usize::from(FromKeeper::decode(datagram).is_ok());
    }
    assert!(decoded > 100, "seed {seed:#x}: only {decoded} datagrams were frames");
}
