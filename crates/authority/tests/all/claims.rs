//! The turn, as sentences.

use crate::world::{World, expect};
use holdfast_authority::{Ask, Effect, Input, Moment};
use holdfast_types::Fence;

#[test]
fn a_person_alone_never_notices_the_turn() {
    expect(
        "0s ann attaches | 1s ann types ls | 90s ann types pwd | 91s ann leaves",
        r#"
            0s ann attaches: done
            1s ann types ls: turn 1; fence 1 for 1
            90s ann types pwd: turn 1
            91s ann leaves: done; fence 2 for nobody
        "#,
    );
}

#[test]
fn keys_without_the_turn_are_refused_and_never_appear_later() {
    expect(
        "0s ann attaches | 0s bot attaches | 1s ann types ls | 2s bot types rm | 3s ann releases | 4s bot types cat",
        r#"
            0s ann attaches: done
            0s bot attaches: done
            1s ann types ls: turn 1; fence 1 for 1
            2s bot types rm: no, human:ann has the turn
            3s ann releases: done; fence 2 for nobody
            4s bot types cat: turn 3; fence 3 for 2
        "#,
    );
}

#[test]
fn a_late_keystroke_of_a_past_holder_is_dropped() {
    expect(
        "0s ann attaches | 0s bot attaches | 1s ann takes | 5s ann types under 1 ls | 9s ann gives bot \
         | 10s ann types under 1 rm | 11s bot releases | 12s ann types under 1 rm",
        r#"
            0s ann attaches: done
            0s bot attaches: done
            1s ann takes: turn 1; fence 1 for 1
            5s ann types under 1 ls: turn 1
            9s ann gives bot: done; fence 2 for 2
            10s ann types under 1 rm: no, agent:bot has the turn
            11s bot releases: done; fence 3 for nobody
            12s ann types under 1 rm: no, the turn has changed since this was written
        "#,
    );
}

#[test]
fn requests_are_served_first_in_first_out() {
    expect(
        "0s ann attaches | 0s bob attaches | 0s bot attaches | 1s ann takes | 2s bot requests | 3s bob requests \
         | 4s bot requests | 5s ann releases | 6s bot releases | 7s bob releases",
        r#"
            0s ann attaches: done
            0s bob attaches: done
            0s bot attaches: done
            1s ann takes: turn 1; fence 1 for 1
            2s bot requests: waits behind 0; tell 1: agent:bot asks
            3s bob requests: waits behind 1; tell 1: human:bob asks
            4s bot requests: waits behind 0; tell 1: agent:bot asks
            5s ann releases: done; fence 2 for nobody; lapse next; fence 3 for 3
            6s bot releases: done; fence 4 for nobody; lapse next; fence 5 for 2
            7s bob releases: done; fence 6 for nobody
        "#,
    );
}

#[test]
fn an_idle_holder_is_replaced_on_request_and_an_active_one_is_not() {
    expect(
        "0s ann attaches | 0s bot attaches | 1s ann types vi | 30s bot requests | 30s ann types x | 59s x passes \
         | 60s x passes | 89s bot types y | 120s ann requests",
        r#"
            0s ann attaches: done
            0s bot attaches: done
            1s ann types vi: turn 1; fence 1 for 1
            30s bot requests: waits behind 0; tell 1: agent:bot asks
            30s ann types x: turn 1
            59s x passes: done
            60s x passes: done; lapse idle; fence 2 for 2
            89s bot types y: turn 2
            120s ann requests: turn 3; tell 2: human:ann asks; lapse idle; fence 3 for 1
        "#,
    );
}

#[test]
fn a_cut_off_holder_keeps_the_turn_for_its_grace_and_comes_back_to_it() {
    expect(
        "0s ann attaches | 0s bot attaches | 1s ann takes | 2s ann vanishes | 3s bot requests | 31s bot types x \
         | 31s ann resumes | 31s ann types under 1 y | 40s ann vanishes | 41s ann attaches | 42s ann types under 1 late \
         | 43s ann types ls",
        r#"
            0s ann attaches: done
            0s bot attaches: done
            1s ann takes: turn 1; fence 1 for 1
            2s ann vanishes: done
            3s bot requests: waits behind 0; tell 1: agent:bot asks
            31s bot types x: no, human:ann has the turn
            31s ann resumes: done
            31s ann types under 1 y: turn 1
            40s ann vanishes: done
            41s ann attaches: done; fence 2 for 3
            42s ann types under 1 late: no, the turn has changed since this was written
            43s ann types ls: turn 2
        "#,
    );
    expect(
        "0s ann attaches | 0s bot attaches | 1s ann takes | 2s ann vanishes | 3s bot requests | 32s x passes",
        r#"
            0s ann attaches: done
            0s bot attaches: done
            1s ann takes: turn 1; fence 1 for 1
            2s ann vanishes: done
            3s bot requests: waits behind 0; tell 1: agent:bot asks
            32s x passes: done; lapse grace; fence 2 for nobody; lapse grace; expel 1; lapse next; fence 3 for 2
        "#,
    );
}

