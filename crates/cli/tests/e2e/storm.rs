//! The host is killed a hundred times under full output; nobody who follows loses or doubles a byte, and no act is lost.

use holdfast_harness::{Home, Random, Terminal, gone, kill, until};
use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const KILLS: usize = 100;
/// Bytes of one line of the producer, as the terminal gives it.
const LINE: u64 = 11;

/// Writes numbered lines at full speed until a file appears, then the number of the last one.
const PRODUCER: &str = r"
import os, sys
n = 0
while not os.path.exists(sys.argv[1]):
    os.write(1, b''.join(b'%09d\n' % i for i in range(n + 1, n + 5001)))
    n += 5000
os.write(1, b'END %d\n' % n)
os.system('stty -echo')
os.read(0, 1)
";

/// The byte of the producer's output at an offset.
fn expected(offset: u64) -> u8 {
    let (line, column) = (offset / LINE + 1, offset % LINE);
    match column {
        9 => b'\r',
        10 => b'\n',
        column => b'0' + ((line / 10u64.pow(8 - column as u32)) % 10) as u8,
    }
}

/// What `logs --follow` wrote and said.
struct Log {
    child: Child,
    out: std::path::PathBuf,
    err: std::path::PathBuf,
}

impl Log {
    fn follow(home: &Home) -> Log {
        let (out, err) = (home.join("follow.out"), home.join("follow.err"));
        let mut command = home.command(&["logs", "flood", "--follow"]);
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        Log { child: command.spawn().unwrap(), out, err }
    }

    /// Waits for its end and checks each byte: given, or told as a gap.
    #[track_caller]
    fn check(mut self, total: u64) {
        let status = until("the end of logs --follow", || self.child.try_wait().unwrap());
        let said = std::fs::read_to_string(&self.err).unwrap();
        assert!(status.success(), "{status}: {said}");
        let mut offset = 0;
        let mut file = std::io::BufReader::with_capacity(1 << 20, File::open(&self.out).unwrap());
        let mut missing = 0;
        for line in said.lines() {
            let told = line.split_once("bytes ").and_then(|(_, rest)| rest.split_once(' ')?.0.split_once(".."));
            let (from, to) = told.unwrap_or_else(|| panic!("no gap: {line}"));
            let (from, to): (u64, u64) = (from.parse().unwrap(), to.parse().unwrap());
            assert!(offset <= from && from < to, "gaps in order: {said}");
            compare(&mut file, offset, from);
            missing += to - from;
            offset = to;
        }
        compare(&mut file, offset, total);
        assert_eq!(file.read(&mut [0]).unwrap(), 0, "more than there was");
        println!("{total} bytes, {missing} of them told as gaps in {} lines", said.lines().count());
        assert!(missing < total, "nothing was followed");
    }
}

#[track_caller]
fn compare(file: &mut impl Read, from: u64, to: u64) {
    let mut bytes = vec![0; (to - from) as usize];
    file.read_exact(&mut bytes).unwrap_or_else(|e| panic!("bytes {from}..{to} are not all there: {e}"));
    // The last line is the producer's farewell.
    let wrong = (from..to).zip(&bytes).find(|(offset, byte)| expected(*offset) != **byte);
    if let Some((offset, byte)) = wrong {
        let rest = String::from_utf8_lossy(&bytes[(offset - from) as usize..]).into_owned();
        assert!(to - offset < 20 && rest.starts_with("END "), "byte {offset} is {byte}: {:.60}", rest);
    }
}

fn send_lines(home: &Home, stop: &AtomicBool) -> usize {
    let mut sent = 0;
    while !stop.load(Ordering::SeqCst) {
        sent += 1;
        home.ok(&["send", "acts", "--enter", &format!("act {sent}")]);
    }
    sent
}

