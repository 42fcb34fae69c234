//! What outlives versions: the ring file and keeper protocol v1
