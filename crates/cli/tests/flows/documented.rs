//! Every command in docs/flows.md, in its order, in one home.

use crate::Kitchen;
use holdfast_harness::poll;

const DOCS: &str = include_str!("../../../../docs/flows.md");
const PIZZA: &str = include_str!("../../../../examples/pizza-order.yaml");

/// What differs from run to run.
fn settled(text: &str) -> String {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let is_age = |word: &str| {
        word.len() > 1 && word.ends_with('s') && word[..word.len() - 1].chars().all(|c| c.is_ascii_digit())
    };
    let line = |line: &str| {
        let words = words(line)
            .into_iter()
            .map(|word| if line.contains("human:") && is_age(&word) { "0s".into() } else { word });
        words.collect::<Vec<_>>().join(" ").replace("human:ann", "human:tester")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Whether this is what the page shows; `…` stands there for anything within a line.
fn is_shown(found: &str, wanted: &str) -> bool {
    let fits = |(found, wanted): (&str, &str)| match wanted.split_once('…') {
        Some((start, end)) => found.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
        None => found == wanted,
    };
    found.lines().count() == wanted.lines().count() && found.lines().zip(wanted.lines()).all(fits)
}

#[test]
fn every_command_of_the_page_prints_what_the_page_says() {
    let kitchen = Kitchen::new();
    std::fs::write(kitchen.home.join("pizza-order.yaml"), PIZZA).unwrap();
    let yaml: Vec<&str> = DOCS.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap().lines().collect();
    for line in yaml {
        assert!(PIZZA.contains(line), "the page's example has {line:?}, the file has not");
    }
    let mut commands = 0;
    for block in DOCS.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        for told in block.split("$ ").skip(1) {
            let (command, wanted) = told.split_once('\n').unwrap();
            let words: Vec<&str> = command.strip_prefix("holdfast ").unwrap().split_whitespace().collect();
            let mut last = String::new();
            let found = poll(|| {
                let ran = kitchen.home.run(&words);
                assert_eq!(ran.status, 0, "{command}: {ran}");
                last = ran.out + &ran.err;
                is_shown(&settled(&last), &settled(wanted))
            });
            assert!(found.is_some(), "{command} printed:\n{last}\nthe page says:\n{wanted}");
            commands += 1;
        }
    }
    assert!(commands >= 6, "{commands}");
    assert_eq!(kitchen.flow("PizzaOrder-128")["status"], "COMPLETED");
    let shown = kitchen.home.ok(&["flow", "show", "PizzaOrder-128"]);
    assert!(
        shown.contains("PreparePizza") && shown.contains("→ 5s elapsed") && shown.contains("result: RECEIPT SENT"),
        "{shown}"
    );
}
