//! The journal: what was written reads back, and what was changed since is found.

use crate::model::records;
use crate::world::{World, actor, burst, secret};
use holdfast_authority::journal::{Broken, Chain, Checker, End, What, at, entry, read, verify};
use holdfast_authority::proof::sign_act;
use holdfast_authority::*;
use holdfast_types::{Fence, SessionId};
use holdfast_types::{Nonce, Proof};

fn session() -> SessionId {
    SessionId::from_random_bits(7)
}

fn signed(name: &str, nonce: u8, ask: Ask) -> Input {
    let proof: Proof = sign_act(&secret(name), session(), Nonce([nonce; 16]), &ask);
    Input::Asked { by: Caller { actor: actor(name), operator: None, token: None }, ask, proof: Some(proof) }
}

/// A session's first segment, a line per record: header, typing, a seize, a refusal.
fn lines() -> (World, Chain, Vec<Vec<u8>>) {
    let mut world = World::new();
    let mut chain = Chain::default();
    let mut authority = Authority::new(world.authority.policy().clone());
    let now = |time_ms, at| Moment { time_ms, at };
    let mut all = vec![chain.append(&authority.rotate(session(), None, now(1, 0)))];
    let takes =
        |name: &str| Input::Types { by: Caller { actor: actor(name), operator: None, token: None }, fence: None };
    let typed = |fence, at, keys: Option<&[u8]>| Input::Wrote {
        fence: Fence(fence),
        burst: Burst { keys: keys.map(|keys| Keys(keys.to_vec())), ..burst(at, "12") },
        log: at,
        from: Source::Host,
    };
    let inputs = [
        (2, 0, Input::Started { by: actor("ann") }),
        (3, 10, takes("bot")),
        (3, 10, typed(1, 10, Some(b"ls"))),
        (4, 20, typed(1, 20, Some(&[0xff, 0x00]))),
        (5, 30, signed("ann", 1, Ask::Seize { freeze: false, reason: "it \"loops\"".into() })),
        (6, 40, typed(2, 40, None)),
        (7, 50, signed("bot", 2, Ask::Seize { freeze: true, reason: String::new() })),
        (8, 60, signed("ann", 3, Ask::Grant { to: actor("bot"), rights: "end".parse().unwrap(), until: Some(99) })),
    ];
    for (time_ms, at, input) in inputs {
        let answer = authority.handle(input, now(time_ms, at));
        all.extend(records(&answer.effects).iter().map(|record| chain.append(record)));
    }
    world.authority = authority;
    (world, chain, all)
}

fn broken(lines: &[Vec<u8>]) -> Broken {
    verify(&lines.concat(), None).expect_err("found")
}

#[test]
fn a_journal_reads_back_verifies_and_replays() {
    let (world, chain, lines) = lines();
    let bytes = lines.concat();
    let summary = verify(&bytes, None).unwrap();
    assert_eq!((summary.records, summary.signed, summary.unsigned), (9, 3, 0));
    assert_eq!((summary.session, Some(summary.last)), (session(), chain.last()));
    let reading = read(&bytes, None);
    assert_eq!((reading.end, reading.sound_bytes), (End::Clean, bytes.len()));
    let replayed = Authority::replay(world.authority.policy().clone(), reading.entries.iter().map(|e| &e.record));
    assert_eq!(replayed, world.authority);
}

#[test]
fn every_flipped_byte_is_found_in_its_record() {
    let (_, _, lines) = lines();
    let mut flips = 0;
    for (n, line) in lines.iter().enumerate() {
        for i in 0..line.len() {
            let mut changed = lines.clone();
            changed[n][i] ^= 1;
            match verify(&changed.concat(), None) {
                Err(broken) => assert_eq!(broken.seq, n as u64 + 1, "byte {i} of record {n}"),
                // The last line feed: the record is torn, and cut.
                Ok(summary) => assert_eq!((n, i, summary.records), (lines.len() - 1, line.len() - 1, n as u64)),
            }
            flips += 1;
        }
    }
    assert!(flips > 2000, "only {flips} bytes");
}

