//! Waiting until one of several descriptors can be read.
//!
//! By `poll`, and on Apple's systems by `select`: there `poll` does not know terminals (poll(2), BUGS).

#[cfg(any(target_vendor = "apple", test))]
use rustix::event::{FdSetElement, fd_set_insert, fd_set_num_elements, select};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
#[cfg(any(target_vendor = "apple", test))]
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::time::Duration;

#[cfg(not(target_vendor = "apple"))]
use by_poll as by;
#[cfg(target_vendor = "apple")]
use by_select as by;

/// The largest descriptor `select` knows, and one more.
#[cfg(any(target_vendor = "apple", test))]
const SELECT_MAX: i32 = 1024;

/// Waits until one of these can be read, has ended or failed, or the time is over; says of each whether it is so. A signal ends the wait, too.
pub fn ready<const N: usize>(descriptors: [BorrowedFd<'_>; N], patience: Option<Duration>) -> io::Result<[bool; N]> {
    let found = ready_of(&descriptors, patience)?;
    Ok(std::array::from_fn(|at| found[at]))
}

/// The same for as many as there are.
pub fn ready_of(descriptors: &[BorrowedFd<'_>], patience: Option<Duration>) -> io::Result<Vec<bool>> {
    let patience = patience.map(|patience| Timespec::try_from(patience).expect("times of people fit"));
    match by(descriptors, patience.as_ref()) {
        Err(Errno::INTR) => Ok(vec![false; descriptors.len()]),
        other => Ok(other?),
    }
}

#[cfg(any(not(target_vendor = "apple"), test))]
fn by_poll(descriptors: &[BorrowedFd<'_>], patience: Option<&Timespec>) -> Result<Vec<bool>, Errno> {
    let mut asked: Vec<_> = descriptors.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    poll(&mut asked, patience)?;
    Ok(asked.iter().map(|fd| !fd.revents().is_empty()).collect())
}

#[cfg(any(target_vendor = "apple", test))]
fn by_select(descriptors: &[BorrowedFd<'_>], patience: Option<&Timespec>) -> Result<Vec<bool>, Errno> {
    let numbers: Vec<i32> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let bound = numbers.iter().max().map_or(0, |largest| largest + 1);
    if bound > SELECT_MAX {
        return Err(Errno::INVAL);
    }
    let mut set = vec![FdSetElement::default(); fd_set_num_elements(numbers.len(), bound)];
    numbers.iter().for_each(|number| fd_set_insert(&mut set, *number));
    // SAFETY: every descriptor in the set is borrowed, so it is open; the set has room for `bound` of them.
    unsafe { select(bound, Some(&mut set), None, None, patience) }?;
    let found: Vec<i32> = rustix::event::FdSetIter::new(&set).collect();
    Ok(numbers.iter().map(|number| found.contains(number)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn both_ways_find_what_can_be_read_what_has_ended_and_nothing_else() {
        let (one, mut writes) = UnixStream::pair().unwrap();
        let (silent, _keeps) = UnixStream::pair().unwrap();
        let (ended, other) = UnixStream::pair().unwrap();
        drop(other);
        let all = [one.as_fd(), silent.as_fd(), ended.as_fd()];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        for by in [by_poll, by_select] {
            assert_eq!(by(&all, Some(&at_once)), Ok(vec![false, false, true]));
        }
        writes.write_all(b"x").unwrap();
        for by in [by_poll, by_select] {
            assert_eq!(by(&all, None), Ok(vec![true, false, true]));
        }
        assert_eq!(ready([silent.as_fd()], Some(Duration::from_millis(1))).unwrap(), [false]);
    }
}
