//! What befalls a soak: the host is killed, the relay too, keepers stand still, sessions are frozen, the disk is full for a while,
//! the clock jumps.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::{Duration, Instant};

use super::Plan;
use super::checks;
use super::dice::Dice;
use super::log::{Log, Seizure};
use super::place::{HUMAN, Place, signal};

/// How long the next host may take to answer.
const BACK_WITHIN: Duration = Duration::from_secs(45);
/// The moments are those of this beat.
const BEAT: Duration = Duration::from_secs(1);
const PROGRESS_EVERY: Duration = Duration::from_secs(15);

/// Something that is done again and again.
struct Due {
    every: Duration,
    next: Instant,
}

impl Due {
    fn every(every: Duration, began: Instant) -> Due {
        Due { every, next: began + every }
    }

    fn is_now(&mut self) -> bool {
        let now = Instant::now();
        let due = now >= self.next;
        if due {
            self.next = now + self.every;
        }
        due
    }
}

/// Until the time is over.
pub fn rage(plan: &Plan, place: &Place, log: &Log, began: Instant) {
    let mut dice = Dice::new(plan.seed);
    let every = |factor: f64| Due::every(plan.kill_every.mul_f64(factor), began);
    let (mut host, mut relay, mut disk) = (every(1.0), every(1.3), every(1.7));
    let (mut keeper, mut freeze, mut journals, mut clock) = (every(0.15), every(0.4), every(0.7), every(0.9));
    let mut progress = Due::every(PROGRESS_EVERY, began);
    let mut slowest = Duration::ZERO;
    while began.elapsed() < plan.length {
        std::thread::sleep(BEAT);
        if host.is_now() {
            slowest = slowest.max(kill_host(place, log));
        }
        if relay.is_now() {
            match place.kill_relay() {
                Ok(()) => log.count("kills of the relay"),
                Err(error) => log.violation(format!("the relay does not come back: {error:#}")),
            }
        }
        if keeper.is_now()
            && let Some(session) = dice.one(&place.sessions)
        {
            signal(session.keeper, "STOP");
            std::thread::sleep(Duration::from_millis(200 + dice.below(1500) as u64));
            signal(session.keeper, "CONT");
            log.count("keepers stopped for a while");
        }
        if freeze.is_now()
            && let Some(session) = dice.one(&place.sessions)
        {
            freeze_and_thaw(place, log, &session.name);
        }
        if disk.is_now() && place.disk_mib.is_some() {
            fill_disk(place, log);
        }
        if clock.is_now() {
            jump(place, log, &mut dice);
        }
        if journals.is_now() {
            checks::some_journals(place, log, &mut dice);
            checks::sessions_live(place, log);
        }
        if progress.is_now() {
            println!("soak: {:>5} s: {}", began.elapsed().as_secs(), log.progress());
        }
    }
    log.note(format!("slowest answer of a new host after a kill: {:.2} s", slowest.as_secs_f64()));
}

/// Sets the clock on or back, by up to an hour.
fn jump(place: &Place, log: &Log, dice: &mut Dice) {
    let seconds = dice.below(7200) as i64 - 3600;
    match place.set_clock(seconds) {
        Ok(true) => log.count("jumps of the clock"),
        Ok(false) => {}
        Err(error) => log.violation(format!("the clock cannot be set: {error:#}")),
    }
}

fn freeze_and_thaw(place: &Place, log: &Log, name: &str) {
    let began = Instant::now();
    let froze = place.run(HUMAN, &["seize", name, "--freeze", "--reason", "soak"]);
    // A host that was killed meanwhile, or a full disk, is a reason to ask again.
    let thawed = (0..20).any(|_| {
        let ran = place.run(HUMAN, &["thaw", name]);
        ran.is_ok_and(|ran| ran.status == 0 || ran.err.contains("not frozen"))
    });
    let _ = place.run(HUMAN, &["release", name]);
    log.seized(Seizure { session: name.to_owned(), during: began..=Instant::now() });
    if !thawed {
        log.violation(format!("{name} cannot be thawed ({froze:?})"));
    }
    log.count("sessions frozen and thawed");
}

/// How long it took until the next one answered.
fn kill_host(place: &Place, log: &Log) -> Duration {
    let Some(pid) = place.host_pid() else {
        log.violation("the host does not answer, though nobody killed it".into());
        return Duration::ZERO;
    };
    signal(pid, "KILL");
    log.count("kills of the host");
    let killed = Instant::now();
    while killed.elapsed() < BACK_WITHIN {
        if place.host_pid().is_some_and(|next| next != pid) {
            return killed.elapsed();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    log.violation(format!("no host answered within {} s after a kill", BACK_WITHIN.as_secs()));
    killed.elapsed()
}

fn fill_disk(place: &Place, log: &Log) {
    let path = place.home().join("filler");
    let filler = OpenOptions::new().create(true).append(true).open(&path);
    if let Ok(mut filler) = filler {
        let block = vec![0; 1 << 20];
        // Until there is no room; the limit is the disk's size.
        for _ in 0..place.disk_mib.unwrap_or_default() + 1 {
            if filler.write_all(&block).is_err() {
                break;
            }
        }
    }
    std::thread::sleep(Duration::from_secs(3));
    if let Err(error) = std::fs::remove_file(&path) {
        log.violation(format!("the disk cannot be freed: {error}"));
    }
    log.count("times the disk was full");
}
