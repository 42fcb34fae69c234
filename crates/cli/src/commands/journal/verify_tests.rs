use super::super::source::join;
use super::*;
use holdfast_authority::journal::{Chain, entry};
use holdfast_authority::proof::{actor_id, sign_act};
use holdfast_authority::{Act, Ask, Authority, Caller, Effect, Input, Moment, Policy, Record};
use holdfast_types::{Nonce, SessionId};

fn session() -> SessionId {
    SessionId::from_random_bits(7)
}

fn actor(handle: &str, secret: u8) -> Actor {
    Actor { id: actor_id(&[secret; 32]), handle: handle.parse().unwrap() }
}

fn ann() -> Actor {
    actor("human:ann", 1)
}

fn records() -> Vec<Record> {
    let mut policy = Policy::default();
    policy.vouched.insert(ann().id, ann().handle);
    let mut authority = Authority::new(policy);
    let now = Moment { time_ms: 1, at: 0 };
    let mut all = vec![authority.rotate(session(), None, now)];
    for nonce in 1..=6 {
        let ask = if nonce % 2 == 1 { Ask::Take } else { Ask::Release };
        let proof = Some(sign_act(&[1; 32], session(), Nonce([nonce; 16]), &ask));
        let by = Caller { actor: ann(), operator: None, token: None };
        let answer = authority.handle(Input::Asked { by, ask, proof }, now);
        all.extend(answer.effects.into_iter().filter_map(|e| if let Effect::Record(r) = e { Some(*r) } else { None }));
    }
    all
}

/// Two segments as files: 4 records, then a header and 3 more.
fn files() -> [Vec<Vec<u8>>; 2] {
    let mut chain = Chain::default();
    let records = records();
    let first: Vec<Vec<u8>> = records[..4].iter().map(|record| chain.append(record)).collect();
    let act = Act::Header { session: session(), previous: chain.last(), state: None, oldest: None, kept: None };
    let header = Record { act, fence: records[3].fence, ..records[0].clone() };
    let second = [&header].into_iter().chain(&records[4..]).map(|record| chain.append(record)).collect();
    [first, second]
}

fn checked(files: &[Vec<Vec<u8>>], kept: Option<Link>, known: &[Actor]) -> Result<Checked, Damage> {
    let named = files.iter().enumerate().map(|(n, lines)| (format!("j{n}").into(), lines.concat()));
    check(&join(named.collect()).0, kept, known)
}

/// File, line and fault of what is wrong.
fn damage(files: &[Vec<Vec<u8>>]) -> (String, usize, Fault) {
    let Damage { place, fault } = checked(files, None, &[]).expect_err("damaged");
    let (path, line) = place.expect("a place");
    (path.display().to_string(), line, fault)
}

fn broken(seq: u64, what: What) -> Fault {
    Fault::Broken(Broken { seq, what })
}

#[test]
fn a_sound_journal_is_told_with_the_link_to_keep_in_whatever_order_its_files_come() {
    let files = files();
    for files in [[files[0].clone(), files[1].clone()], [files[1].clone(), files[0].clone()]] {
        let checked = checked(&files, None, &[ann()]).unwrap();
        let text = checked.text();
        assert!(text.contains("records   8, from 1 to 8\n"), "{text}");
        assert!(text.contains("human:ann, records 6, signed 6"), "{text}");
        assert!(!text.contains("not known"), "{text}");
    }
    let alone = checked(&files[1..], None, &[]).unwrap();
    assert_eq!((alone.summary.first, alone.summary.records), (5, 4), "older segments may go");
    assert_eq!(checked(&[], None, &[]).unwrap_err().fault, Fault::Empty);
}

#[test]
fn segments_that_should_be_kept_and_what_the_host_found_damaged_are_faults() {
    let mut chain = Chain::default();
    let records = records();
    let first: Vec<Vec<u8>> = records[..4].iter().map(|record| chain.append(record)).collect();
    let header = |oldest, previous| {
        let act = Act::Header { session: session(), previous, state: None, oldest, kept: None };
        Record { act, fence: records[3].fence, ..records[0].clone() }
    };
    let (end, keeps) = (chain, |mut chain: Chain, oldest| vec![chain.append(&header(oldest, chain.last()))]);
    for (oldest, missing) in [(Some(1), Some((1, 4))), (Some(4), Some((4, 4))), (Some(5), None), (None, None)] {
        let second = keeps(end, oldest);
        let fault = checked(std::slice::from_ref(&second), None, &[]).err().map(|damage| damage.fault);
        assert_eq!(fault, missing.map(|(from, to)| Fault::Missing { from, to }), "{oldest:?}");
        assert!(checked(&[first.clone(), second], None, &[]).is_ok());
    }
    let mut chain = end;
    let damaged = Record { act: Act::Damaged { what: "records 5 to 9 are missing".into() }, ..header(None, None) };
    let second = vec![chain.append(&header(Some(5), end.last())), chain.append(&damaged)];
    let fault = checked(&[first, second], None, &[]).unwrap_err().fault;
    assert_eq!(fault, Fault::Found { seq: 6, what: "records 5 to 9 are missing".into() });
}

