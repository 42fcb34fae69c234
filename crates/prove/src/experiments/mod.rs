//! The experiments: the acceptance sequence, the four parts of the claim, the nine failure modes, and the neighbours for contrast.

mod acceptance;
mod claim;
mod distance;
mod kinds;
mod migration;
mod modes;
mod reaping;
mod steering;

use crate::rivals;
use crate::trial::Experiment;

/// All of them, in the order in which they run.
pub const ALL: &[Experiment] = &[
    Experiment {
        id: "acceptance",
        claim: "A job goes on, as the same process, while five kinds of client come and go",
        run: acceptance::acceptance,
    },
    Experiment {
        id: "distance",
        claim: "Another machine reaches the session through a relay, acts under its own name, and is revoked",
        run: distance::distance,
    },
    Experiment {
        id: "ownerless",
        claim: "No participant owns the session: everyone can leave, and it lives",
        run: claim::ownerless,
    },
    Experiment {
        id: "any-client",
        claim: "Different kinds of client share one live execution",
        run: kinds::any_client,
    },
    Experiment {
        id: "authority",
        claim: "Authority is granted, attributed, handed over, revoked and seized; forgeries are refused",
        run: steering::authority,
    },
    Experiment { id: "outlives", claim: "The execution outlives the client that created it", run: claim::outlives },
    Experiment {
        id: "client-loss",
        claim: "A lost client loses no output: reading goes on by offset",
        run: modes::client_loss,
    },
    Experiment {
        id: "host-crash",
        claim: "Kill -9 of the host neither ends the session nor loses or doubles a byte",
        run: modes::host_crash,
    },
    Experiment {
        id: "host-death",
        claim: "What a machine's death ends is reported as lost, and recovered under the same identity, behind a higher fence",
        run: modes::host_death,
    },
    Experiment {
        id: "migration",
        claim: "A live session goes to another machine with its memory, and has no second life where it was",
        run: migration::migration,
    },
    Experiment {
        id: "outside-connection",
        claim: "A connection to somebody else's server that broke is reported, never healed in secret",
        run: modes::outside_connection,
    },
    Experiment {
        id: "fork",
        claim: "A session is forked into branches with identities of their own",
        run: modes::fork,
    },
    Experiment {
        id: "no-replay",
        claim: "Coming back replays nothing: each effect happened once",
        run: modes::no_replay,
    },
    Experiment {
        id: "half-done",
        claim: "Half-applied work keeps its process alive and says what it waits for",
        run: modes::half_done,
    },
    Experiment {
        id: "conflict",
        claim: "Two writers never mix: each line arrives whole, once, or is refused with the holder's name",
        run: steering::conflict,
    },
    Experiment {
        id: "poisoning",
        claim: "What one actor changed in a shared shell is bound to that actor",
        run: steering::poisoning,
    },
    Experiment {
        id: "reaping",
        claim: "An idle session is reaped by policy, on record, and never while it works",
        run: reaping::reaping,
    },
    Experiment {
        id: "neighbours",
        claim: "The same experiments on tmux, dtach and screen, for contrast",
        run: rivals::neighbours,
    },
];