#[test]
fn nobody_is_promoted_who_did_not_ask() {
    expect(
        "0s ann attaches | 0s bot attaches | 1s ann takes | 2s ann leaves | 3s x passes",
        r#"
            0s ann attaches: done
            0s bot attaches: done
            1s ann takes: turn 1; fence 1 for 1
            2s ann leaves: done; fence 2 for nobody
            3s x passes: done
        "#,
    );
}

#[test]
fn seizing_takes_effect_at_once_whoever_holds_and_whoever_waits() {
    expect(
        "0s ann attaches | 0s bob attaches | 0s bot attaches | 0s kit attaches | 1s bot types loop | 2s kit requests \
         | 3s ann seizes it loops | 3s bot types under 1 loop | 3s bot types more | 4s bob seizes mine",
        r#"
            0s ann attaches: done
            0s bob attaches: done
            0s bot attaches: done
            0s kit attaches: done
            1s bot types loop: turn 1; fence 1 for 3
            2s kit requests: waits behind 0; tell 3: agent:kit asks
            3s ann seizes it loops: turn 2; fence 2 for 1; flush; tell all: human:ann seized from agent:bot (it loops)
            3s bot types under 1 loop: no, human:ann has the turn
            3s bot types more: no, human:ann has the turn
            4s bob seizes mine: turn 3; fence 3 for 2; flush; tell all: human:bob seized from human:ann (mine)
        "#,
    );
}

#[test]
fn an_agent_never_seizes_from_a_human_whatever_it_was_granted() {
    expect(
        "0s ann attaches | 0s bot attaches | 0s kit attaches | 1s bot seizes x | 2s ann grants bot type,seize,grant \
         | 3s ann takes | 4s bot seizes please | 5s ann gives kit | 6s bot seizes kit is slow | 7s ann seizes back",
        r#"
            0s ann attaches: done
            0s bot attaches: done
            0s kit attaches: done
            1s bot seizes x: no, this needs the right `seize`
            2s ann grants bot type,seize,grant: grant 2; tell 2: may observe,type,run,start,seize,grant,files:read,files:write
            3s ann takes: turn 1; fence 1 for 1
            4s bot seizes please: no, only a human may do this to a human
            5s ann gives kit: done; fence 2 for 3
            6s bot seizes kit is slow: turn 3; fence 3 for 2; flush; tell all: agent:bot seized from agent:kit (kit is slow)
            7s ann seizes back: turn 4; fence 4 for 1; flush; tell all: human:ann seized from agent:bot (back)
        "#,
    );
}

#[test]
fn an_agent_finds_no_way_round_to_what_a_human_holds() {
    expect(
        "0s ann grants bot observe,type,run,start,signal,seize,grant,approve,checkpoint,fork,end,configure | 0s ann attaches | 0s bot attaches | 1s ann takes \
         | 2s bot revokes ann | 3s bot revokes 1 | 4s bot detaches ann | 5s bot seizes x | 6s ann types ls",
        r#"
            0s ann grants bot observe,type,run,start,signal,seize,grant,approve,checkpoint,fork,end,configure: grant 2
            0s ann attaches: done
            0s bot attaches: done
            1s ann takes: turn 1; fence 1 for 1
            2s bot revokes ann: no, only a human may do this to a human
            3s bot revokes 1: no, only a human may do this to a human
            4s bot detaches ann: no, only a human may do this to a human
            5s bot seizes x: no, only a human may do this to a human
            6s ann types ls: turn 1
        "#,
    );
}

#[test]
fn whoever_only_says_it_is_human_seizes_from_no_human() {
    expect(
        "0s ann grants eve observe,type,seize | 1s ann takes | 2s eve seizes x | 3s ann releases | 4s eve takes | 5s bot seizes x | 6s ann grants bot seize | 7s bot seizes x",
        r#"
            0s ann grants eve observe,type,seize: grant 2
            1s ann takes: turn 1; fence 1 for nobody
            2s eve seizes x: no, only a human may do this to a human
            3s ann releases: done; fence 2 for nobody
            4s eve takes: turn 3; fence 3 for nobody
            5s bot seizes x: no, this needs the right `seize`
            6s ann grants bot seize: grant 3
            7s bot seizes x: no, only a human may do this to a human
        "#,
    );
}

