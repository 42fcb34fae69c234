//! The gate from outside: a corpus of commands, every rule of the ready policies, files that must not load.

#![allow(clippy::unwrap_used)] // a test's failure is its message

mod corpus;
mod files;
mod rules;

use holdfast_gate::{
    Action, Facts, Judge, Lexical, Line, Policy, Principal, Request, Resource, Source, Surroundings, look,
};

fn around() -> Surroundings {
    let own = vec!["/home/user/.local/state/holdfast".into(), "/home/user/.config/holdfast".into()];
    Surroundings::new("/home/user/project", "/home/user", None, own)
}

fn judge(name: &str) -> Judge {
    Judge::new(Policy::load(&[Source::ready(name).unwrap()]).unwrap_or_else(|problems| {
        panic!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }))
}

fn request(handle: &str, action: Action, line: &str) -> Request {
    let around = around();
    Request {
        principal: Principal {
            handle: handle.into(),
            class: handle.split(':').next().unwrap().into(),
            record: holdfast_gate::Standing::default(),
        },
        action,
        resource: Resource { id: "ses_1".into(), name: "x".into() },
        facts: Facts {
            line: line.into(),
            seen: look(&Line::read(line), &around, &Lexical),
            cwd: around.cwd,
            home: around.home,
            state: "idle".into(),
            ..Facts::default()
        },
    }
}
