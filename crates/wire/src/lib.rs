//! Every operation and frame between clients and the host
