//! Any bytes are a handshake message, a frame and a link, or an error; nothing that was not sealed opens, and a channel that saw such a
//! frame is dead.
#![no_main]

use holdfast_channel::{Channel, ChannelError, Initiator, InviteLink, Responder, Secret};
use libfuzzer_sys::fuzz_target;

fn pair() -> (Initiator, Channel) {
    let (host, client) = (Secret::new([1; 32]), Secret::new([2; 32]));
    let (initiator, first) = Initiator::new(&client, &host.public(), None, [3; 32]).expect("the keys are sound");
    let responder = Responder::read(&host, &first, [4; 32]).expect("an own message reads back");
    let (channel, _) = responder.welcome(&"human:ann".parse().expect("a handle")).expect("an answer");
    (initiator, channel)
}

fuzz_target!(|input: &[u8]| {
    let _ = Responder::read(&Secret::new([1; 32]), input, [5; 32]);
    // Some of the inputs: a handshake costs far more than what is fuzzed.
    if input.len() % 32 == 0 {
        let (initiator, mut channel) = pair();
        assert!(initiator.finish(input).is_err(), "nobody else can answer");
        assert_eq!(channel.open(input), Err(ChannelError::Frame), "nobody else can seal");
        assert_eq!(channel.open(input), Err(ChannelError::Dead));
    }
    if let Ok(text) = std::str::from_utf8(input)
        && let Ok(link) = InviteLink::read(text)
    {
        assert_eq!(InviteLink::read(&link.text()), Ok(link));
    }
});
