//! The measures. Each is one function doing one round for one tool; rounds are
//! interleaved over the tools (A B C, B C A, ...) so that drift hits all alike.

use crate::pieces::{echo_samples, relay};
use crate::sys::{self, Cmd, Term, MARKS, MARK_LEN};
use crate::tools::{Run, Tool};
use crate::{Data, Profile};
use std::ffi::CString;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::time::{Duration, Instant};

pub struct Bench<'a> {
    pub p: &'a Profile,
    pub data: Data,
    pub notes: Vec<String>,
    pub t0: Instant,
    pub budget: f64,
    pub self_exe: String,
    pub cur: String,
}

type Res = Result<(), String>;
type Measure<'a> = fn(&mut Bench<'a>, &Tool) -> Res;

fn mkfifo(p: &str) {
    let c = CString::new(p).unwrap();
    unsafe { libc::mkfifo(c.as_ptr(), 0o600) };
}

/// The harness's end of a payload's "done" fifo.
struct Done(std::fs::File);

impl Done {
    fn new(path: &str) -> Done {
        mkfifo(path);
        let c = CString::new(path).unwrap();
        let fd = unsafe { libc::open(c.as_ptr(), libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC) };
        Done(unsafe { std::fs::File::from_raw_fd(fd) })
    }
    fn wait(&mut self, limit: Duration) -> bool {
        use std::os::fd::AsRawFd;
        sys::poll_in(self.0.as_raw_fd(), limit.as_millis() as i32)
            && self.0.read(&mut [0u8; 1]).map(|n| n == 1).unwrap_or(false)
    }
}

/// The gate of a `gen` payload: one byte, one chunk of output.
struct Gate(i32);

