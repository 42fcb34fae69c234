//! Numbers from a seed.

/// SplitMix64: small, and the same on every machine.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a bound, which is above 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// One of them.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() { None } else { of.get(self.below(of.len())) }
    }
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let roll = |seed| {
        let mut dice = Dice::new(seed);
        (0..8).map(|_| dice.below(1000)).collect::<Vec<_>>()
    };
    assert_eq!(roll(7), roll(7));
    assert_ne!(roll(7), roll(8));
}
