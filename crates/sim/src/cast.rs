//! Who acts in a world: two people and two agents, all known to the host.

use holdfast_authority::{Ask, GrantId, Policy, Revoke};
use holdfast_types::{Actor, ActorId, Defaults, Right, Rights};

/// One of the cast, by its place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Who(pub usize);

const HANDLES: [&str; 4] = ["human:ann", "human:bob", "agent:claude", "agent:codex"];

impl Who {
    /// Anybody.
    pub fn any(rng: &mut fastrand::Rng) -> Who {
        Who(rng.usize(..HANDLES.len()))
    }

    /// Its key and handle. The key signs nothing here.
    pub fn actor(self) -> Actor {
        let handle = HANDLES[self.0].parse().expect("the handles above are handles");
        Actor { id: ActorId([self.0 as u8 + 1; 32]), handle }
    }

    /// The one with this key.
    pub fn of(actor: &Actor) -> Who {
        Who(usize::from(actor.id.0[0]) - 1)
    }
}

/// What the host says of them.
pub(crate) fn policy() -> Policy {
    let vouched = (0..HANDLES.len()).map(|n| Who(n).actor()).map(|actor| (actor.id, actor.handle)).collect();
    Policy { defaults: Defaults::default(), vouched }
}

/// Something about the turn, or about rights.
pub(crate) fn an_ask(rng: &mut fastrand::Rng, now: u64) -> Ask {
    match rng.u32(..100) {
        0..25 => Ask::Take,
        25..45 => Ask::Request,
        45..50 => Ask::Withdraw,
        50..62 => Ask::Give { to: Who::any(rng).actor() },
        62..76 => Ask::Release,
        76..88 => Ask::Seize { freeze: rng.u32(..4) == 0, reason: "to see what happens".into() },
        88..95 => Ask::Thaw,
        95..98 => Ask::Grant {
            to: Who::any(rng).actor(),
            rights: Rights::of(&[Right::Seize, Right::Type]),
            until: (rng.u32(..2) == 0).then(|| now + rng.u64(100..5_000)),
        },
        _ => Ask::Revoke(Revoke::Grant(GrantId(rng.u32(1..6)))),
    }
}