#[test]
fn a_frozen_session_takes_no_input_until_it_is_thawed() {
    expect(
        "0s ann attaches | 0s bot attaches | 1s bot types loop | 2s ann freezes stop | 3s ann types x | 4s bot runs make \
         | 5s bot signals 9 | 6s bot thaws | 7s bob thaws | 8s ann types x | 9s bob thaws",
        r#"
            0s ann attaches: done
            0s bot attaches: done
            1s bot types loop: turn 1; fence 1 for 2
            2s ann freezes stop: turn 2; fence 2 for 1; flush; freeze; tell all: human:ann seized from agent:bot (stop); tell all: human:ann froze
            3s ann types x: no, human:ann froze the session
            4s bot runs make: no, human:ann froze the session
            5s bot signals 9: no, this needs the right `signal`
            6s bot thaws: no, this needs the right `seize`
            7s bob thaws: done; thaw; tell all: human:bob thawed
            8s ann types x: turn 2
            9s bob thaws: no, the session is not frozen
        "#,
    );
}

#[test]
fn what_was_seized_is_not_lost_to_an_agent_for_idleness() {
    expect(
        "0s ann attaches | 0s bob attaches | 0s bot attaches | 1s bot types loop | 2s ann seizes look | 3s bot requests \
         | 60s x passes | 61s bob requests",
        r#"
            0s ann attaches: done
            0s bob attaches: done
            0s bot attaches: done
            1s bot types loop: turn 1; fence 1 for 3
            2s ann seizes look: turn 2; fence 2 for 1; flush; tell all: human:ann seized from agent:bot (look)
            3s bot requests: waits behind 0; tell 1: agent:bot asks
            60s x passes: done
            61s bob requests: turn 3; tell 1: human:bob asks; lapse idle; fence 3 for 2
        "#,
    );
}

#[test]
fn a_single_request_keeps_the_turn_for_a_breath_only() {
    expect(
        "0s ann attaches | 1s bot types make | 2s ann types x | 4s ann types x",
        r#"
            0s ann attaches: done
            1s bot types make: turn 1; fence 1 for nobody
            2s ann types x: no, agent:bot has the turn
            4s ann types x: turn 3; lapse grace; fence 2 for nobody; fence 3 for 1
        "#,
    );
    expect(
        "0s ann attaches | 1s bot takes | 20s bot types x | 45s ann types x | 50s ann types x",
        r#"
            0s ann attaches: done
            1s bot takes: turn 1; fence 1 for nobody
            20s bot types x: turn 1
            45s ann types x: no, agent:bot has the turn
            50s ann types x: turn 3; lapse grace; fence 2 for nobody; fence 3 for 1
        "#,
    );
}

#[test]
fn the_same_person_at_another_terminal_takes_the_turn_along_under_a_new_fence() {
    expect(
        "0s ann attaches | 1s ann types x | 2s ann attaches | 3s ann types y | 4s ann types under 1 z",
        r#"
            0s ann attaches: done
            1s ann types x: turn 1; fence 1 for 1
            2s ann attaches: done
            3s ann types y: turn 2; fence 2 for 2
            4s ann types under 1 z: no, the turn has changed since this was written
        "#,
    );
}

#[test]
fn acts_are_checked_against_their_right_and_the_turn() {
    expect(
        "0s ann attaches | 0s bot attaches | 1s bot runs make | 2s ann resizes 80x24 | 3s bot resizes 80x24 | 4s bot signals 2 \
         | 5s bot renames x | 6s bot ends | 7s ann renames x | 8s eve runs x | 9s cron takes | 10s ann ends",
        r#"
            0s ann attaches: done
            0s bot attaches: done
            1s bot runs make: done; fence 1 for 2; do 1 run
            2s ann resizes 80x24: no, agent:bot has the turn
            3s bot resizes 80x24: done; do 2 resize
            4s bot signals 2: no, this needs the right `signal`
            5s bot renames x: no, this needs the right `configure`
            6s bot ends: no, this needs the right `end`
            7s ann renames x: done; do 3 rename
            8s eve runs x: no, this needs the right `run`
            9s cron takes: no, this needs the right `type`
            10s ann ends: done; do 4 end
        "#,
    );
}

