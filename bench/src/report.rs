//! Markdown and JSON. Ratios are paired: computed round by round, then the median.

use crate::measures::{pct, Bench};
use crate::tools::Tool;
use std::fmt::Write;

/// (metric prefix or name, what it is); order of the tables. Lower is better in all.
const ROWS: &[(&str, &str)] = &[
    ("tput_ascii_s", "attached ASCII, s/100 MB"),
    ("tput_ascii_best_s", "attached ASCII, best decile, s/100 MB"),
    ("tput_ascii_cpu_s", "attached ASCII, tool CPU s/100 MB"),
    ("tput_ascii_delivered", "attached ASCII, bytes delivered / produced"),
    ("tput_ascii_bytes_per_read", "attached ASCII, bytes per terminal read"),
    ("tput_sgr_s", "attached SGR+UTF-8, s/100 MB"),
    ("tput_sgr_best_s", "attached SGR+UTF-8, best decile, s/100 MB"),
    ("tput_sgr_cpu_s", "attached SGR+UTF-8, tool CPU s/100 MB"),
    ("tput_sgr_delivered", "attached SGR+UTF-8, bytes delivered / produced"),
    ("det_ascii_s", "detached ASCII, s/100 MB"),
    ("det_ascii_best_s", "detached ASCII, best decile, s/100 MB"),
    ("det_ascii_cpu_s", "detached ASCII, tool CPU s/100 MB"),
    ("det_sgr_s", "detached SGR+UTF-8, s/100 MB"),
    ("det_sgr_best_s", "detached SGR+UTF-8, best decile, s/100 MB"),
    ("det_sgr_cpu_s", "detached SGR+UTF-8, tool CPU s/100 MB"),
    ("echo_tty_p10_us", "key echo (tty), p10 µs"),
    ("echo_tty_p50_us", "key echo (tty), median µs"),
    ("echo_tty_p99_us", "key echo (tty), p99 µs"),
    ("echo_app_p10_us", "key echo (raw-mode app), p10 µs"),
    ("echo_app_p50_us", "key echo (raw-mode app), median µs"),
    ("echo_app_p99_us", "key echo (raw-mode app), p99 µs"),
    ("attach_first_ms", "attach: first byte, ms"),
    ("attach_first_best_ms", "attach: first byte, best decile, ms"),
    ("attach_full_ms", "attach: screen restored, ms"),
    ("attach_full_best_ms", "attach: screen restored, best decile, ms"),
    ("attach_bytes", "attach: bytes sent"),
    ("create_ms", "create: mean ms per session"),
    ("create_best_ms", "create: best decile, ms"),
    ("create_p99_ms", "create: p99 ms"),
    ("mem_empty_1_kb", "memory/session, empty, 1 session, KiB"),
    ("mem_empty_10_kb", "memory/session, empty, 10 sessions, KiB"),
    ("mem_empty_50_kb", "memory/session, empty, 50 sessions, KiB"),
    ("mem_empty_200_kb", "memory/session, empty, 200 sessions, KiB"),
    ("mem_hist_1_kb", "memory/session, 10k lines, 1 session, KiB"),
    ("mem_hist_2_kb", "memory/session, 10k lines, 2 sessions, KiB"),
    ("mem_hist_50_kb", "memory/session, 10k lines, 50 sessions, KiB"),
    ("mem_hist_200_kb", "memory/session, 10k lines, 200 sessions, KiB"),
    ("mem_hist_capped_kb", "memory/session, 10k lines, stopped at 4 GB, KiB"),
    ("fan_1_s", "fan-out 1 client, s/100 MB"),
    ("fan_1_best_s", "fan-out 1 client, best decile, s/100 MB"),
    ("fan_1_cpu_s", "fan-out 1 client, tool CPU s/100 MB"),
    ("fan_1_delivered", "fan-out 1 client, bytes delivered / produced"),
    ("fan_4_s", "fan-out 4 clients, s/100 MB"),
    ("fan_4_best_s", "fan-out 4 clients, best decile, s/100 MB"),
    ("fan_4_cpu_s", "fan-out 4 clients, tool CPU s/100 MB"),
    ("fan_4_delivered", "fan-out 4 clients, bytes delivered / produced"),
    ("fan_16_s", "fan-out 16 clients, s/100 MB"),
    ("fan_16_best_s", "fan-out 16 clients, best decile, s/100 MB"),
    ("fan_16_cpu_s", "fan-out 16 clients, tool CPU s/100 MB"),
    ("fan_16_delivered", "fan-out 16 clients, bytes delivered / produced"),
    ("idle_cpu_ms_per_10s", "idle CPU, ms per 10 s"),
];

