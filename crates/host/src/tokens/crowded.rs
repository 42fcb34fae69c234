//! Many who make tokens and links.

use super::codes::CODE_MS;
use super::*;
use holdfast_types::ActorId;

fn by(actor: &Handle) -> Maker<'_> {
    Maker { actor, token: None }
}

/// Makes a token, and keeps it.
fn keep(tokens: &mut Tokens, maker: &Handle) -> Result<(), Fault> {
    let bot = Actor { id: ActorId([7; 32]), handle: "agent:bot".parse().unwrap() };
    let params = TokenNewParams { actor: bot.handle.clone(), can: None, for_ms: None, note: String::new() };
    let Made { change, .. } = tokens.add(&params, &bot, by(maker), 0)?;
    tokens.adopt(change);
    Ok(())
}

#[test]
fn one_actor_fills_neither_the_tokens_nor_the_codes_and_the_humans_places_stay_free() {
    let dir = tempfile::tempdir().unwrap();
    let (mut tokens, mut codes) = (Tokens::load(dir.path()), Codes::default());
    let ann: Handle = "human:ann".parse().unwrap();
    let anns = codes.add(by(&ann), 0).unwrap().code;
    let handle = |n: usize| format!("agent:bot{n}").parse::<Handle>().unwrap();
    let mut made = (0, 0);
    for n in 0..12 {
        made.0 += (0..102).filter(|_| keep(&mut tokens, &handle(n)).is_ok()).count();
        made.1 += (0..12).filter(|_| codes.add(by(&handle(n)), 0).is_ok()).count();
    }
    assert_eq!(made, (TOKENS_AT_ONCE.not_human, 5 * 12), "ten at once, five agents");
    let refused = keep(&mut tokens, &handle(0)).unwrap_err();
    assert_eq!((refused.code, refused.hint.contains("holdfast token revoke")), (Code::TooMany, true));
    assert_eq!(codes.add(by(&handle(11)), 0).unwrap_err().code, Code::TooMany);
    keep(&mut tokens, &ann).unwrap();
    assert_eq!(codes.take(&anns, 1).unwrap().actor, ann, "no agent's code took its place");
    // Once theirs have ended there is room again.
    assert!(codes.add(by(&handle(11)), CODE_MS).is_ok());
}