impl Gate {
    /// Waits until the payload has its end open.
    fn open(path: &str) -> Result<Gate, String> {
        let c = CString::new(path).unwrap();
        let t = Instant::now();
        loop {
            let fd = unsafe {
                libc::open(c.as_ptr(), libc::O_WRONLY | libc::O_NONBLOCK | libc::O_CLOEXEC)
            };
            if fd >= 0 {
                return Ok(Gate(fd));
            }
            if t.elapsed() > Duration::from_secs(5) {
                return Err("payload never came to its gate".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    fn go(&self) {
        unsafe { libc::write(self.0, b"g".as_ptr().cast(), 1) };
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        unsafe { libc::close(self.0) };
    }
}

/// Times of chunks of output, each until every terminal has its end mark (or, with
/// no terminal, until the producer is rid of it). Stops early when time is up.
fn chunks(
    gate: &Gate,
    done: &mut Done,
    ts: &mut [Term],
    n: usize,
    limit: Duration,
) -> Result<Vec<f64>, String> {
    sys::boost();
    let begin = Instant::now();
    let mut v = vec![];
    for turn in 0..n {
        for t in ts.iter_mut() {
            t.mark = MARKS[turn % 3];
            t.marks = 0;
        }
        let t0 = Instant::now();
        gate.go();
        let left = limit.saturating_sub(begin.elapsed()).max(Duration::from_secs(3));
        if ts.is_empty() {
            if !done.wait(left) {
                return Err(format!("chunk {turn}: producer still blocked after {left:.0?}"));
            }
            v.push(t0.elapsed().as_secs_f64());
            std::thread::sleep(Duration::from_millis(5));
        } else {
            if sys::drain_until(ts, MARK_LEN, left).is_none() {
                let seen = ts.iter().filter(|x| x.marks >= MARK_LEN).count();
                let gone = ts.iter().filter(|x| x.eof).count();
                let fin = done.wait(Duration::from_millis(1));
                return Err(format!(
                    "chunk {turn}: end mark reached {seen} of {} clients in {left:.0?} ({gone} ended; producer {})",
                    ts.len(),
                    if fin { "through" } else { "blocked" }
                ));
            }
            v.push(t0.elapsed().as_secs_f64());
            done.wait(Duration::from_secs(1));
            sys::settle(ts, Duration::from_millis(5), Duration::from_millis(500));
        }
        if begin.elapsed() > limit {
            break;
        }
    }
    Ok(v)
}

pub fn pct(v: &mut [f64], q: f64) -> f64 {
    if v.is_empty() {
        return f64::NAN;
    }
    v.sort_by(|a, b| a.partial_cmp(b).unwrap());
    v[((v.len() - 1) as f64 * q).round() as usize]
}

impl<'a> Bench<'a> {
    pub fn run(&mut self, tools: &[Tool], only: &[String], save: &dyn Fn(&Bench)) {
        // Cheap ones first: what --quick has no time left for is at the end.
        let list: [(&str, usize, Measure<'a>); 8] = [
            ("echo", self.p.reps, Self::echo),
            ("attach", self.p.reps, Self::attach),
            ("create", self.p.reps, Self::create),
            ("mem", 1, Self::mem),
            ("tput", self.p.reps, Self::tput),
            ("det", self.p.reps, Self::det),
            ("fan", self.p.reps, Self::fan),
            ("idle", 1, Self::idle),
        ];
        for (name, reps, f) in list {
            if !only.is_empty() && !only.iter().any(|m| m == name) {
                continue;
            }
            for rep in 0..reps {
                for k in 0..tools.len() {
                    let t = &tools[(k + rep) % tools.len()];
                    if !t.only.is_empty() && !t.only.iter().any(|m| m == name) {
                        continue;
                    }
                    if self.t0.elapsed().as_secs_f64() > self.budget {
                        self.note(format!("{name}/{}: skipped, out of time", t.name));
                        continue;
                    }
                    self.cur = t.name.clone();
                    let at = Instant::now();
                    if let Err(e) = f(self, t) {
                        self.note(format!("{name}/{}: {e}", t.name));
                        sys::kill_all();
                    }
                    eprintln!(
                        "[{:6.1}s] {name:7} round {} {:12} {:.2}s",
                        self.t0.elapsed().as_secs_f64(),
                        rep + 1,
                        t.name,
                        at.elapsed().as_secs_f64()
                    );
                }
            }
            save(self);
        }
    }

    fn note(&mut self, s: String) {
        if !self.notes.contains(&s) {
            self.notes.push(s);
        }
    }

    fn put(&mut self, metric: &str, v: f64) {
        let t = self.cur.clone();
        self.data.entry(metric.into()).or_default().entry(t).or_default().push(v);
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(self.p.limit_secs)
    }

    fn payload(&self, a: &[&str]) -> Vec<String> {
        let mut v = vec![self.self_exe.clone(), "payload".to_string()];
        v.extend(a.iter().map(|s| s.to_string()));
        v
    }

    /// A session with a `gen` payload of this chunk size.
    fn producer(&self, r: &Run, kind: &str, chunk: usize) -> Result<(String, Done), String> {
        let gate = r.dir.join("g").display().to_string();
        let done = r.dir.join("d").display().to_string();
        mkfifo(&gate);
        let d = Done::new(&done);
        r.create("s0001", &self.payload(&["gen", kind, &chunk.to_string(), &gate, &done]))?;
        Ok((gate, d))
    }

    /// Seconds per 100 MB: the median chunk, and the best decile (what a busy
    /// machine disturbs least).
    fn put_rate(&mut self, metric: &str, v: &mut [f64], chunk: usize) {
        let k = 1e8 / chunk as f64;
        self.put(&format!("{metric}_s"), pct(v, 0.5) * k);
        self.put(&format!("{metric}_best_s"), pct(v, 0.1) * k);
    }

    // 1. throughput with one client attached
    fn tput(&mut self, t: &Tool) -> Res {
        for (kind, bytes) in [("ascii", self.p.ascii), ("sgr", self.p.sgr)] {
            let chunk = bytes / self.p.chunks;
            let r = Run::start(t)?;
            let (gate, mut d) = self.producer(&r, kind, chunk)?;
            let mut ts = [r.attach("s0001")];
            let gate = Gate::open(&gate)?;
            ts[0].bytes = 0;
            ts[0].reads = 0;
            let pids = sys::tool_pids(&self.self_exe);
            let cpu0 = sys::cpu(&pids);
            let mut v = chunks(&gate, &mut d, &mut ts, self.p.chunks, self.limit())?;
            let cpu = sys::cpu_secs(&cpu0, &sys::cpu(&pids), pids.len());
            let sent = (v.len() * chunk) as f64;
            let got = ts[0].bytes as f64;
            let per_read = got / ts[0].reads.max(1) as f64;
            ts[0].close();
            r.stop();
            self.put_rate(&format!("tput_{kind}"), &mut v, chunk);
            self.put(&format!("tput_{kind}_delivered"), got / sent);
            self.put(&format!("tput_{kind}_bytes_per_read"), per_read);
            if !t.raw {
                self.put(&format!("tput_{kind}_cpu_s"), cpu * 1e8 / sent);
            }
        }
        Ok(())
    }

    // 1c. the same with nobody attached
    fn det(&mut self, t: &Tool) -> Res {
        for (kind, bytes) in [("ascii", self.p.ascii), ("sgr", self.p.sgr)] {
            let chunk = bytes / self.p.chunks;
            let r = Run::start(t)?;
            let (gate, mut d) = self.producer(&r, kind, chunk)?;
            let gate = Gate::open(&gate)?;
            let mut ts = vec![];
            if t.raw {
                ts.push(r.attach("s0001"));
            } else {
                std::thread::sleep(Duration::from_millis(50));
            }
            let pids = sys::tool_pids(&self.self_exe);
            let cpu0 = sys::cpu(&pids);
            let mut v = chunks(&gate, &mut d, &mut ts, self.p.chunks, self.limit())?;
            let cpu = sys::cpu_secs(&cpu0, &sys::cpu(&pids), pids.len());
            let sent = (v.len() * chunk) as f64;
            r.stop();
            self.put_rate(&format!("det_{kind}"), &mut v, chunk);
            if !t.raw {
                self.put(&format!("det_{kind}_cpu_s"), cpu * 1e8 / sent);
            }
        }
        Ok(())
    }

    // 2. keystroke echo
    fn echo(&mut self, t: &Tool) -> Res {
        for (kind, cmd) in [("tty", vec!["cat".to_string()]), ("app", self.payload(&["rawecho"]))] {
            let r = Run::start(t)?;
            r.create("s0001", &cmd)?;
            let mut tm = r.attach("s0001");
            std::thread::sleep(Duration::from_millis(50));
            sys::boost();
            let (mut v, lost) = echo_samples(&mut tm, self.p.echo, self.limit() + Duration::from_secs(2));
            tm.close();
            r.stop();
            if lost > 10 || v.len() < 20 {
                return Err(format!("{kind}: {lost} of {} keystrokes never echoed", self.p.echo));
            }
            if lost > 0 {
                self.note(format!("echo/{}: {lost} of {} keystrokes without echo in 1 s", t.name, self.p.echo));
            }
            self.put(&format!("echo_{kind}_p10_us"), pct(&mut v, 0.1));
            self.put(&format!("echo_{kind}_p50_us"), pct(&mut v, 0.5));
            self.put(&format!("echo_{kind}_p99_us"), pct(&mut v, 0.99));
        }
        Ok(())
    }

    // 3. attach with 10,000 lines of history behind it
    fn attach(&mut self, t: &Tool) -> Res {
        let n = if self.p.quick && t.restore { 3 } else if self.p.quick { 2 } else { 10 };
        let (mut first, mut full, mut bytes) = (vec![], vec![], vec![]);
        let r = Run::start(t)?;
        if !t.raw {
            let done = r.dir.join("d").display().to_string();
            let mut d = Done::new(&done);
            r.create("s0001", &self.payload(&["fill", "10000", "100", &done]))?;
            if !d.wait(self.limit()) {
                return Err("history was never taken in".into());
            }
            std::thread::sleep(Duration::from_millis(300));
        }
        sys::boost();
        for _ in 0..n {
            let c = if t.raw {
                Cmd::new(&self.payload(&["screen"]), &[])
            } else {
                r.attach_cmd("s0001")
            };
            let t0 = Instant::now();
            let (pid, fd) = c.spawn_pty();
            let mut ts = [Term::new(fd)];
            let lim = Duration::from_millis(if t.restore || t.raw { 5000 } else { 150 });
            let ok = sys::drain_until(&mut ts, 20, lim);
            let el = t0.elapsed();
            if let Some(f) = ts[0].first {
                first.push((f - t0).as_secs_f64() * 1e3);
            }
            if ok.is_some() {
                full.push(el.as_secs_f64() * 1e3);
            }
            sys::settle(&mut ts, Duration::from_millis(60), Duration::from_secs(1));
            bytes.push(ts[0].bytes as f64);
            unsafe { libc::kill(pid, libc::SIGHUP) };
            ts[0].close();
            sys::wait_exit(pid, Duration::from_secs(2));
            // Some tools notice a client's end late; a re-attach before that is another measure.
            std::thread::sleep(Duration::from_millis(if !self.p.quick { 300 } else if t.raw { 5 } else { 100 }));
        }
        r.stop();
        if first.is_empty() {
            return Err("attach showed nothing".into());
        }
        self.put("attach_first_ms", pct(&mut first, 0.5));
        self.put("attach_first_best_ms", pct(&mut first, 0.1));
        self.put("attach_bytes", pct(&mut bytes, 0.5));
        if full.len() * 2 > n {
            self.put("attach_full_ms", pct(&mut full, 0.5));
            self.put("attach_full_best_ms", pct(&mut full, 0.1));
        } else if t.restore {
            return Err(format!("screen restored in {} of {n} attaches", full.len()));
        }
        Ok(())
    }

    // 4. creation, one after the other
    fn create(&mut self, t: &Tool) -> Res {
        let r = Run::start(t)?;
        let cmd = vec!["sleep".to_string(), "infinity".to_string()];
        r.create("warmup", &cmd)?;
        sys::boost();
        let n = self.p.create;
        let mut each = vec![];
        let t0 = Instant::now();
        for i in 0..n {
            each.push(r.create(&format!("s{i:04}"), &cmd)?.as_secs_f64() * 1e3);
        }
        let el = t0.elapsed().as_secs_f64();
        std::thread::sleep(Duration::from_millis(200));
        let alive = sys::payload_count(&self.self_exe);
        r.stop();
        if alive < n + 1 {
            self.note(format!("create/{}: only {alive} of {} sessions alive", t.name, n + 1));
        }
        self.put("create_ms", el * 1e3 / n as f64);
        self.put("create_best_ms", pct(&mut each, 0.1));
        self.put("create_p99_ms", pct(&mut each, 0.99));
        Ok(())
    }

    // 5. memory of the tool's own processes, sessions detached
    fn mem(&mut self, t: &Tool) -> Res {
        if t.raw {
            return Ok(());
        }
        for (kind, counts) in [("empty", self.p.mem.clone()), ("hist", self.p.mem_hist.clone())] {
            let r = Run::start(t)?;
            let mut have = 0;
            for n in counts {
                while have < n {
                    let name = format!("s{have:04}");
                    if kind == "empty" {
                        r.create(&name, &["sleep".into(), "infinity".into()])?;
                    } else {
                        let done = r.dir.join("d").display().to_string();
                        let mut d = Done::new(&done);
                        r.create(&name, &self.payload(&["fill", "10000", "100", &done]))?;
                        if !d.wait(self.limit()) {
                            return Err("history was never taken in".into());
                        }
                    }
                    have += 1;
                    // Not at the cost of whoever else is on this machine.
                    if kind == "hist" && have % 5 == 0 {
                        let kb = sys::pss_kb(&sys::tool_pids(&self.self_exe));
                        if kb > 4_000_000 || sys::mem_available_kb() < 4_000_000 {
                            self.put("mem_hist_capped_kb", kb as f64 / have as f64);
                            return Err(format!(
                                "stopped at {have} sessions with history: {} MiB",
                                kb / 1024
                            ));
                        }
                    }
                }
                std::thread::sleep(Duration::from_millis(if self.p.quick { 100 } else { 400 }));
                let pids = sys::tool_pids(&self.self_exe);
                let kb = sys::pss_kb(&pids) as f64;
                self.put(&format!("mem_{kind}_{n}_kb"), kb / n as f64);
                if n >= 5 {
                    self.put(&format!("procs_per_session_{n}"), pids.len() as f64 / n as f64);
                }
            }
            if self.p.quick && kind == "empty" {
                self.idle_now(self.p.idle_secs);
            }
            r.stop();
        }
        Ok(())
    }

    fn idle_now(&mut self, secs: f64) {
        let pids = sys::tool_pids(&self.self_exe);
        let c0 = sys::cpu(&pids);
        std::thread::sleep(Duration::from_secs_f64(secs));
        let cpu = sys::cpu_secs(&c0, &sys::cpu(&pids), pids.len()) * 1e3;
        self.put("idle_cpu_ms_per_10s", cpu * 10.0 / secs);
    }

    // 6. one producer, N clients
    fn fan(&mut self, t: &Tool) -> Res {
        for n in self.p.fan.clone() {
            if n > 1 && !t.multi && !t.raw {
                self.note(format!("fan/{}: one client per session only", t.name));
                break;
            }
            let r = Run::start(t)?;
            let parts = (self.p.chunks / 4).max(2);
            let chunk = self.p.fan_bytes / parts;
            let (gate, mut d) = self.producer(&r, "ascii", chunk)?;
            let mut ts: Vec<Term> = vec![];
            let mut pids = vec![];
            if t.raw {
                let (pid, terms) = relay(r.attach("s0001").fd, n);
                pids.push(pid);
                ts = terms;
            } else {
                for _ in 0..n {
                    ts.push(r.attach("s0001"));
                }
                sys::settle(&mut ts, Duration::from_millis(100), Duration::from_secs(2));
                pids = sys::tool_pids(&self.self_exe);
            }
            let gate = Gate::open(&gate)?;
            for x in ts.iter_mut() {
                x.bytes = 0;
            }
            let c0 = sys::cpu(&pids);
            let res = chunks(&gate, &mut d, &mut ts, parts, self.limit());
            let cpu = sys::cpu_secs(&c0, &sys::cpu(&pids), pids.len());
            let got: u64 = ts.iter().map(|x| x.bytes).sum();
            for x in ts.iter_mut() {
                x.close();
            }
            r.stop();
            let mut v = match res {
                Ok(v) => v,
                Err(e) => {
                    self.note(format!("fan/{} with {n} clients: {e}", t.name));
                    continue;
                }
            };
            let sent = (v.len() * chunk) as f64;
            self.put_rate(&format!("fan_{n}"), &mut v, chunk);
            self.put(&format!("fan_{n}_cpu_s"), cpu * 1e8 / sent);
            self.put(&format!("fan_{n}_delivered"), got as f64 / (sent * n as f64));
        }
        Ok(())
    }

    // 7. CPU of idle detached sessions
    fn idle(&mut self, t: &Tool) -> Res {
        if t.raw || self.p.quick {
            return Ok(()); // --quick takes it along with the memory measure
        }
        let r = Run::start(t)?;
        for i in 0..self.p.idle_sessions {
            r.create(&format!("s{i:04}"), &["sleep".into(), "infinity".into()])?;
        }
        std::thread::sleep(Duration::from_millis(1500));
        self.idle_now(self.p.idle_secs);
        r.stop();
        Ok(())
    }
}
