//! Leased sessions: two homes that share a real etcd, real keepers, and a program that writes the time and its life into one file.
//!
//! Promised: nobody writes once the next life has begun. `HOLDFAST_LEASE_ROUNDS` makes each fault happen more often.

use crate::etcds::Etcds;
use holdfast_harness::{Home, signal, until};
use holdfast_store::{LIFE, Survives, get_json, put_json};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The shortest that etcd grants without an answer of its own is 2; one more for a busy machine.
const TTL_S: u64 = 3;
const MARGIN: &str = "1s";

/// What a host reaches etcd through, until it is cut.
struct Cable {
    port: u16,
    is_cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Cable {
    fn to(port: u16) -> Cable {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let cable = Cable { port: listener.local_addr().unwrap().port(), is_cut: Arc::default(), open: Arc::default() };
        let (is_cut, open) = (Arc::clone(&cable.is_cut), Arc::clone(&cable.open));
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                if is_cut.load(Ordering::SeqCst) {
                    // Silence, as of a network that is gone.
                    open.lock().unwrap().push(near);
                    continue;
                }
                open.lock().unwrap().extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
                for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                    std::thread::spawn(move || {
                        let mut bytes = [0; 16 * 1024];
                        while let Ok(count @ 1..) = from.read(&mut bytes) {
                            if to.write_all(&bytes[..count]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        cable
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        self.drop_all();
    }

    fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
        self.drop_all();
    }

    fn drop_all(&self) {
        self.open.lock().unwrap().drain(..).for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }
}

/// A home whose host has these members.
fn home(members: &str) -> Home {
    home_for(members, TTL_S)
}

fn home_for(members: &str, ttl_s: u64) -> Home {
    let home = Home::new();
    let config = home.places().config;
    std::fs::create_dir_all(&config).unwrap();
    let text = format!("lease = \"etcd={members}\"\nlease_ttl = {ttl_s}\nlease_margin = \"{MARGIN}\"\n");
    std::fs::write(config.join("config.toml"), text).unwrap();
    home
}

fn direct(etcds: &Etcds) -> Home {
    home(&etcds.named())
}

/// A session that writes `life milliseconds` into a file, a hundred times a second.
fn writer(home: &Home, file: &Path) {
    let script = format!("while :; do echo \"$HOLDFAST_FENCE $(date +%s%3N)\" >> {}; sleep 0.01; done", file.display());
    home.ok(&["new", "-d", "--leased", "w", "--", "sh", "-c", &script]);
    until("the first write", || (!lines(file).is_empty()).then_some(()));
}

/// What was written: each line's life and time.
fn lines(file: &Path) -> Vec<(u64, u64)> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = |line: &str| {
        let (fence, ms) = line.split_once(' ')?;
        Some((fence.parse().ok()?, ms.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// Another host with a copy of the session's files, as of a backup or a disk that several machines see.
fn copy(from: &Home, to: &Home) {
    let kept = from.session_dir("w").join("life");
    until("the first look at its processes", || kept.exists());
    let id = from.json(&["info", "w"])["id"].as_str().unwrap().to_owned();
    let place = to.places().session(id.parse().unwrap());
    std::fs::create_dir_all(&place).unwrap();
    for entry in std::fs::read_dir(from.session_dir("w")).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), place.join(entry.file_name())).unwrap();
        }
    }
    // As on another machine, where nobody sees the keeper of this one.
    let mut life: serde_json::Value = get_json(&LIFE, &place.join("life")).unwrap().unwrap();
    life["boot"] = "another".into();
    put_json(&LIFE, &place, "life", &life, Survives::Crash).unwrap();
    until("a session that is lost there", || to.json(&["info", "w"])["life"] == "lost");
}

fn lease(home: &Home) -> String {
    home.json(&["info", "w"])["lease"]["state"].as_str().unwrap_or("none").to_owned()
}

/// Gives it a life there as soon as that is allowed; how often it was refused before.
fn claim(home: &Home) -> u32 {
    let mut refused = 0;
    until("the next claim", || {
        let ran = home.run(&["recover", "--run", "w"]);
        refused += u32::from(ran.status != 0);
        if ran.status != 0 {
            assert!(ran.err.contains("has its lease"), "{}", ran.err);
        }
        (ran.status == 0).then_some(())
    });
    refused
}

/// Nobody of an earlier life wrote once a later one had: the gap between the last of one and the first of the next, in ms.
fn gap(file: &Path) -> i64 {
    let all = lines(file);
    let newest = all.iter().map(|(fence, _)| *fence).max().unwrap();
    let first = all.iter().filter(|(fence, _)| *fence == newest).map(|(_, ms)| *ms).min().unwrap();
    let last = all.iter().filter(|(fence, _)| *fence < newest).map(|(_, ms)| *ms).max().unwrap();
    let late = all.iter().filter(|(fence, ms)| *fence < newest && *ms > first).count();
    assert_eq!(late, 0, "writes of the old life after the next began");
    first as i64 - last as i64
}

fn rounds() -> u32 {
    std::env::var("HOLDFAST_LEASE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[test]
fn a_host_that_is_cut_off_stops_its_session_before_another_may_have_it() {
    let etcds = Etcds::start(1);
    for round in 0..rounds() {
        let cable = Cable::to(etcds.ports[0]);
        let (a, b) = (home(&format!("http://127.0.0.1:{}", cable.port)), direct(&etcds));
        let file = a.join("written");
        writer(&a, &file);
        assert_eq!(lease(&a), "held");
        copy(&a, &b);
        let refused = b.fails(&["recover", "--run", "w"]);
        assert!(refused.contains("has its lease for another") && refused.contains("one life at a time"), "{refused}");
        cable.cut();
        until("the stop", || (lease(&a) == "unknown").then_some(()));
        let shown = a.ok(&["ls"]);
        assert!(shown.contains("frozen: lease unknown"), "{shown}");
        let refused = claim(&b);
        until("a write of the next life", || {
            let all = lines(&file);
            (all.last()?.0 > all.first()?.0).then_some(())
        });
        println!("round {round}: cut off: gap {} ms, {refused} refusals", gap(&file));
        cable.mend();
        until("the end of the old life", || (a.json(&["info", "w"])["life"] == "ended").then_some(()));
        assert_eq!(lease(&a), "claimed");
        let journal = a.ok(&["journal", "w"]);
        assert!(journal.contains("its lease was over: stopped") && journal.contains("claimed it (fence"), "{journal}");
        gap(&file);
        b.ok(&["end", "w"]);
    }
}

#[test]
fn a_lease_that_nobody_claimed_is_renewed_and_the_session_goes_on() {
    let etcds = Etcds::start(1);
    let cable = Cable::to(etcds.ports[0]);
    let a = home(&format!("http://127.0.0.1:{}", cable.port));
    let file = a.join("written");
    writer(&a, &file);
    cable.cut();
    until("the stop", || (lease(&a) == "unknown").then_some(()));
    let before = lines(&file).len();
    let refused = a.fails(&["new", "-d", "--leased", "other"]);
    assert!(refused.contains("the store of leases does not answer"), "{refused}");
    assert_eq!(lines(&file).len(), before, "it stands still");
    cable.mend();
    until("the lease", || (lease(&a) == "held").then_some(()));
    until("it goes on", || (lines(&file).len() > before + 10).then_some(()));
    assert!(a.ok(&["journal", "w"]).contains("it goes on"), "{}", a.ok(&["journal", "w"]));
}

#[test]
fn a_host_that_is_killed_and_one_that_is_stopped_leave_no_second_life() {
    let etcds = Etcds::start(1);
    for round in 0..rounds() {
        for is_killed in [true, false] {
            let (a, b) = (direct(&etcds), direct(&etcds));
            let file = a.join("written");
            writer(&a, &file);
            copy(&a, &b);
            let host = a.host_pid();
            if is_killed {
                a.kill_host();
            } else {
                signal(host, Signal::STOP);
            }
            let refused = claim(&b);
            until("a write of the next life", || {
                let all = lines(&file);
                (all.last()?.0 > all.first()?.0).then_some(())
            });
            println!("round {round}: killed {is_killed}: gap {} ms, {refused} refusals", gap(&file));
            if !is_killed {
                signal(host, Signal::CONT);
            }
            // The next host there, or the same one, finds out and ends what stands still.
            until("the end of the old life", || (a.json(&["info", "w"])["life"] == "ended").then_some(()));
            gap(&file);
            b.ok(&["end", "w"]);
        }
    }
}

#[test]
fn a_host_that_is_started_again_in_time_goes_on_and_its_session_notices_nothing() {
    let etcds = Etcds::start(1);
    // Longer than a busy machine takes to start a host.
    let a = home_for(&etcds.named(), 20);
    let file = a.join("written");
    writer(&a, &file);
    let fence = a.json(&["info", "w"])["lease"]["fence"].as_u64();
    a.kill_host();
    until("the lease", || (lease(&a) == "held").then_some(()));
    assert_eq!(a.json(&["info", "w"])["lease"]["fence"].as_u64(), fence);
    assert!(!a.ok(&["journal", "w"]).contains("its lease was over"));
    a.ok(&["end", "w"]);
    // What is left is that this host lives.
    until("the record goes", || etcds.entries().len() == 1);
}

#[test]
fn the_leader_of_three_is_killed_and_the_lease_holds() {
    let mut etcds = Etcds::start(3);
    let a = direct(&etcds);
    let file = a.join("written");
    writer(&a, &file);
    let leader = etcds.leader();
    etcds.kill(leader);
    let before = lines(&file).len();
    until("it goes on, or on again", || (lines(&file).len() > before + 400).then_some(()));
    until("the lease", || (lease(&a) == "held").then_some(()));
}

#[test]
fn without_a_store_nothing_is_leased() {
    let home = Home::new();
    let refused = home.fails(&["new", "-d", "--leased", "w"]);
    assert!(refused.contains("no store of leases") && refused.contains("config.toml"), "{refused}");
}
