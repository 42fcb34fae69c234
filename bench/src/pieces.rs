//! Pieces of the measures: a bare fan-out, and the time of a key's echo.

use crate::sys::{self, Term};
use std::time::{Duration, Instant};

/// The least a fan-out can cost: one process copying a pty to n others.
pub fn relay(src: i32, n: usize) -> (i32, Vec<Term>) {
    let mut pairs = vec![];
    for _ in 0..n {
        let (mut m, mut s) = (-1, -1);
        let mut ws = libc::winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        unsafe {
            let mut tio: libc::termios = std::mem::zeroed();
            libc::openpty(&mut m, &mut s, std::ptr::null_mut(), std::ptr::null_mut(), &mut ws);
            libc::tcgetattr(s, &mut tio);
            libc::cfmakeraw(&mut tio);
            libc::tcsetattr(s, libc::TCSANOW, &tio);
            libc::fcntl(m, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        pairs.push((m, s));
    }
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let mut buf = vec![0u8; 65536];
        unsafe {
            for (m, _) in &pairs {
                libc::close(*m);
            }
            loop {
                let k = libc::read(src, buf.as_mut_ptr().cast(), buf.len());
                if k <= 0 {
                    libc::pause();
                }
                for (_, s) in &pairs {
                    let mut o = 0;
                    while o < k {
                        let w = libc::write(*s, buf.as_ptr().offset(o).cast(), (k - o) as usize);
                        if w <= 0 {
                            libc::_exit(1);
                        }
                        o += w;
                    }
                }
            }
        }
    }
    let ts = pairs
        .iter()
        .map(|(m, s)| {
            unsafe { libc::close(*s) };
            Term::new(*m)
        })
        .collect();
    (pid, ts)
}

/// Type up to n keys one by one; microseconds to each echo, and how many got none.
pub fn echo_samples(t: &mut Term, n: usize, limit: Duration) -> (Vec<f64>, usize) {
    const KEYS: &[u8] = b"#%&+=";
    let mut buf = vec![0u8; sys::BUF];
    let (mut v, mut lost) = (vec![], 0);
    let mut rng = 7u64;
    let swallow = |t: &mut Term, buf: &mut [u8], us: u64| {
        let t0 = Instant::now();
        let d = Duration::from_micros(us);
        while let Some(left) = d.checked_sub(t0.elapsed()) {
            let ts = libc::timespec { tv_sec: 0, tv_nsec: left.as_nanos() as i64 };
            let mut p = libc::pollfd { fd: t.fd, events: libc::POLLIN, revents: 0 };
            if unsafe { libc::ppoll(&mut p, 1, &ts, std::ptr::null()) } > 0 {
                t.pump(buf);
                if t.eof {
                    return;
                }
            }
        }
    };
    let begin = Instant::now();
    for i in 0..n + 20 {
        if begin.elapsed() > limit {
            break;
        }
        if i % 50 == 49 {
            // New line: keeps clear of the right margin and of the tty's line limit.
            t.write(b"\r");
            swallow(t, &mut buf, 40_000);
        }
        let k = KEYS[i % KEYS.len()];
        let t0 = Instant::now();
        t.write(&[k]);
        let mut seen = false;
        while t0.elapsed() < Duration::from_secs(1) && !t.eof {
            if sys::poll_in(t.fd, 1000) {
                let got = t.pump(&mut buf);
                if sys::memchr(&buf[..got], k).is_some() {
                    seen = true;
                    break;
                }
            }
        }
        let us = t0.elapsed().as_secs_f64() * 1e6;
        if i >= 20 {
            if seen {
                v.push(us);
            } else {
                lost += 1;
                if lost > 10 {
                    return (v, n);
                }
            }
        }
        rng = rng.wrapping_mul(6364136223846793005).wrapping_add(1);
        swallow(t, &mut buf, 300 + (rng >> 33) % 1200);
    }
    (v, lost)
}
