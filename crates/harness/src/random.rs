//! Numbers from a seed that is printed.

/// An xorshift generator.
pub struct Random(u64);

impl Random {
    /// From `HOLDFAST_SEED`, or the same one each time; says which.
    pub fn seed() -> u64 {
        let given = std::env::var("HOLDFAST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or(1);
        println!("HOLDFAST_SEED={seed}");
        seed
    }

    /// The sequence of [`Random::seed`].
    pub fn from_seed() -> Random {
        Random::of(Random::seed(), 0)
    }

    /// The sequence of a seed; `lane` tells apart those who share it.
    pub fn of(seed: u64, lane: u64) -> Random {
        let mut random = Random((seed ^ lane.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1);
        (0..8).for_each(|_| {
            random.next();
        });
        random
    }

    /// The next number.
    #[allow(clippy::should_implement_trait)] // an endless sequence; nobody iterates over it
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 16) % end
    }

    /// As many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.next() >> 24) as u8).collect()
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}