#[test]
fn removed_inserted_copied_and_reordered_records_are_found() {
    let (_, _, lines) = lines();
    let what = |lines: &[Vec<u8>]| broken(lines).what;
    for n in 1..lines.len() - 1 {
        let mut removed = lines.clone();
        removed.remove(n);
        assert_eq!(what(&removed), What::Removed { found: n as u64 + 2 });
        let mut swapped = lines.clone();
        swapped.swap(n, n + 1);
        assert_eq!(what(&swapped), What::Removed { found: n as u64 + 2 });
        let mut doubled = lines.clone();
        doubled.insert(n, lines[n].clone());
        assert_eq!(what(&doubled), What::OutOfOrder { found: n as u64 + 1 });
    }
    assert_eq!(what(&lines[1..]), What::Header);
    let mut twice = lines.clone();
    twice.insert(3, lines[0].clone());
    assert_eq!(what(&twice), What::Header);
    assert_eq!(what(&[]), What::Header);
}

/// Writes a segment anew with one record changed, every hash made to fit: what who holds the file could do.
fn rewritten(change: impl Fn(usize, &mut Record)) -> Vec<Vec<u8>> {
    let (_, _, lines) = lines();
    let mut chain = Chain::default();
    let entries = read(&lines.concat(), None).entries;
    let mut records: Vec<Record> = entries.into_iter().map(|entry| entry.record).collect();
    records.iter_mut().enumerate().for_each(|(n, record)| change(n, record));
    records.iter().map(|record| chain.append(record)).collect()
}

#[test]
fn a_forged_actor_is_found_even_when_every_hash_fits() {
    let is_seize = |record: &Record| matches!(record.act, Act::Asked(Ask::Seize { .. }));
    let forged = rewritten(|_, record| {
        if is_seize(record) {
            record.by = By::Actor(actor("bob"));
        }
    });
    assert_eq!(broken(&forged), Broken { seq: 6, what: What::Forged });
    let reworded = rewritten(|_, record| {
        if is_seize(record) {
            record.act = Act::Asked(Ask::Seize { freeze: false, reason: "for fun".into() });
        }
    });
    assert_eq!(broken(&reworded).what, What::Forged);
    assert_eq!(broken(&rewritten(|n, r| r.fence = if n == 7 { Fence(0) } else { r.fence })).what, What::FenceWentBack);
}

#[test]
fn a_signed_act_that_was_copied_is_found_even_when_every_hash_fits() {
    let (_, _, lines) = lines();
    let entries = read(&lines.concat(), None).entries;
    let mut chain = Chain::default();
    let copied = entries.iter().chain([&entries[5]]).map(|entry| {
        let fence = Fence(entry.record.fence.0.max(2));
        chain.append(&Record { fence, ..entry.record.clone() })
    });
    assert_eq!(broken(&copied.collect::<Vec<_>>()), Broken { seq: 10, what: What::Copied });
}

#[test]
fn a_torn_last_record_is_cut_and_never_fatal() {
    let (_, _, lines) = lines();
    let (last, before) = lines.split_last().unwrap();
    for cut in 1..last.len() {
        let bytes = [before.concat(), last[..cut].to_vec()].concat();
        let reading = read(&bytes, None);
        assert_eq!(reading.end, End::Torn { bytes: cut });
        assert_eq!(reading.sound_bytes, before.concat().len());
        assert_eq!(verify(&bytes, None).unwrap().torn_bytes, cut);
        let mut chain = Chain::after(reading.entries.last().map(|entry| entry.link()));
        let mut healed = before.to_vec();
        healed.push(chain.append(&read(&lines.concat(), None).entries.last().unwrap().record));
        assert_eq!(healed, lines, "and the next record goes in its place");
    }
    let zeros = [lines.concat(), vec![0; 4096]].concat();
    assert_eq!(verify(&zeros, None).unwrap().torn_bytes, 4096);
}

#[test]
fn a_segment_carries_the_chain_and_the_state_so_that_older_ones_can_go() {
    let (mut world, mut chain, first) = lines();
    let end = chain.last();
    let now = Moment { time_ms: 90, at: 70 };
    let mut second = chain.append(&world.authority.rotate(session(), end, now));
    let answer = world.authority.handle(signed("ann", 9, Ask::Release), now);
    records(&answer.effects).iter().for_each(|record| second.extend(chain.append(record)));
    for after in [end, None] {
        let summary = verify(&second, after).unwrap();
        assert_eq!((summary.records, Some(summary.last)), (2, chain.last()));
    }
    let alone = read(&second, None).entries;
    let replayed = Authority::replay(world.authority.policy().clone(), alone.iter().map(|entry| &entry.record));
    assert_eq!(replayed, world.authority);
    let cut = first[..first.len() - 1].concat();
    let shorter = verify(&cut, None).unwrap().last;
    assert_eq!(verify(&second, Some(shorter)).unwrap_err().what, What::OtherChain, "the end before was cut off");
}