#[test]
fn what_was_changed_is_named_with_its_file_and_line() {
    let sound = files();
    let mut flipped = sound.clone();
    flipped[1][2][40] ^= 4;
    assert_eq!(damage(&flipped), ("j1".into(), 3, broken(7, What::Altered)));
    let mut removed = sound.clone();
    removed[0].remove(2);
    assert_eq!(damage(&removed), ("j0".into(), 3, broken(3, What::Removed { found: 4 })));
    let mut inserted = sound.clone();
    inserted[1].insert(2, sound[0][1].clone());
    assert_eq!(damage(&inserted), ("j1".into(), 3, broken(7, What::OutOfOrder { found: 2 })));
    let mut reordered = sound.clone();
    reordered[1].swap(1, 2);
    assert_eq!(damage(&reordered), ("j1".into(), 2, broken(6, What::Removed { found: 7 })));
    let mut between = sound.clone();
    (between[0][3], between[1][3]) = (sound[1][3].clone(), sound[0][3].clone());
    assert_eq!(damage(&between), ("j0".into(), 4, broken(4, What::Removed { found: 8 })));
    let mut cut = sound.clone();
    cut[0].pop();
    assert_eq!(
        damage(&cut),
        ("j1".into(), 1, broken(4, What::OtherChain)),
        "the end of a segment that is not the last"
    );
}

/// The first segment written anew with some records changed, every hash made to fit.
fn rewritten(change: impl Fn(usize, &mut Record)) -> Vec<Vec<u8>> {
    let mut chain = Chain::default();
    let mut records = records();
    records.iter_mut().enumerate().for_each(|(n, record)| change(n, record));
    records.iter().map(|record| chain.append(record)).collect()
}

#[test]
fn a_forged_actor_and_a_copied_act_are_found_even_when_every_hash_fits() {
    let forged = rewritten(|n, record| {
        if n == 2 {
            record.by = By::Actor(actor("human:bob", 2));
        }
    });
    assert_eq!(damage(&[forged]), ("j0".into(), 3, broken(3, What::Forged)));
    let first = records()[1].clone();
    let copied = rewritten(|n, record| {
        if n == 5 {
            (record.act, record.proof) = (first.act.clone(), first.proof);
        }
    });
    assert_eq!(damage(&[copied]), ("j0".into(), 6, broken(6, What::Copied)));
}

#[test]
fn another_name_for_a_known_key_and_another_key_for_a_known_name_are_forged() {
    let renamed = rewritten(|_, record| {
        if let By::Actor(by) = &mut record.by {
            by.handle = "human:bob".parse().unwrap();
        }
    });
    let fault = |known: Actor| checked(std::slice::from_ref(&renamed), None, &[known]).map_err(|damage| damage.fault);
    let expected = |known: Actor| Fault::OtherKey { seq: 2, actor: actor("human:bob", 1).into(), known: known.into() };
    assert_eq!(fault(ann()).unwrap_err(), expected(ann()));
    assert_eq!(fault(actor("human:bob", 9)).unwrap_err(), expected(actor("human:bob", 9)));
    let unknown = fault(actor("human:eve", 9)).unwrap();
    assert!(unknown.text().contains("not known here"), "{}", unknown.text());
}

#[test]
fn a_link_kept_elsewhere_shows_a_cut_end_and_a_journal_written_anew() {
    let files = files();
    let link = |line: &[u8]| entry(line.strip_suffix(b"\n").unwrap()).unwrap().link();
    let all = files.concat();
    for line in &all {
        checked(&files, Some(link(line)), &[]).expect("still there");
    }
    let last = link(&all[7]);
    let mut cut = files.clone();
    cut[1].pop();
    assert_eq!(checked(&cut, Some(last), &[]).unwrap_err().fault, Fault::CutOff { kept: 8, last: 7 });
    let other = Link { hash: link(&all[6]).hash, ..last };
    assert_eq!(checked(&files, Some(other), &[]).unwrap_err().fault, Fault::Replaced { seq: 8 });
    checked(&files[1..], Some(link(&all[3])), &[]).expect("the header still names the end of the segment before");
    let gone = checked(&files[1..], Some(link(&all[2])), &[]).unwrap_err().fault;
    assert_eq!(gone, Fault::TooOld { kept: 3, first: 5 });
}

#[test]
fn a_torn_end_is_counted_and_one_inside_is_a_fault() {
    let files = files();
    let mut bytes: Vec<Vec<u8>> = files.iter().map(|lines| lines.concat()).collect();
    let torn =
        |bytes: &[Vec<u8>]| join(bytes.iter().enumerate().map(|(n, b)| (format!("j{n}").into(), b.clone())).collect());
    bytes[1].extend_from_slice(b"{\"seq\":9,");
    let (lines, torn_bytes) = torn(&bytes);
    assert_eq!((check(&lines, None, &[]).is_ok(), torn_bytes), (true, 9));
    bytes[0].extend_from_slice(b"{\"seq\":5,");
    let fault = check(&torn(&bytes).0, None, &[]).unwrap_err().fault;
    assert_eq!(fault, broken(5, What::NotARecord));
}
