//! Whether a command printed what its page says.

/// `…` on a line of its own stands for any lines, within a line for any text.
const ANYTHING: &str = "…";

/// Whether the printed text is what is wanted.
pub fn matches(wanted: &str, printed: &str) -> bool {
    let lines = |text: &str| text.lines().map(settled).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    lines_match(&lines(wanted), &lines(printed))
}

/// Whether one line is.
pub fn line_matches(wanted: &str, printed: &str) -> bool {
    fits(&settled(wanted), &settled(printed))
}

fn lines_match(wanted: &[String], printed: &[String]) -> bool {
    match wanted.split_first() {
        None => printed.is_empty(),
        Some((any, rest)) if any == ANYTHING => (0..=printed.len()).any(|skip| lines_match(rest, &printed[skip..])),
        Some((line, rest)) => {
            printed.split_first().is_some_and(|(first, others)| fits(line, first) && lines_match(rest, others))
        }
    }
}

/// What sizes and durations are measured in; which of its group does not count.
const UNITS: &[&[&str]] = &[&["MiB", "KiB", "GiB", "B"], &["ms", "µs"]];

/// A line without what differs from run to run: widths of columns, ages, times, days, sizes, numbers of processes.
fn settled(line: &str) -> String {
    let mut before = "";
    let words = line.split_whitespace().map(|word| std::mem::replace(&mut before, word)).collect::<Vec<_>>();
    let pairs = words.into_iter().zip(line.split_whitespace());
    let mut words = pairs.map(|(before, now)| word(before, now)).collect::<Vec<_>>();
    for at in 1..words.len() {
        let (bare, rest) = words[at].split_at(words[at].trim_end_matches([',', ';', ')']).len());
        let Some(group) = UNITS.iter().find(|group| group.contains(&bare)) else { continue };
        if words[at - 1].parse::<f64>().is_ok() {
            words[at] = format!("{}{rest}", group[0]);
            words[at - 1] = "0".into();
        }
    }
    words.join(" ")
}

fn word(before: &str, word: &str) -> String {
    let bare = word.trim_end_matches([',', ';', ')']);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_age = bare.strip_suffix(['s', 'm', 'h', 'd']).is_some_and(digits);
    let is_time = bare.len() == 8 && bare.split(':').count() == 3 && bare.split(':').all(digits);
    let is_day = bare.len() == 10 && bare.split('-').count() == 3 && bare.split('-').all(digits);
    let is_process = matches!(before, "process" | "(was") && digits(bare);
    match bare {
        _ if is_age => format!("0s{}", &word[bare.len()..]),
        _ if is_time => "00:00:00".into(),
        _ if is_day => "2000-01-01".into(),
        _ if is_process => format!("1{}", &word[bare.len()..]),
        _ => word.to_owned(),
    }
}

fn fits(wanted: &str, printed: &str) -> bool {
    let mut parts = wanted.split(ANYTHING);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn dots_stand_for_anything_and_times_do_not_count() {
    assert!(matches("host stopped, process 17; 1 session", "host stopped, process 4711; 1 session"));
    assert!(!matches("host stopped, process 17; 1 session", "host stopped, process 17; 2 sessions"));
    assert!(matches("2026-11-17\n10:24:31 ann took", "2027-01-02\n23:59:59  ann took"));
    assert!(matches("work  idle  3h  bash", "work idle   2s bash\n\n"));
    assert!(matches("one\n…\nfour …", "one\ntwo\nthree\nfour and more"));
    assert!(matches("stood still for 61 ms; 1.2 MiB sent", "stood still for 1200 ms; 1021.6 KiB sent"));
    assert!(!matches("1.2 MiB sent", "some MiB sent"));
    assert!(matches("id run_…, ended", "id run_123, ended"));
    assert!(!matches("id run_…, ended", "id run_123, lost"));
    assert!(!matches("one", "one\ntwo"));
    assert!(!matches("", "one"));
}
