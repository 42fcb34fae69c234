//! `holdfast skill`: what an agent should know.

use crate::failure::Failure;
use crate::show::print;

/// `holdfast skill`.
pub fn skill() -> Result<u8, Failure> {
    print(include_str!("skill.md"))?;
    Ok(0)
}
