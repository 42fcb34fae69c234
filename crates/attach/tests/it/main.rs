//! What an attached client does, told by what happened to it.

mod keys;
mod output;
mod player;
