//! Places for connections: so many in all, and fewer for one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who is there.
#[derive(Debug)]
pub(crate) struct Places {
    all_max: usize,
    of_address_max: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// One place, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Places>, IpAddr);

/// Why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    All,
    Address,
}

impl Places {
    pub fn new(all_max: usize, of_address_max: usize) -> Places {
        Places { all_max, of_address_max, taken: Mutex::default() }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn open(&self) -> usize {
        self.taken().all
    }

    /// A place for a connection from here. Addresses of one IPv6 network of 64 bits are one: a machine has all of it.
    pub fn take(self: &Arc<Self>, from: IpAddr) -> Result<Place, Full> {
        let from = match from.to_canonical() {
            IpAddr::V6(v6) => {
                let [a, b, c, d, ..] = v6.segments();
                std::net::Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            v4 => v4,
        };
        let mut taken = self.taken();
        if taken.all >= self.all_max {
            return Err(Full::All);
        }
        let of = taken.of.entry(from).or_default();
        if *of >= self.of_address_max {
            return Err(Full::Address);
        }
        *of += 1;
        taken.all += 1;
        Ok(Place(Arc::clone(self), from))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.0.taken();
        taken.all -= 1;
        if let Some(of) = taken.of.get_mut(&self.1) {
            *of -= 1;
            if *of == 0 {
                taken.of.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_share_and_gives_it_back() {
        let places = Arc::new(Places::new(3, 2));
        let from = |text: &str| places.take(text.parse().unwrap());
        let one = from("10.0.0.1").unwrap();
        let _two = from("::ffff:10.0.0.1").unwrap();
        assert_eq!(from("10.0.0.1").unwrap_err(), Full::Address);
        let _three = from("2001:db8::1").unwrap();
        assert_eq!(from("2001:db8::2").unwrap_err(), Full::All);
        drop(one);
        let _four = from("2001:db8::ffff:2").unwrap();
        assert_eq!((from("2001:db8::3").unwrap_err(), places.open()), (Full::All, 3));
    }
}
