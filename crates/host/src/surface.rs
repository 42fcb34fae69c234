//! What HTTP asks, answered on the host's own thread.

use crate::connection::{ASKED, ASKER, Asker, internal, only_looks};
use crate::serve::Server;
use holdfast_door::{Asked, Handle};
use holdfast_http::Listen;
use std::net::TcpListener;
use std::rc::Rc;
use tokio::sync::mpsc;

/// Threads for what HTTP clients make expensive. Few: the host and its sessions need the processors too.
const HTTP_BLOCKING_THREADS: usize = 4;

/// Listens, where that can be had, with a socket that was held for this host if there is one; gives another descriptor of it. A
/// port that cannot be had costs the port, not the host; `host.status` says so.
pub async fn open(listen: &Listen, held: Option<TcpListener>, server: &Rc<Server>) -> Option<TcpListener> {
    let bound = holdfast_http::bind(listen, held).await.and_then(|bound| Ok((bound.listener()?, bound)));
    let (listener, bound) = match bound {
        Ok(bound) => bound,
        Err(error) => {
            tracing::error!("http {}: {error}", listen.address);
            *server.http.borrow_mut() = Some(Err(format!("{}: {error}", listen.address)));
            return None;
        }
    };
    let scheme = if listen.tls.is_some() { "https" } else { "http" };
    let address = bound.address().unwrap_or(listen.address);
    *server.http.borrow_mut() = Some(Ok(format!("{scheme}://{address}")));
    let (handle, asked) = Handle::new();
    tokio::task::spawn_local(follow(Rc::clone(server), asked));
    // On a thread of its own: what HTTP clients make expensive (handshakes, bodies, searches) delays nobody at the host's socket.
    let serving = move || match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(HTTP_BLOCKING_THREADS)
        .build()
    {
        Ok(runtime) => runtime.block_on(holdfast_http::serve(bound, handle)),
        Err(error) => tracing::error!("http: {error}"),
    };
    if let Err(error) = std::thread::Builder::new().name("holdfast-http".into()).spawn(serving) {
        tracing::error!("http {address}: {error}");
        *server.http.borrow_mut() = Some(Err(format!("{address}: {error}")));
        return None;
    }
    Some(listener)
}

/// Answers until nobody can ask any more.
async fn follow(server: Rc<Server>, mut asked: mpsc::Receiver<Asked>) {
    while let Some(asked) = asked.recv().await {
        let server = Rc::clone(&server);
        match asked {
            Asked::Check { shown, reply } => {
                let _ = reply.send(server.shown(&shown));
            }
            Asked::Challenge { cookie, nonce, reply } => {
                let _ = reply.send(server.challenge(&cookie, &nonce));
            }
            Asked::Lend { by, reply } => {
                let _ = reply.send(server.lend(&by));
            }
            Asked::Whose { code, reply } => {
                let _ = reply.send(server.whose_code(&code).map(|handle| handle.to_string()));
            }
            Asked::Login { code, reply } => {
                tokio::task::spawn_local(async move { reply.send(server.log_in(&code).await) });
            }
            Asked::Logout { by } => {
                tokio::task::spawn_local(async move { server.log_out(&by).await });
            }
            Asked::Reach { by, session, port, opens, reply } => {
                tokio::task::spawn_local(async move {
                    let reached = server.reach(&by, &session, port).await;
                    if opens
                        && let Ok(reached) = &reached
                        && reached.address.is_some()
                    {
                        tracing::info!(session = %reached.session, port, "{} opens a preview", by.actor);
                    }
                    reply.send(reached)
                });
            }
            Asked::Connect { by, incoming, outgoing } => {
                tokio::task::spawn_local(server.serve_speaker(by, incoming, outgoing));
            }
            Asked::Call { by, call, bytes, mut reply } => {
                tokio::task::spawn_local(async move {
                    let only_looks = only_looks(&call);
                    let asker = Rc::new(Asker::default());
                    let terms = call.row().terms;
                    let answer = async move { server.answer_speaker(&by, *call, bytes, None).await };
                    let answer = ASKED.scope(terms, answer);
                    let mut answering = tokio::task::spawn_local(ASKER.scope(Rc::clone(&asker), answer));
                    let answer = tokio::select! {
                        answer = &mut answering => answer.unwrap_or_else(|_| Err(internal())),
                        // Nobody waits for it any more. What acts is done all the same: whoever asks again by its key or number
                        // finds it done.
                        () = reply.closed() => {
                            asker.leave();
                            if only_looks {
                                answering.abort();
                            }
                            return;
                        }
                    };
                    let _ = reply.send(answer);
                });
            }
        }
    }
}
