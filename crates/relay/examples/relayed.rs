//! What a relay on this machine costs, beside the same bytes without one.
//!
//! `cargo run --release -p holdfast-relay --example relayed [HOSTS]` prints throughput, the round trip of a byte, the time of a connection, and the memory
//! of a relay that is a process of its own, with so many idle hosts (10,000). `relayed idle HOSTS…` prints only the memory in MiB at each number of
//! hosts, rising.

use holdfast_channel::{Secret, exchange_key, prove_host};
use holdfast_relay::server::{Config, Limits, bind};
use holdfast_relay::{Arrival, Dialer, Guests, RelayUrl, Standing, Wanted, answer, reach, wait};
use holdfast_types::{Handle, HostKey, hex_bytes, hex_text};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

type Told<T> = Result<T, Box<dyn Error>>;

/// What is sent for the throughput, and how often; the median counts.
const BYTES: usize = 512 * 1024 * 1024;
const ROUNDS: usize = 3;
/// Round trips, and connections.
const ECHOES: usize = 5_000;
const CONNECTIONS: usize = 200;

fn main() -> Told<()> {
    let mut args = std::env::args().skip(1);
    let mut sizes = None;
    let hosts = match args.next().as_deref() {
        Some("relay") => return serve(),
        Some("idle") => {
            sizes = Some(args.map(|size| size.parse()).collect::<Result<Vec<usize>, _>>()?);
            0
        }
        Some(count) => count.parse()?,
        None => 10_000,
    };
    let (mut child, url) = relay()?;
    let measured = match sizes {
        Some(sizes) => memory(&url, child.id(), &sizes),
        None => measure(&url, child.id(), hosts),
    };
    child.kill()?;
    child.wait()?;
    measured
}

/// The relay's own process.
fn serve() -> Told<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let limits = Limits { connections: 100_000, of_address: 100_000, clients_of_host: 1_000 };
        let listen = "127.0.0.1:0".parse()?;
        let config = Config { listen, tls: None, behind_proxy: false, name: None, limits, shared: None };
        let bound = bind(&config).await?;
        println!("http://{}", bound.address()?);
        bound.serve().await;
        Ok(())
    })
}

fn relay() -> Told<(Child, RelayUrl)> {
    let mut child = Command::new(std::env::current_exe()?).arg("relay").stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    Ok((child, line.trim().parse()?))
}

fn measure(url: &RelayUrl, pid: u32, hosts: usize) -> Told<()> {
    let arrivals = waiting(url)?;
    let tcp = throughput(|| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let near = TcpStream::connect(listener.local_addr()?)?;
        Ok((near, listener.accept()?.0))
    })?;
    let relayed = throughput(|| joined(url, &arrivals))?;
    println!("raw TCP          {tcp:7.0} MB/s");
    println!("through a relay  {relayed:7.0} MB/s   {:.2}x", relayed / tcp);

    let local = echo(UnixStream::pair()?)?;
    let far = echo(joined(url, &arrivals)?)?;
    println!("round trip of a byte: a local socket {local:.0} us, through a relay {far:.0} us at the median");

    let mut took = Vec::new();
    for _ in 0..CONNECTIONS {
        let began = Instant::now();
        let _both = joined(url, &arrivals)?;
        took.push(began.elapsed().as_secs_f64() * 1e3);
    }
    println!("a connection: {:.2} ms at the median, {:.2} ms p99", at(&mut took, 0.5), at(&mut took, 0.99));

    let (before, worked) = (resident_kib(pid)?, worked_us(pid)?);
    let mut idle = idle(url, 0..hosts)?;
    let after = resident_kib(pid)?;
    let registered = worked_us(pid)?;
    for stream in &mut idle {
        // A ping under a mask of zeros, and the answer.
        stream.write_all(&[0x89, 0x80, 0, 0, 0, 0])?;
        stream.read_exact(&mut [0; 2])?;
    }
    let pinged = worked_us(pid)?;
    println!(
        "{hosts} idle hosts: {:.1} MiB resident, {:.1} of them for the hosts ({:.1} KiB each)",
        after / 1024.0,
        (after - before) / 1024.0,
        (after - before) / hosts as f64
    );
    let each = |from: f64, to: f64| (to - from) / hosts as f64;
    println!(
        "the relay's CPU: {:.0} us for a registration without TLS, {:.1} us for a ping",
        each(worked, registered),
        each(registered, pinged)
    );
    drop(idle);
    Ok(())
}

/// What the relay holds at each number of idle hosts.
fn memory(url: &RelayUrl, pid: u32, sizes: &[usize]) -> Told<()> {
    let mut all = Vec::new();
    for size in sizes {
        all.extend(idle(url, all.len()..*size)?);
        println!("{size} {:.2}", resident_kib(pid)? / 1024.0);
    }
    Ok(())
}

/// Megabytes a second from one end to the other.
fn throughput<S: Read + Write + Send>(pair: impl Fn() -> Told<(S, S)>) -> Told<f64> {
    let mut speeds = Vec::new();
    for _ in 0..ROUNDS {
        let (mut near, mut far) = pair()?;
        let began = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let block = vec![7; 256 * 1024];
                for _ in 0..BYTES / block.len() {
                    if near.write_all(&block).is_err() {
                        return;
                    }
                }
            });
            let (mut buffer, mut got) = (vec![0; 256 * 1024], 0);
            while got < BYTES {
                match far.read(&mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => got += count,
                }
            }
            assert_eq!(got, BYTES, "all of it arrives");
        });
        speeds.push(BYTES as f64 / 1e6 / began.elapsed().as_secs_f64());
    }
    Ok(at(&mut speeds, 0.5))
}

