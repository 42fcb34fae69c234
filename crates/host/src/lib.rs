//! The daemon: finds keepers, keeps screens, answers clients
