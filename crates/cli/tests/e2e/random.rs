//! Numbers from a seed that is printed.

/// An xorshift generator.
pub struct Random(u64);

impl Random {
    /// From `HOLDFAST_SEED`, or the same one each time; says which.
    pub fn from_seed() -> Random {
        let given = std::env::var("HOLDFAST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or(1) | 1;
        println!("HOLDFAST_SEED={seed}");
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.next() >> 24) as u8).collect()
    }
}
