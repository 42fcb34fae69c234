//! Named points at which a test can stop a process, so that a race is tested by its order and not by luck.
//!
//! A process that was started with [`DIRECTORY`]`=DIR` connects to the unix socket `DIR/NAME` when it comes to the point
//! `NAME`, and goes on once the other side closes the connection. Where nobody listens, the point is passed at once. A test that
//! dies lets go of everything it held, because its sockets close.
//!
//! Only builds with debug assertions have points. In a release build the functions are empty, and nothing reads the variable.

/// The variable that names the directory in which tests listen.
pub const DIRECTORY: &str = "HOLDFAST_PAUSE";

/// The variable that names the process above which no host looks for agents: a test may be run by one. Nothing reads it in a
/// release build.
pub const TOP: &str = "HOLDFAST_TEST_TOP";

/// Stops this thread here as long as a test holds it. In a host that is everything: it is then killed, or goes on.
#[inline]
pub fn point(name: &str) {
    #[cfg(debug_assertions)]
    held::thread(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// Stops this task here as long as a test holds it; others on its thread go on.
#[inline]
#[allow(clippy::unused_async)] // it waits where there are points
pub async fn task_point(name: &str) {
    #[cfg(debug_assertions)]
    held::task(name).await;
    #[cfg(not(debug_assertions))]
    let _ = name;
}

#[cfg(debug_assertions)]
mod held {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::sync::{Arc, Mutex, PoisonError};
    use std::task::{Poll, Waker};

    /// A connection to the test that holds this point, if one does.
    fn holder(name: &str) -> Option<UnixStream> {
        let dir = std::env::var_os(super::DIRECTORY)?;
        UnixStream::connect(Path::new(&dir).join(name)).ok()
    }

    fn wait(mut holder: UnixStream) {
        // Nothing is ever said: whatever comes, be it an error, is the end.
        let _ = holder.read(&mut [0]);
    }

    pub fn thread(name: &str) {
        if let Some(holder) = holder(name) {
            wait(holder);
        }
    }

    /// What the thread that waits and the task that is held share.
    #[derive(Default)]
    struct Held {
        over: bool,
        waker: Option<Waker>,
    }

    pub async fn task(name: &str) {
        let Some(holder) = holder(name) else { return };
        let held = Arc::new(Mutex::new(Held::default()));
        std::thread::spawn({
            let held = Arc::clone(&held);
            move || {
                wait(holder);
                let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
                held.over = true;
                held.waker.take().iter().for_each(Waker::wake_by_ref);
            }
        });
        std::future::poll_fn(|context| {
            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
            if held.over {
                return Poll::Ready(());
            }
            held.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::pin::pin;
    use std::sync::{Arc, mpsc};
    use std::task::{Context, Wake};

    /// The environment is the process's: one test says all of it.
    #[test]
    fn a_point_that_is_held_is_passed_once_the_test_lets_go_and_any_other_at_once() {
        let dir = tempfile::tempdir().expect("a directory");
        point("nowhere");
        // SAFETY: nothing else runs in this process that reads the environment.
        unsafe { std::env::set_var(DIRECTORY, dir.path()) };
        point("unheld");
        let listener = UnixListener::bind(dir.path().join("held")).expect("a socket");
        let (passed, passes) = mpsc::channel();
        let stopped = std::thread::spawn(move || {
            point("held");
            passed.send(()).expect("the test waits");
        });
        let (held, _) = listener.accept().expect("a process at the point");
        assert_eq!(passes.try_recv(), Err(mpsc::TryRecvError::Empty));
        drop(held);
        passes.recv().expect("it goes on");
        stopped.join().expect("no panic");

        let (woken, wakes) = mpsc::channel();
        let waker = Arc::new(Woken(woken)).into();
        let mut context = Context::from_waker(&waker);
        let mut task = pin!(task_point("held"));
        assert!(task.as_mut().poll(&mut context).is_pending());
        let (held, _) = listener.accept().expect("a task at the point");
        assert!(task.as_mut().poll(&mut context).is_pending());
        drop(held);
        wakes.recv().expect("it is woken");
        assert!(task.as_mut().poll(&mut context).is_ready());
    }

    struct Woken(mpsc::Sender<()>);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(());
        }
    }
}
