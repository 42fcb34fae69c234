//! What the authority promises, played through on the real code.

mod claims;
mod explore;
mod grants;
mod journal;
mod long_run;
mod model;
mod world;