fn informative(metric: &str) -> bool {
    metric.ends_with("_delivered") || metric.ends_with("_per_read") || metric == "attach_bytes" || metric.starts_with("procs_")
}

pub fn median(v: &[f64]) -> f64 {
    pct(&mut v.to_vec(), 0.5)
}

/// (max-min)/median over the rounds: the noise of this cell.
pub fn spread(v: &[f64]) -> f64 {
    let (lo, hi) = v.iter().fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
    (hi - lo) / median(v)
}

fn cell<'x>(b: &'x Bench, m: &str, t: &str) -> Option<&'x Vec<f64>> {
    b.data.get(m)?.get(t)
}

pub fn ratio(b: &Bench, m: &str, t: &str, base: &str) -> Option<f64> {
    let (x, y) = (cell(b, m, t)?, cell(b, m, base)?);
    // Rounds pair up unless one failed; then fall back to the medians.
    let r = if x.len() == y.len() {
        median(&x.iter().zip(y).map(|(a, c)| a / c).collect::<Vec<_>>())
    } else {
        median(x) / median(y)
    };
    r.is_finite().then_some(r)
}

/// Best round against best round: what is left when a busy machine is discounted.
pub fn ratio_min(b: &Bench, m: &str, t: &str, base: &str) -> Option<f64> {
    let min = |v: &Vec<f64>| v.iter().cloned().fold(f64::MAX, f64::min);
    let r = min(cell(b, m, t)?) / min(cell(b, m, base)?);
    r.is_finite().then_some(r)
}

fn num(x: f64) -> String {
    match x.abs() {
        a if a >= 1000.0 => format!("{x:.0}"),
        a if a >= 100.0 => format!("{x:.0}"),
        a if a >= 10.0 => format!("{x:.1}"),
        a if a >= 1.0 => format!("{x:.2}"),
        _ => format!("{x:.3}"),
    }
}

pub fn markdown(b: &Bench, tools: &[Tool], secs: f64) -> String {
    let mut o = String::new();
    let p = b.p;
    let _ = writeln!(
        o,
        "# keepbench {} — {} s\n\nASCII {} MB, SGR+UTF-8 {} MB, fan-out {} MB, {} keys, {} creations, idle {} sessions; {} round(s); terminal {}x{}. Lower is better everywhere.\n",
        if p.quick { "--quick" } else { "--full" },
        secs.round(),
        p.ascii / 1_000_000,
        p.sgr / 1_000_000,
        p.fan_bytes / 1_000_000,
        p.echo,
        p.create,
        p.idle_sessions,
        p.reps,
        crate::sys::COLS,
        crate::sys::ROWS
    );
    let rows: Vec<_> = ROWS.iter().filter(|(m, _)| b.data.contains_key(*m)).collect();
    let head = |o: &mut String, title: &str, skip: &str| {
        let _ = write!(o, "## {title}\n\n| measure |");
        for t in tools.iter().filter(|t| t.name != skip) {
            let _ = write!(o, " {} |", t.name);
        }
        let _ = write!(o, "\n|---|");
        for _ in tools.iter().filter(|t| t.name != skip) {
            let _ = write!(o, "--:|");
        }
        o.push('\n');
    };
    head(&mut o, "Medians (± half the range over the rounds)", "");
    for (m, label) in &rows {
        let _ = write!(o, "| {label} |");
        for t in tools {
            match cell(b, m, &t.name) {
                Some(v) if v.len() > 1 => {
                    let _ = write!(o, " {} ±{:.0}% |", num(median(v)), spread(v) * 50.0);
                }
                Some(v) => {
                    let _ = write!(o, " {} |", num(median(v)));
                }
                None => o.push_str(" – |"),
            }
        }
        o.push('\n');
    }
    for (base, best) in [("raw", false), ("raw", true), ("tmux", false), ("tmux", true)] {
        if best && p.reps < 2 {
            continue;
        }
        o.push('\n');
        let how = if best { "best round against best round" } else { "median of paired rounds" };
        head(&mut o, &format!("Ratio to {base} ({how})"), base);
        for (m, label) in rows.iter().filter(|(m, _)| !informative(m)) {
            if cell(b, m, base).is_none() {
                continue;
            }
            let _ = write!(o, "| {} |", label);
            for t in tools.iter().filter(|t| t.name != base) {
                let f = if best { ratio_min } else { ratio };
                match f(b, m, &t.name, base) {
                    Some(r) => {
                        let _ = write!(o, " {} |", num(r));
                    }
                    None => o.push_str(" – |"),
                }
            }
            o.push('\n');
        }
    }
    best_tools(b, tools, &rows, &mut o);
    if !b.notes.is_empty() {
        o.push_str("\n## Notes\n\n");
        for n in &b.notes {
            let _ = writeln!(o, "- {n}");
        }
    }
    o
}