#[test]
fn after_a_crash_of_the_host_everything_is_as_before() {
    expect(
        "0s ann attaches | 0s bot attaches | 1s ann takes | 2s bot requests | 3s x restarts | 4s ann resumes | 5s ann types under 1 x \
         | 6s bot types y | 7s bot attaches | 8s ann releases | 9s x restarts | 39s x passes",
        r#"
            0s ann attaches: done
            0s bot attaches: done
            1s ann takes: turn 1; fence 1 for 1
            2s bot requests: waits behind 0; tell 1: agent:bot asks
            3s x restarts: done; thaw
            4s ann resumes: done
            5s ann types under 1 x: turn 1
            6s bot types y: no, this client is not attached
            7s bot attaches: done
            8s ann releases: done; fence 2 for nobody; lapse next; fence 3 for 3
            9s x restarts: done; thaw
            39s x passes: done; lapse grace; fence 4 for nobody; lapse grace; expel 1; expel 2; expel 3
        "#,
    );
}

#[test]
fn a_session_that_waits_for_a_human_lends_it_a_programs_turn() {
    expect(
        "0s bot types sudo | 1s ann types hunter2 | 1s ann isawaited | 1s ann types hunter2 | 1s x isdone | 2s x passes \
         | 2s x isdone | 3s bot types ls",
        r#"
            0s bot types sudo: turn 1; fence 1 for nobody
            1s ann types hunter2: no, agent:bot has the turn
            1s ann isawaited: done; lapse lent; fence 2 for nobody
            1s ann types hunter2: turn 2
            1s x isdone: done
            2s x passes: done
            2s x isdone: done; lapse grace; fence 3 for nobody
            3s bot types ls: turn 4; fence 4 for nobody
        "#,
    );
}

#[test]
fn a_program_that_asked_for_the_turn_gets_it_back_when_the_human_is_done() {
    expect(
        "0s bot attaches | 0s ann attaches | 0s bot takes | 1s ann isawaited | 1s ann types x | 30s bot types ls \
         | 31s x passes | 40s ann isawaited | 40s kit requests | 40s ann types y | 41s x isdone",
        r#"
            0s bot attaches: done
            0s ann attaches: done
            0s bot takes: turn 1; fence 1 for 1
            1s ann isawaited: done; lapse lent; fence 2 for 2
            1s ann types x: turn 2
            30s bot types ls: no, human:ann has the turn
            31s x passes: done; lapse grace; fence 3 for nobody; lapse next; fence 4 for 1
            40s ann isawaited: done; lapse lent; fence 5 for 2
            40s kit requests: waits behind 1; tell 2: agent:kit asks
            40s ann types y: turn 5
            41s x isdone: done; lapse grace; fence 6 for nobody; lapse next; fence 7 for 1
        "#,
    );
}

#[test]
fn nothing_is_lent_to_a_program_nor_by_a_human_nor_by_what_is_frozen() {
    expect(
        "0s ann types vi | 1s bob isawaited | 1s bob types x | 5s bot types ls | 5s kit isawaited | 5s eve isawaited \
         | 5s kit types x | 6s ann freezes stop | 7s bob isawaited",
        r#"
            0s ann types vi: turn 1; fence 1 for nobody
            1s bob isawaited: done
            1s bob types x: no, human:ann has the turn
            5s bot types ls: turn 3; lapse grace; fence 2 for nobody; fence 3 for nobody
            5s kit isawaited: done
            5s eve isawaited: done
            5s kit types x: no, agent:bot has the turn
            6s ann freezes stop: turn 4; fence 4 for nobody; flush; freeze; tell all: human:ann seized from agent:bot (stop); tell all: human:ann froze
            7s bob isawaited: done
        "#,
    );
}

#[test]
fn a_host_that_died_before_its_keeper_knew_of_a_change_flushes_only_where_it_may_have_been_a_seizure() {
    let flushes = |script: &[(&str, Ask)], behind: u64| {
        let mut world = World::new();
        for (who, ask) in script {
            world.ask(who, ask.clone()).reply.unwrap();
        }
        let keeper_fence = Fence(world.keeper.fence.0 - behind);
        let authority = world.authority.clone();
        let moment = Moment { time_ms: world.now, at: 0 };
        let answer = { authority }.handle(Input::Restarted { keeper_fence, connection: 1 }, moment);
        answer.effects.iter().any(|effect| matches!(effect, Effect::FlushInput { .. }))
    };
    let take = ("bot", Ask::Take);
    let seize = ("ann", Ask::Seize { freeze: false, reason: String::new() });
    let release = ("ann", Ask::Release);
    assert!(!flushes(std::slice::from_ref(&take), 1), "a line acknowledged before it is read all the same");
    assert!(flushes(&[take.clone(), seize.clone()], 1));
    assert!(!flushes(&[take.clone(), seize.clone()], 0), "the keeper has heard of it");
    assert!(!flushes(&[take.clone(), seize.clone(), release.clone()], 1), "it heard of the seizure");
    assert!(flushes(&[take, seize, release], 2), "the seizure may be among them");
}