/// Microseconds of a byte there and back.
fn echo((mut near, mut far): (UnixStream, UnixStream)) -> Told<f64> {
    let echo = std::thread::spawn(move || {
        let mut byte = [0];
        while far.read_exact(&mut byte).is_ok() && far.write_all(&byte).is_ok() {}
    });
    let mut took = Vec::new();
    let mut byte = [1];
    for _ in 0..ECHOES {
        let began = Instant::now();
        near.write_all(&byte)?;
        near.read_exact(&mut byte)?;
        took.push(began.elapsed().as_secs_f64() * 1e6);
    }
    drop(near);
    echo.join().map_err(|_| "the echo failed")?;
    Ok(at(&mut took, 0.5))
}

fn at(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part) as usize]
}

fn host() -> Secret {
    Secret::new([1; 32])
}

fn client() -> Secret {
    Secret::new([2; 32])
}

struct One;

impl Guests for One {
    fn known(&self, key: &[u8; 32]) -> Option<Handle> {
        exchange_key(&client().public()).is_ok_and(|known| known == *key).then(|| "human:ann".parse().ok()).flatten()
    }

    fn invite(&self, _: &[u8; 16]) -> Option<[u8; 32]> {
        None
    }
}

/// Both ends of a channel through the relay.
fn joined(url: &RelayUrl, arrivals: &Receiver<Arrival>) -> Told<(UnixStream, UnixStream)> {
    let reached =
        reach(Wanted { at: vec![url.clone()], ..Wanted::default() }, HostKey(host().public()), client(), None)?;
    Ok((reached.stream, arrivals.recv_timeout(Duration::from_secs(10))?.stream))
}

/// A host that waits at the relay.
fn waiting(url: &RelayUrl) -> Told<Receiver<Arrival>> {
    let ((sender, arrivals), (up, is_up)) = (channel(), channel());
    let url = url.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let dialer = Dialer::new(None).expect("the built-in authorities");
            let sender = Rc::new(sender);
            let stands = |standing| {
                if standing == Standing::Up {
                    let _ = up.send(());
                }
            };
            let dial = |token: String| {
                let (dialer, url, sender) = (dialer.clone(), url.clone(), Rc::clone(&sender));
                tokio::task::spawn_local(async move {
                    answer(&dialer, &url, &token, &host(), &One, |arrival| drop(sender.send(arrival))).await;
                });
            };
            wait(&dialer, &url, &host(), stands, dial).await;
        });
    });
    is_up.recv_timeout(Duration::from_secs(10))?;
    Ok(arrivals)
}

/// Registered hosts that do nothing, each with a key of its own: plain sockets, so that the relay is what is measured.
fn idle(url: &RelayUrl, numbers: Range<usize>) -> Told<Vec<TcpStream>> {
    let mut all = Vec::with_capacity(numbers.len());
    for n in numbers {
        let mut seed = [3; 32];
        seed[..8].copy_from_slice(&(n as u64).to_le_bytes());
        let secret = Secret::new(seed);
        let mut stream = TcpStream::connect((url.name(), url.port()))?;
        write!(
            stream,
            "GET /h HTTP/1.1\r\nhost: {}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            url.address()
        )?;
        let challenge = hex_bytes(&said(&mut stream, "challenge")?).and_then(|bytes| bytes.try_into().ok());
        let challenge: [u8; 32] = challenge.ok_or("no challenge")?;
        let signature = prove_host(&secret, &challenge, &url.address());
        let proof =
            format!("{{\"host\":\"{}\",\"signature\":\"{}\"}}", hex_text(&secret.public()), hex_text(&signature));
        // A client's frame: text, of fewer than 65,536 bytes, under a mask of zeros.
        let mut frame = vec![0x81, 0xfe];
        frame.extend_from_slice(&(proof.len() as u16).to_be_bytes());
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(proof.as_bytes());
        stream.write_all(&frame)?;
        said(&mut stream, "registered")?;
        all.push(stream);
    }
    Ok(all)
}

/// Reads until a message with this field is there, and gives its value without quotation marks.
fn said(stream: &mut TcpStream, field: &str) -> Told<String> {
    let mut got = Vec::new();
    let mark = format!("\"{field}\":");
    loop {
        let text = String::from_utf8_lossy(&got);
        if let Some((_, value)) = text.split_once(&mark)
            && let Some((value, _)) = value.split_once('}')
        {
            return Ok(value.trim_matches('"').to_owned());
        }
        let mut some = [0; 1024];
        match stream.read(&mut some)? {
            0 => return Err("the relay hung up".into()),
            count => got.extend_from_slice(&some[..count]),
        }
    }
}

/// Microseconds that a process has worked, of all its threads.
fn worked_us(pid: u32) -> Told<f64> {
    let mut all = 0.0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let worked = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        all += worked.split_whitespace().next().ok_or("no schedstat")?.parse::<f64>()? / 1e3;
    }
    Ok(all)
}

fn resident_kib(pid: u32) -> Told<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}
