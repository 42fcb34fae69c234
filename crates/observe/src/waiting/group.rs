//! The processes of the terminal's foreground group, found without walking the whole session.
//!
//! A job's first process leads its group, and the rest of the job are its later siblings and their descendants: a shell
//! makes the leader first, and the kernel lists the children of a thread in the order they were made. Only a job whose
//! leader is gone takes the walk.

use std::os::fd::{AsFd, OwnedFd};

use crate::proc::{Proc, Stat};
use crate::tree::walk;

/// Members looked at. A job of more is a build, and one of the first that runs says so.
const MEMBERS_MAX: usize = 64;

/// Processes looked at to find the members: some milliseconds, since the host waits for it. A program that makes thousands of
/// siblings of its job hides the job's later members, which is told.
const LOOKS_MAX: usize = 256;

/// One process of the group.
pub(super) struct Member {
    pub(super) pid: u32,
    pub(super) dir: OwnedFd,
    pub(super) state: char,
    pub(super) threads: u32,
    /// Its terminal, as the kernel packs devices.
    pub(super) tty: i32,
    parent: u32,
    group: u32,
}

/// The group's members, and whether these are all.
pub(super) struct Group {
    pub(super) members: Vec<Member>,
    pub(super) is_whole: bool,
}

/// Finds a group's members.
pub(super) fn find(proc: &mut Proc, keeper: u32, group: u32) -> Group {
    let mut found = Group { members: Vec::new(), is_whole: true };
    let Some(leader) = read(proc, group).filter(|leader| leader.group == group) else {
        return by_walk(proc, keeper, group);
    };
    let mut queue = Vec::new();
    if let Some(parent) = read(proc, leader.parent) {
        proc.children(&parent.dir, parent.pid, parent.threads, &mut queue);
        let is_ordered = parent.threads == 1;
        if let Some(at) = queue.iter().position(|pid| *pid == group) {
            queue.drain(..if is_ordered { at + 1 } else { 0 });
        }
        queue.retain(|pid| *pid != group);
        queue.reverse();
    }
    found.take(proc, leader, &mut queue);
    let mut looks = 0;
    while let Some(pid) = queue.pop() {
        looks += 1;
        if found.members.len() >= MEMBERS_MAX || looks > LOOKS_MAX {
            found.is_whole = false;
            break;
        }
        if let Some(member) = read(proc, pid).filter(|member| member.group == group) {
            found.take(proc, member, &mut queue);
        }
    }
    found
}

impl Group {
    /// Adds a member and queues its children.
    fn take(&mut self, proc: &mut Proc, member: Member, queue: &mut Vec<u32>) {
        let mut children = Vec::new();
        proc.children(member.dir.as_fd(), member.pid, member.threads, &mut children);
        queue.extend(children);
        self.members.push(member);
    }
}

fn by_walk(proc: &mut Proc, keeper: u32, group: u32) -> Group {
    let mut children = Vec::new();
    let mut members = Vec::new();
    let walked = walk(keeper, LOOKS_MAX, |pid, below| {
        let process = read(proc, pid)?;
        proc.children(&process.dir, pid, process.threads, &mut children);
        below.extend(&children);
        if process.group == group && members.len() < MEMBERS_MAX {
            members.push(process);
        }
        Some(())
    });
    let is_whole = walked.is_ok_and(|walked| !walked.is_cut) && members.len() < MEMBERS_MAX;
    Group { members, is_whole }
}

fn read(proc: &mut Proc, pid: u32) -> Option<Member> {
    let dir = proc.process(pid).ok()?;
    let stat = Stat::parse(proc.read(&dir, "stat").ok()?)?;
    let (state, threads, tty) = (stat.state()?, stat.number(20)?, stat.number(7)?);
    let (parent, group) = (stat.number(4)?, stat.number(5)?);
    Some(Member { pid, dir, state, threads, tty, parent, group })
}

/// A process's terminal, as the kernel packs devices.
pub(super) fn terminal(proc: &mut Proc, pid: u32) -> Option<i32> {
    read(proc, pid).map(|process| process.tty)
}
