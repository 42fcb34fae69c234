//! Connect, attach, resume, typed calls