/// Three segments of one journal, a line per record: the second and third begin with a header.
fn segments() -> Vec<Vec<Vec<u8>>> {
    let (mut world, mut chain, first) = lines();
    let mut all = vec![first];
    for nonce in [20, 30] {
        let now = Moment { time_ms: u64::from(nonce) * 10, at: 100 };
        let mut segment = vec![chain.append(&world.authority.rotate(session(), chain.last(), now))];
        for (nonce, ask) in [(nonce, Ask::Take), (nonce + 1, Ask::Release)] {
            let answer = world.authority.handle(signed("ann", nonce, ask), now);
            segment.extend(records(&answer.effects).iter().map(|record| chain.append(record)));
        }
        all.push(segment);
    }
    all
}

fn check(lines: &[Vec<u8>]) -> Result<Checker, Broken> {
    let mut checker = Checker::new();
    lines.iter().try_for_each(|line| checker.line(line.strip_suffix(b"\n").unwrap_or(line)).map(drop))?;
    Ok(checker)
}

#[test]
fn segment_behind_segment_is_one_chain_also_when_the_oldest_are_gone() {
    let segments = segments();
    for gone in 0..segments.len() {
        let lines = segments[gone..].concat();
        let checker = check(&lines).unwrap();
        let summary = checker.summary().unwrap();
        assert_eq!(summary.records as usize, lines.len());
        assert_eq!(summary.first as usize, 1 + segments[..gone].iter().map(Vec::len).sum::<usize>());
        assert_eq!(summary.last.seq as usize, segments.concat().len());
    }
    let signed = check(&segments.concat()).unwrap().summary().unwrap().signed;
    assert_eq!(signed, 7);
}

#[test]
fn what_was_done_to_a_journal_of_many_segments_is_found_in_its_place() {
    let segments = segments();
    let all = segments.concat();
    let what = |lines: &[Vec<u8>]| check(lines).expect_err("found");
    let mut changed = all.clone();
    for n in 0..all.len() {
        changed[n][10] ^= 1;
        assert_eq!(what(&changed).seq, n as u64 + 1);
        changed[n][10] ^= 1;
        let removed = [&all[..n], &all[n + 1..]].concat();
        // The last one's end cannot be seen in the chain: see the link kept elsewhere. Without the first no header begins, and the
        // start of the session is taken for what is kept of older segments.
        if n + 1 < all.len() {
            assert_eq!(what(&removed).seq, if n == 0 { 3 } else { n as u64 + 1 });
        }
    }
    let without_the_middle = [&segments[0][..], &segments[2]].concat();
    assert_eq!(what(&without_the_middle), Broken { seq: 10, what: What::OtherChain });
    let reordered = [&segments[0][..], &segments[2], &segments[1]].concat();
    assert_eq!(what(&reordered).seq, 10);
    let (first, second) = (segments[0].len(), segments[1].len());
    let mut swapped = all.clone();
    swapped.swap(first - 1, first + second - 1);
    assert_eq!(what(&swapped).seq, first as u64);
    let mut twice = all.clone();
    twice.insert(first + 1, all[first].clone());
    assert_eq!(what(&twice), Broken { seq: 11, what: What::OtherChain });
}

#[test]
fn a_signed_act_that_was_copied_into_a_later_segment_is_found_even_when_every_hash_fits() {
    let segments = segments();
    let all = segments.concat();
    let entries: Vec<_> = all.iter().map(|line| entry(line.strip_suffix(b"\n").unwrap()).unwrap()).collect();
    let seize = &entries[5];
    assert!(matches!(seize.record.act, Act::Asked(Ask::Seize { .. })), "{seize:?}");
    let mut chain = Chain::after(entries.last().map(|entry| entry.link()));
    let fence = entries.last().unwrap().record.fence;
    let copy = chain.append(&Record { fence, ..seize.record.clone() });
    let lines = [&all[..], &[copy]].concat();
    assert_eq!(check(&lines).unwrap_err(), Broken { seq: lines.len() as u64, what: What::Copied });
}

