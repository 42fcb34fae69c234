//! A host that listens itself, for clients that reach it without a relay.
//!
//! It answers as a relay would that knows this one host, and the channel inside is the same: whoever comes is nobody until its key is proven,
//! and whoever listens on the way sees that two machines speak, when, and how much.
//!
//! Bounded as a relay is: places in all and for one address, a deadline for every step before the channel is up.

use crate::answer::{Arrival, Guests, receive};
use crate::server::head::{self, respond};
use crate::server::places::Places;
use crate::server::upgraded;
use crate::stream::Stream;
use holdfast_channel::Secret;
use holdfast_types::HostKey;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Connections at once: as many as a host serves through relays.
const CONNECTIONS_MAX: usize = 512;
/// Of one address: a person's terminals.
const OF_ADDRESS_MAX: usize = 64;

/// What serves clients that dial this host.
#[derive(Debug)]
pub struct Direct<G> {
    secret: Arc<Secret>,
    guests: Arc<G>,
    places: Arc<Places>,
}

impl<G: Guests + 'static> Direct<G> {
    /// Under this key, for these guests.
    #[must_use]
    pub fn new(secret: Arc<Secret>, guests: Arc<G>) -> Direct<G> {
        Direct { secret, guests, places: Arc::new(Places::new(CONNECTIONS_MAX, OF_ADDRESS_MAX)) }
    }

    /// Serves for ever. Runs on the thread's local set, where its connections go on when it is dropped.
    pub async fn serve(self, listener: TcpListener, arrived: impl Fn(Arrival) + 'static) {
        let (this, arrived) = (Rc::new(self), Rc::new(arrived));
        loop {
            let Ok((stream, from)) = listener.accept().await else {
                // Out of descriptors: those who are connected go on.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (this, arrived) = (Rc::clone(&this), Rc::clone(&arrived));
            tokio::task::spawn_local(async move { this.greet(stream, from.ip(), &*arrived).await });
        }
    }

    async fn greet(&self, stream: TcpStream, from: IpAddr, arrived: &dyn Fn(Arrival)) {
        // Whoever is too many gets no answer: it would cost what is short.
        let Ok(_place) = self.places.take(from) else { return };
        let _ = stream.set_nodelay(true);
        let mut stream = Stream::Plain(stream);
        let asked = head::read(&mut stream).await;
        let is_ours = |path: &str| {
            path.strip_prefix("/c/").and_then(|key| key.parse::<HostKey>().ok()) == Some(HostKey(self.secret.public()))
        };
        let Some((key, rest)) = asked.filter(|head| is_ours(&head.path)).and_then(|head| Some((head.key?, head.rest)))
        else {
            return respond(&mut stream, "404 Not Found", "text/plain", "no such path\n").await;
        };
        if let Some(socket) = upgraded(stream, &key, rest).await {
            receive(socket, &self.secret, &*self.guests, arrived).await;
        }
    }
}
