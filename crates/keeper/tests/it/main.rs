//! The keeper as a process: started, spoken to, killed and left alone as a host and clients would.

mod clients;
mod ends;
mod harness;
mod hosts;
mod noise;
mod output;
mod start;
mod tty;
mod writing;