fn best_tools(b: &Bench, tools: &[Tool], rows: &[&(&str, &str)], o: &mut String) {
    o.push_str("\n## Best tool per measure (the figure to beat)\n\n");
    for (m, label) in rows.iter().filter(|(m, _)| !informative(m)) {
        let best = tools
            .iter()
            .filter(|t| !t.raw && t.name != "floor")
            .filter_map(|t| cell(b, m, &t.name).map(|v| (t, median(v))))
            .min_by(|a, c| a.1.partial_cmp(&c.1).unwrap());
        if let Some((t, x)) = best {
            let r = ratio(b, m, &t.name, "raw").map(|r| format!(", {}x raw", num(r)));
            let _ = writeln!(
                o,
                "- {}: {} ({}{})",
                label,
                t.name,
                num(x),
                r.unwrap_or_default()
            );
        }
    }
}

fn js(s: &str) -> String {
    let mut o = String::from("\"");
    for c in s.chars() {
        match c {
            '"' | '\\' => {
                o.push('\\');
                o.push(c);
            }
            c if (c as u32) < 32 => {
                let _ = write!(o, "\\u{:04x}", c as u32);
            }
            c => o.push(c),
        }
    }
    o + "\""
}

fn jn(x: f64) -> String {
    if x.is_finite() {
        format!("{x}")
    } else {
        "null".into()
    }
}

fn version(t: &Tool) -> String {
    if t.version.is_empty() {
        return String::new();
    }
    let v: Vec<String> =
        t.version.replace("{bin}", &t.bin).split_whitespace().map(String::from).collect();
    match std::process::Command::new(&v[0]).args(&v[1..]).output() {
        Ok(o) => {
            let s = if o.stdout.is_empty() { o.stderr } else { o.stdout };
            String::from_utf8_lossy(&s).lines().next().unwrap_or("").trim().into()
        }
        Err(_) => String::new(),
    }
}

pub fn json(b: &Bench, tools: &[Tool], secs: f64) -> String {
    let p = b.p;
    let mut o = String::from("{\n");
    let _ = writeln!(
        o,
        " \"mode\": {}, \"seconds\": {:.1}, \"rounds\": {}, \"ascii_bytes\": {}, \"sgr_bytes\": {}, \"fan_bytes\": {}, \"keys\": {}, \"creations\": {}, \"idle_sessions\": {},",
        js(if p.quick { "quick" } else { "full" }),
        secs, p.reps, p.ascii, p.sgr, p.fan_bytes, p.echo, p.create, p.idle_sessions
    );
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let _ = writeln!(o, " \"kernel\": {},", js(kernel.trim()));
    let vs: Vec<String> =
        tools.iter().map(|t| format!("{}: {}", js(&t.name), js(&version(t)))).collect();
    let _ = writeln!(o, " \"tools\": {{{}}},", vs.join(", "));
    let ns: Vec<String> = b.notes.iter().map(|n| js(n)).collect();
    let _ = writeln!(o, " \"notes\": [{}],", ns.join(", "));
    o.push_str(" \"measures\": {\n");
    let n = b.data.len();
    for (i, (m, per)) in b.data.iter().enumerate() {
        let _ = writeln!(o, "  {}: {{", js(m));
        let k = per.len();
        for (j, (t, v)) in per.iter().enumerate() {
            let s: Vec<String> = v.iter().map(|x| jn(*x)).collect();
            let _ = writeln!(
                o,
                "   {}: {{\"median\": {}, \"spread\": {}, \"to_raw\": {}, \"to_tmux\": {}, \"to_raw_best\": {}, \"to_tmux_best\": {}, \"samples\": [{}]}}{}",
                js(t),
                jn(median(v)),
                jn(spread(v)),
                jn(ratio(b, m, t, "raw").unwrap_or(f64::NAN)),
                jn(ratio(b, m, t, "tmux").unwrap_or(f64::NAN)),
                jn(ratio_min(b, m, t, "raw").unwrap_or(f64::NAN)),
                jn(ratio_min(b, m, t, "tmux").unwrap_or(f64::NAN)),
                s.join(", "),
                if j + 1 < k { "," } else { "" }
            );
        }
        let _ = writeln!(o, "  }}{}", if i + 1 < n { "," } else { "" });
    }
    o.push_str(" }\n}\n");
    o
}
