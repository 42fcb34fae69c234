//! The turn, as sentences.

use crate::world::expect;

#[test]
fn a_person_alone_never_notices_the_turn() {
    expect("0s ann attaches | 1s ann types ls | 90s ann types pwd | 91s ann leaves", "");
}

#[test]
fn keys_without_the_turn_are_refused_and_never_appear_later() {
    expect(
        "0s ann attaches | 0s bot attaches | 1s ann types ls | 2s bot types rm | 3s ann releases | 4s bot types cat",
        "",
    );
}

#[test]
fn a_late_keystroke_of_a_past_holder_is_dropped() {
    expect(
        "0s ann attaches | 0s bot attaches | 1s ann takes | 5s ann types under 1 ls | 9s ann gives bot \
         | 10s ann types under 1 rm | 11s bot releases | 12s ann types under 1 rm",
        "",
    );
}

#[test]
fn requests_are_served_first_in_first_out() {
    expect(
        "0s ann attaches | 0s bob attaches | 0s bot attaches | 1s ann takes | 2s bot requests | 3s bob requests \
         | 4s bot requests | 5s ann releases | 6s bot releases | 7s bob releases",
        "",
    );
}

#[test]
fn an_idle_holder_is_replaced_on_request_and_an_active_one_is_not() {
    expect(
        "0s ann attaches | 0s bot attaches | 1s ann types vi | 30s bot requests | 30s ann types x | 59s x passes \
         | 60s x passes | 89s bot types y | 120s ann requests",
        "",
    );
}

#[test]
fn a_cut_off_holder_keeps_the_turn_for_its_grace_and_comes_back_to_it() {
    expect(
        "0s ann attaches | 0s bot attaches | 1s ann takes | 2s ann vanishes | 3s bot requests | 31s bot types x \
         | 31s ann resumes | 31s ann types under 1 y | 40s ann vanishes | 41s ann attaches | 42s ann types under 1 late \
         | 43s ann types ls",
        "",
    );
    expect("0s ann attaches | 0s bot attaches | 1s ann takes | 2s ann vanishes | 3s bot requests | 32s x passes", "");
}

#[test]
fn nobody_is_promoted_who_did_not_ask() {
    expect("0s ann attaches | 0s bot attaches | 1s ann takes | 2s ann leaves | 3s x passes", "");
}

#[test]
fn seizing_takes_effect_at_once_whoever_holds_and_whoever_waits() {
    expect(
        "0s ann attaches | 0s bob attaches | 0s bot attaches | 0s kit attaches | 1s bot types loop | 2s kit requests \
         | 3s ann seizes it loops | 3s bot types under 1 loop | 3s bot types more | 4s bob seizes mine",
        "",
    );
}

#[test]
fn an_agent_never_seizes_from_a_human_whatever_it_was_granted() {
    expect(
        "0s ann attaches | 0s bot attaches | 0s kit attaches | 1s bot seizes x | 2s ann grants bot type,seize,grant \
         | 3s ann takes | 4s bot seizes please | 5s ann gives kit | 6s bot seizes kit is slow | 7s ann seizes back",
        "",
    );
}

#[test]
fn an_agent_finds_no_way_round_to_what_a_human_holds() {
    expect(
        "0s ann grants bot observe,type,run,signal,seize,grant,approve,checkpoint,fork,end,configure | 0s ann attaches | 0s bot attaches | 1s ann takes \
         | 2s bot revokes ann | 3s bot revokes 1 | 4s bot detaches ann | 5s bot seizes x | 6s ann types ls",
        "",
    );
}

#[test]
fn whoever_only_says_it_is_human_seizes_from_no_human() {
    expect(
        "0s ann grants eve observe,type,seize | 1s ann takes | 2s eve seizes x | 3s ann releases | 4s eve takes | 5s bot seizes x | 6s ann grants bot seize | 7s bot seizes x",
        "",
    );
}

#[test]
fn a_frozen_session_takes_no_input_until_it_is_thawed() {
    expect(
        "0s ann attaches | 0s bot attaches | 1s bot types loop | 2s ann freezes stop | 3s ann types x | 4s bot runs make \
         | 5s bot signals 9 | 6s bot thaws | 7s bob thaws | 8s ann types x | 9s bob thaws",
        "",
    );
}

#[test]
fn what_was_seized_is_not_lost_to_an_agent_for_idleness() {
    expect(
        "0s ann attaches | 0s bob attaches | 0s bot attaches | 1s bot types loop | 2s ann seizes look | 3s bot requests \
         | 60s x passes | 61s bob requests",
        "",
    );
}

#[test]
fn a_single_request_keeps_the_turn_for_a_breath_only() {
    expect("0s ann attaches | 1s bot types make | 2s ann types x | 4s ann types x", "");
    expect("0s ann attaches | 1s bot takes | 20s bot types x | 45s ann types x | 50s ann types x", "");
}

#[test]
fn the_same_person_at_another_terminal_takes_the_turn_along_under_a_new_fence() {
    expect("0s ann attaches | 1s ann types x | 2s ann attaches | 3s ann types y | 4s ann types under 1 z", "");
}

#[test]
fn acts_are_checked_against_their_right_and_the_turn() {
    expect(
        "0s ann attaches | 0s bot attaches | 1s bot runs make | 2s ann resizes 80x24 | 3s bot resizes 80x24 | 4s bot signals 2 \
         | 5s bot renames x | 6s bot ends | 7s ann renames x | 8s eve runs x | 9s cron takes | 10s ann ends",
        "",
    );
}

#[test]
fn after_a_crash_of_the_host_everything_is_as_before() {
    expect(
        "0s ann attaches | 0s bot attaches | 1s ann takes | 2s bot requests | 3s x restarts | 4s ann resumes | 5s ann types under 1 x \
         | 6s bot types y | 7s bot attaches | 8s ann releases | 9s x restarts | 39s x passes",
        "",
    );
}
