//! Each update is acted on once, whenever the bot is killed and whatever the service repeats.
