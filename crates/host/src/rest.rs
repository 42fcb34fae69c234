//! A host that nobody asks for anything gives back what it holds of its own program.
//!
//! The program is large, and the kernel puts sixteen pages in place for each that is touched: a host that has answered a few questions
//! stands at 30 MB and more, of which a tenth is its own. Pages that are in place count as used, and the kernel lets go of others first. After a
//! rest they are given back: they stay in the cache of files as long as there is room, and come back as they are touched, in a fraction
//! of a millisecond for the next question.
//!
//! Only what was never written goes: parts of the program that are mapped without leave to write. What the loader wrote into, and all memory
//! of the host's own, stays.

use crate::presence::Presence;
use std::os::raw::{c_int, c_void};
use std::time::Duration;

/// How long nobody asks before it rests: longer than the host itself goes on looking at a session that was used, and longer than a person who
/// works with sessions takes between two commands.
const REST: Duration = Duration::from_secs(30);

/// Gives back what is not needed whenever the host comes to rest, for as long as it runs. While it rests there is no timer.
pub(crate) async fn follow(presence: &Presence) {
    rest(presence, give_back).await;
}

async fn rest(presence: &Presence, give_back: impl Fn()) {
    loop {
        while tokio::time::timeout(REST, presence.asked.notified()).await.is_ok() {}
        give_back();
        presence.asked.notified().await;
    }
}

/// Gives back the program's pages, and free memory that the C library keeps.
fn give_back() {
    // SAFETY: `visit` fits the signature and keeps nothing of what it is passed.
    unsafe { libc::dl_iterate_phdr(Some(visit), std::ptr::null_mut()) };
    // SAFETY: no memory that is in use is touched.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Of the first object, which is this program: its segments that nobody may write. Those are as the file has them, so that the kernel brings
/// the same bytes again; what the loader relocates is in a segment that may be written, also where it is protected afterwards.
unsafe extern "C" fn visit(object: *mut libc::dl_phdr_info, _size: usize, _data: *mut c_void) -> c_int {
    // SAFETY: the C library passes a whole structure, and as many headers as it says.
    let (object, headers) = unsafe {
        let object = &*object;
        (object, std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum)))
    };
    // SAFETY: a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0) {
        let begin = (object.dlpi_addr + header.p_vaddr) & !(page - 1);
        let end = (object.dlpi_addr + header.p_vaddr + header.p_filesz).next_multiple_of(page);
        // SAFETY: these pages are of this program's file, mapped for this process alone and never written: what is read there next is the same.
        unsafe { libc::madvise(begin as *mut c_void, (end - begin) as usize, libc::MADV_DONTNEED) };
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the program's code, kilobytes in place; and of what the loader wrote.
    fn in_place() -> (u64, u64) {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let own = std::env::current_exe().unwrap().display().to_string();
        let (mut is_own, mut clean, mut dirty) = (false, 0, 0);
        for line in text.lines() {
            let number = |name: &str| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse::<u64>().ok();
            if line.split_once('-').is_some_and(|(from, _)| u64::from_str_radix(from, 16).is_ok()) {
                is_own = line.ends_with(&own);
            } else if is_own {
                clean += number("Private_Clean:").or_else(|| number("Shared_Clean:")).unwrap_or(0);
                dirty += number("Private_Dirty:").unwrap_or(0);
            }
        }
        (clean, dirty)
    }

    #[test]
    fn what_is_given_back_comes_back_as_it_was_and_what_was_written_stays() {
        let said = || format!("{:?}", std::time::Duration::from_millis(1500));
        let before = (in_place(), said());
        give_back();
        let after = in_place();
        assert!(after.0 < before.0.0 / 2, "{after:?} of {before:?}");
        assert!(after.1 >= before.0.1, "{after:?} of {before:?}");
        assert_eq!(said(), before.1);
    }

    #[test]
    fn it_rests_once_whenever_nobody_asks_any_more() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (presence, rests) = (Presence::default(), std::cell::Cell::new(0));
            let mut follows = std::pin::pin!(rest(&presence, || rests.set(rests.get() + 1)));
            let mut after = async |time: Duration| {
                assert!(tokio::time::timeout(time, follows.as_mut()).await.is_err(), "it goes on for ever");
                rests.get()
            };
            for _ in 0..3 {
                assert_eq!(after(REST / 2).await, 0, "somebody asks again and again");
                drop(presence.opened());
            }
            assert_eq!(after(REST * 2).await, 1);
            assert_eq!(after(REST * 5).await, 1, "it has given back what there was");
            drop(presence.opened());
            assert_eq!(after(REST / 2).await, 1);
            assert_eq!(after(REST).await, 2);
        });
    }
}