#[test]
fn a_hundred_kills_of_the_host_lose_and_double_nothing() {
    let mut random = Random::from_seed();
    let home = Home::new();
    let stop_file = home.join("stop");
    home.ok(&["new", "-d", "-n", "acts", "--", "sh", "-c", "stty -echo; echo ready; exec cat > acts"]);
    home.until_screen_shows("acts", "ready");
    home.ok(&[
        "new",
        "-d",
        "-n",
        "flood",
        "--size",
        "80x24",
        "--",
        "python3",
        "-c",
        PRODUCER,
        stop_file.to_str().unwrap(),
    ]);
    let child = home.number("flood", "pid");
    let (terminal, mut client) = Terminal::attached(&home, "flood", "80x24");
    let log = Log::follow(&home);
    let stop = AtomicBool::new(false);
    let (mut kills, mut early) = (0, 0);
    let sent = std::thread::scope(|scope| {
        let sender = scope.spawn(|| send_lines(&home, &stop));
        while kills < KILLS {
            // One time in three the host dies while it starts up.
            let host = if random.below(3) == 0 {
                early += 1;
                until("a host", || home.lock_holder())
            } else {
                let host = home.host_pid();
                std::thread::sleep(Duration::from_millis(random.below(60)));
                host
            };
            kill(host);
            until("its end", || gone(host).then_some(()));
            kills += 1;
        }
        stop.store(true, Ordering::SeqCst);
        sender.join().unwrap()
    });
    println!("{early} of {kills} kills hit a host that had just begun; {sent} acts");
    assert!(early > 0 && sent > 0);
    std::fs::write(&stop_file, "").unwrap();
    home.until_screen_shows("flood", "END ");
    terminal.wait_text("END ");
    terminal.settle(&home, "flood");
    assert_eq!(home.number("flood", "pid"), child);
    let total = home.number("flood", "head");
    let acts: String = (1..=sent).map(|n| format!("act {n}\n")).collect();
    until("all acts", || (std::fs::read_to_string(home.join("acts")).unwrap().len() >= acts.len()).then_some(()));
    assert_eq!(std::fs::read_to_string(home.join("acts")).unwrap(), acts);
    terminal.types("\r");
    assert_eq!(client.wait(), 0, "the command ended under the client, which was there all the time");
    log.check(total);
}

#[test]
fn a_terminal_goes_on_by_itself_after_its_host_was_killed() {
    let home = Home::new();
    home.session("s", "stty -echo; echo ready; while read -r line; do echo got $line; done");
    let (terminal, mut client) = Terminal::attached(&home, "s", "80x24");
    terminal.wait_text("ready");
    for n in 0..5 {
        let before = home.kill_host();
        terminal.types(format!("{n}\r"));
        terminal.wait_text(&format!("got {n}"));
        assert_ne!(home.host_pid(), before, "the client has started another");
        until("the client to be known again", || (home.clients("s") == 1).then_some(()));
        terminal.settle(&home, "s");
    }
    home.kill_host();
    terminal.types(holdfast_harness::DETACH);
    assert_eq!(client.wait(), 0);
}

#[test]
fn commands_under_way_when_the_host_dies_are_answered_by_the_next() {
    let home = Home::new();
    home.session("s", "read line; exit 9");
    let waiting = home.command(&["wait", "s"]).stdout(Stdio::null()).spawn().unwrap();
    for _ in 0..5 {
        home.kill_host();
        home.ok(&["ls"]);
    }
    home.ok(&["send", "s", "--enter", "x"]);
    let mut waiting = waiting;
    assert_eq!(waiting.wait().unwrap().code(), Some(9));
}

/// Stands where the host listens. The first connections end once they have said who speaks, as if the host had died; later
/// ones go through.
fn break_once_greeted(home: &Home, breaks: usize) {
    let listens = home.places().host_socket();
    let behind = listens.with_extension("behind");
    std::fs::rename(&listens, &behind).unwrap();
    let listener = UnixListener::bind(&listens).unwrap();
    std::thread::spawn(move || {
        for (n, client) in listener.incoming().enumerate() {
            let (mut client, mut host) = (client.unwrap(), UnixStream::connect(&behind).unwrap());
            if n < breaks {
                pass_frame(&mut client, &mut host);
                pass_frame(&mut host, &mut client);
                pass_frame(&mut client, &mut host);
                continue;
            }
            let (mut from_client, mut to_host) = (client.try_clone().unwrap(), host.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from_client, &mut to_host);
                let _ = to_host.shutdown(Shutdown::Write);
            });
            std::thread::spawn(move || std::io::copy(&mut host, &mut client));
        }
    });
}

fn pass_frame(from: &mut UnixStream, to: &mut UnixStream) {
    let mut length = [0; 4];
    from.read_exact(&mut length).unwrap();
    let mut frame = vec![0; u32::from_le_bytes(length) as usize];
    from.read_exact(&mut frame).unwrap();
    to.write_all(&[&length, frame.as_slice()].concat()).unwrap();
}

#[test]
fn a_command_is_answered_though_many_hosts_in_a_row_died_before_they_did() {
    let home = Home::new();
    home.session("s", "stty -echo; echo ready; read line; echo got $line; read x");
    home.until_screen_shows("s", "ready");
    break_once_greeted(&home, 20);
    home.ok(&["send", "s", "--enter", "once"]);
    home.until_screen_shows("s", "got once");
}

#[test]
fn a_command_that_breaks_every_host_gives_up() {
    let home = Home::new();
    home.session("s", "read x");
    break_once_greeted(&home, 31);
    let said = home.fails(&["send", "s", "--enter", "once"]);
    assert!(said.contains("the connection to the host broke"), "{said}");
}
