//! Names for what a line would do. Policies are written with them; the words are stable.

/// One risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Risk {
    /// Nobody wants it done, and nothing brings it back: the system's own directories, a device, a fork bomb.
    Unthinkable,
    /// It cannot be taken back and reaches beyond the work at hand: each of those below up to `publishes`.
    Catastrophic,
    /// Deletes or changes a directory that the system consists of.
    DestroysSystem,
    /// Overwrites a disk.
    DestroysDevice,
    /// Fills the machine with processes.
    ForkBomb,
    /// Reaches for Holdfast itself: its policy, journals, keys, processes.
    ReachesHoldfast,
    /// Deletes or changes a home directory as a whole.
    DeletesHome,
    /// Deletes the working directory, all that is in it, or one above it.
    DeletesHere,
    /// Deletes a version history.
    DeletesRepository,
    /// Deletes whole directories by names that only the live shell knows.
    DeletesUnknown,
    /// Deletes by a pattern across the whole system or home.
    DeletesWidely,
    /// Writes or deletes keys and passwords.
    TouchesCredentials,
    /// Writes or deletes what the system starts from, or who may log in.
    TouchesSystem,
    /// Runs what it downloads.
    RunsDownload,
    /// Stops or suspends the machine.
    StopsMachine,
    /// Ends processes it did not start.
    KillsEverything,
    /// Adds, changes or removes users.
    ChangesAccounts,
    /// Opens the firewall.
    ChangesFirewall,
    /// Removes scheduled jobs.
    ChangesSchedule,
    /// Rewrites or deletes branches elsewhere.
    RewritesRemote,
    /// Deletes clusters, databases, volumes, buckets.
    DestroysElsewhere,
    /// Gives a package or release to the world.
    Publishes,
    /// Deletes outside the working, temporary and cache directories.
    DeletesOutside,
    /// Writes outside of them.
    WritesOutside,
    /// Acts with another user's rights.
    Escalates,
    /// Speaks to other machines.
    Network,
}

impl Risk {
    /// Each of them.
    pub const EACH: &[Risk] = &[
        Risk::Unthinkable,
        Risk::Catastrophic,
        Risk::DestroysSystem,
        Risk::DestroysDevice,
        Risk::ForkBomb,
        Risk::ReachesHoldfast,
        Risk::DeletesHome,
        Risk::DeletesHere,
        Risk::DeletesRepository,
        Risk::DeletesUnknown,
        Risk::DeletesWidely,
        Risk::TouchesCredentials,
        Risk::TouchesSystem,
        Risk::RunsDownload,
        Risk::StopsMachine,
        Risk::KillsEverything,
        Risk::ChangesAccounts,
        Risk::ChangesFirewall,
        Risk::ChangesSchedule,
        Risk::RewritesRemote,
        Risk::DestroysElsewhere,
        Risk::Publishes,
        Risk::DeletesOutside,
        Risk::WritesOutside,
        Risk::Escalates,
        Risk::Network,
    ];

    /// The stable word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Risk::Unthinkable => "unthinkable",
            Risk::Catastrophic => "catastrophic",
            Risk::DestroysSystem => "destroys-system",
            Risk::DestroysDevice => "destroys-device",
            Risk::ForkBomb => "fork-bomb",
            Risk::ReachesHoldfast => "reaches-holdfast",
            Risk::DeletesHome => "deletes-home",
            Risk::DeletesHere => "deletes-here",
            Risk::DeletesRepository => "deletes-repository",
            Risk::DeletesUnknown => "deletes-unknown",
            Risk::DeletesWidely => "deletes-widely",
            Risk::TouchesCredentials => "touches-credentials",
            Risk::TouchesSystem => "touches-system",
            Risk::RunsDownload => "runs-download",
            Risk::StopsMachine => "stops-machine",
            Risk::KillsEverything => "kills-everything",
            Risk::ChangesAccounts => "changes-accounts",
            Risk::ChangesFirewall => "changes-firewall",
            Risk::ChangesSchedule => "changes-schedule",
            Risk::RewritesRemote => "rewrites-remote",
            Risk::DestroysElsewhere => "destroys-elsewhere",
            Risk::Publishes => "publishes",
            Risk::DeletesOutside => "deletes-outside",
            Risk::WritesOutside => "writes-outside",
            Risk::Escalates => "escalates",
            Risk::Network => "network",
        }
    }

    /// The wider word that stands for it too.
    #[must_use]
    pub fn wider(self) -> Option<Risk> {
        match self {
            Risk::DestroysSystem | Risk::DestroysDevice | Risk::ForkBomb => Some(Risk::Unthinkable),
            Risk::DeletesHome
            | Risk::DeletesHere
            | Risk::DeletesRepository
            | Risk::DeletesUnknown
            | Risk::DeletesWidely
            | Risk::TouchesCredentials
            | Risk::TouchesSystem
            | Risk::RunsDownload
            | Risk::StopsMachine
            | Risk::KillsEverything
            | Risk::ChangesAccounts
            | Risk::ChangesFirewall
            | Risk::ChangesSchedule
            | Risk::RewritesRemote
            | Risk::DestroysElsewhere
            | Risk::Publishes => Some(Risk::Catastrophic),
            Risk::Unthinkable
            | Risk::Catastrophic
            | Risk::ReachesHoldfast
            | Risk::DeletesOutside
            | Risk::WritesOutside
            | Risk::Escalates
            | Risk::Network => None,
        }
    }
}
