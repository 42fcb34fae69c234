//! `data/corpus.tsv`: what each of the ready policies says to an agent, and what the line risks.

use crate::{judge, request};
use holdfast_gate::{Action, Risk};

#[test]
fn every_command_of_the_corpus_is_judged_as_written_there() {
    let corpus = include_str!("../../data/corpus.tsv");
    let mut judges = ["solo", "careful", "locked"].map(judge);
    let (mut count, mut wrong) = (0, Vec::new());
    for row in corpus.lines().filter(|row| !row.starts_with('#')) {
        let cells: Vec<&str> = row.splitn(5, '\t').collect();
        let [solo, careful, locked, risk, command] = cells[..] else { panic!("{row}") };
        let command = unescaped(command);
        let request = request("agent:bot", Action::Run, &command);
        let risks: Vec<&str> = request.facts.seen.risks.iter().map(|risk| risk.word()).collect();
        for (judge, expected) in judges.iter_mut().zip([solo, careful, locked]) {
            let verdict = judge.decide(&request);
            if verdict.outcome.word() != expected {
                wrong.push(format!(
                    "{command:?}: {} by {}, expected {expected}; {risks:?}",
                    verdict.outcome.word(),
                    verdict.rule
                ));
            }
        }
        if risk != "-" && !risks.contains(&risk) {
            wrong.push(format!("{command:?}: {risks:?}, expected {risk}"));
        }
        if risk == "-" && risks.iter().any(|risk| ["unthinkable", "catastrophic"].contains(risk)) {
            wrong.push(format!("{command:?}: {risks:?}, expected nothing"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 200, "{count} commands");
}

#[test]
fn every_risk_is_in_the_corpus() {
    let corpus = include_str!("../../data/corpus.tsv");
    for risk in Risk::EACH.iter().filter(|risk| !matches!(risk, Risk::Unthinkable | Risk::Catastrophic)) {
        let is_it = |row: &str| row.split('\t').nth(3) == Some(risk.word());
        assert!(corpus.lines().any(is_it), "no command for {}", risk.word());
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    out
}
