//! Seeded simulation of keeper, host and clients
