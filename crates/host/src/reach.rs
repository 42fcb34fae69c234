//! Ports of a session's processes, for who may use them: what a preview on the page connects to.
//!
//! A server that listens on this machine takes orders from whoever reaches it, and many run code by them. So a port is reached by
//! who may type in the session: typing, one could run `curl` there. Only what a process of the session listens on at that moment is
//! reached, never another port of the machine.

use crate::serve::Server;
use crate::session::{Session, ports_of};
use crate::shares;
use holdfast_door::{Reached, Speaker};
use holdfast_graph::SocketKind;
use holdfast_types::Right;
use holdfast_wire::{Code, Fault};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

impl Server {
    /// Where a port of a session can be reached; nowhere while nothing listens there.
    pub(crate) async fn reach(&self, by: &Speaker, session: &str, port: u16) -> Result<Reached, Fault> {
        let (session, actor) = (self.reachable(by, session)?, self.judge(by)?.actor);
        let tree = session.tree().await?;
        let is_human = self.registry.shared.policy_is_human(&actor);
        let ports = shares::by(&actor, is_human, ports_of(vec![tree])).await?;
        // Reading took a while.
        let session = self.reachable(by, &session.id.to_string())?;
        let open = ports.into_iter().map(|view| view.port).filter(|open| open.kind == SocketKind::Stream);
        let address = open.map(|open| open.address).filter(|address| address.port() == port).min_by_key(rank);
        Ok(Reached { session: session.id.to_string(), address: address.map(from_here) })
    }

    fn reachable(&self, by: &Speaker, session: &str) -> Result<Rc<Session>, Fault> {
        let speaker = self.judge(by)?;
        let lacks = |right: &Right| speaker.path.cap().is_some_and(|cap| !cap.can.has(*right));
        if let Some(right) = [Right::Observe, Right::Type].into_iter().find(lacks) {
            return Err(Fault::new(Code::Denied, format!("this token does not carry the right `{right}`")));
        }
        self.registry.find_for(session, &speaker.actor, Right::Observe)?;
        self.registry.find_for(session, &speaker.actor, Right::Type)
    }
}

/// Of several, what is meant for this machine alone comes first, then the older protocol.
fn rank(address: &SocketAddr) -> (bool, bool) {
    (!address.ip().is_loopback(), address.is_ipv6())
}

/// How this machine connects to what listens there.
fn from_here(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_listens_everywhere_is_reached_on_this_machine() {
        let here = |text: &str| from_here(text.parse().unwrap()).to_string();
        assert_eq!(here("0.0.0.0:3000"), "127.0.0.1:3000");
        assert_eq!(here("[::]:3000"), "[::1]:3000");
        assert_eq!(here("192.168.1.7:3000"), "192.168.1.7:3000");
        let mut all: Vec<SocketAddr> =
            ["10.0.0.1:1", "[::1]:1", "127.0.0.1:1"].iter().map(|text| text.parse().unwrap()).collect();
        all.sort_by_key(rank);
        assert_eq!(all[0].to_string(), "127.0.0.1:1");
    }
}