#[test]
fn a_refused_act_did_nothing_to_the_output() {
    let (_, _, lines) = lines();
    let mut entries = read(&lines.concat(), None).entries;
    let refusal = Refusal::Denied { right: holdfast_types::Right::Run, rule: Rule::Envelope };
    let refused = Record {
        at: 100,
        act: Act::Asked(Ask::Run { key: "k".into(), command: "rm".into() }),
        outcome: Outcome::Refused(refusal),
        ..entries[3].record.clone()
    };
    let (last, seq) = (entries[8].clone(), 10);
    entries.push(journal::Entry { seq, record: refused, ..last });
    assert_eq!(at(&entries, 200).map(|entry| entry.seq), Some(7));
}

#[test]
fn an_output_offset_leads_to_the_act_before_it() {
    let (_, _, lines) = lines();
    let entries = read(&lines.concat(), None).entries;
    let who = |offset| at(&entries, offset).and_then(|e| e.record.by.actor()).map(|actor| actor.handle.to_string());
    let cases = [
        (9, None),
        (10, Some("agent:bot")),
        (39, Some("agent:bot")),
        (40, Some("human:ann")),
        (500, Some("human:ann")),
    ];
    for (offset, expected) in cases {
        assert_eq!(who(offset).as_deref(), expected, "{offset}");
    }
}

#[test]
fn what_was_typed_while_echo_was_off_is_kept_as_a_length_only() {
    let (_, _, lines) = lines();
    let secret = String::from_utf8(lines[6].clone()).unwrap();
    assert!(secret.contains(r#""typed":{"from":40,"to":40,"len":2}"#), "{secret}");
    let open = String::from_utf8(lines[3].clone()).unwrap();
    assert!(open.contains(r#""keys":"ls""#), "{open}");
    assert!(String::from_utf8(lines[4].clone()).unwrap().contains(r#""keys":{"hex":"ff00"}"#));
}

#[test]
fn a_repeated_refusal_and_a_strangers_are_not_recorded() {
    let mut world = World::new();
    let count = |world: &mut World, name: &str| {
        let answer = world.ask(name, Ask::End { grace_ms: 0 });
        assert!(answer.reply.is_err());
        records(&answer.effects).len()
    };
    assert_eq!([count(&mut world, "bot"), count(&mut world, "bot"), count(&mut world, "kit")], [1, 0, 1]);
    assert_eq!([count(&mut world, "bot"), count(&mut world, "eve")], [1, 0]);
}

#[test]
fn what_a_keeper_wrote_by_itself_is_its_holders_also_when_it_comes_late_and_keeps_it_from_being_idle() {
    let mut world = World::new();
    assert!(world.ask("ann", Ask::Take).reply.is_ok());
    let operator = world.authority.next_operator();
    world.handle(Input::Attached { by: actor("ann"), operator });
    world.handle(Input::Joined { operator, connection: 77 });
    let other = world.authority.next_operator();
    world.handle(Input::Attached { by: actor("bot"), operator: other });
    world.handle(Input::Joined { operator: other, connection: 78 });
    assert!(world.ask("bot", Ask::Request).reply.is_ok());
    world.now += 31_000;
    let wrote_by = |world: &mut World, fence, connection| {
        let from = Source::Client(connection);
        let answer = world.handle(Input::Wrote { fence, burst: burst(0, "ls"), log: 64, from });
        records(&answer.effects).iter().find_map(|record| record.by.actor().map(|by| by.handle.to_string()))
    };
    let wrote = |world: &mut World, fence| wrote_by(world, fence, 77);
    let fence = world.authority.state().fence();
    assert_eq!(wrote(&mut world, fence).as_deref(), Some("human:ann"));
    assert_eq!(world.authority.state().turn().hold().map(|hold| hold.by.clone()), Some(actor("ann")));
    assert!(world.ask("bob", Ask::Seize { freeze: false, reason: "mine".into() }).reply.is_ok());
    assert_eq!(wrote(&mut world, fence).as_deref(), Some("human:ann"), "typed before the seize, drained after it");
    for connection in [78, 79] {
        assert_eq!(wrote_by(&mut world, fence, connection), None, "{connection} is no connection of who has the fence");
    }
    assert_eq!(world.authority.state().stranger_ms(), Some(world.now));
}
