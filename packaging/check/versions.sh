#!/bin/sh
# versions.sh OLD NEW: two programs of different versions with each other, both ways: client and host, keeper and host. In a home of its own
# that is removed; every process in it is ended by the program itself.
set -eu
old=$1 new=$2
[ -x "$old" ] && [ -x "$new" ] || { echo "versions: $old or $new is no program"; exit 1; }
home=$(mktemp -d)
export HOLDFAST_HOME="$home/h"
unset HOLDFAST_SESSION HOLDFAST_ACTOR HOLDFAST_TOKEN HOLDFAST_URL || true
say() { echo "versions: $*"; }
finish() {
  for program in "$new" "$old"; do
    "$program" end --all --grace 1 > /dev/null 2>&1 && "$program" host stop > /dev/null 2>&1 && break
  done
  rm -rf "$home"
}
fail() { say "FAILED: $*"; exit 1; }
trap finish EXIT

same() { [ "$1" = "$2" ] || fail "$3: got \"$1\", expected \"$2\""; }
# A terminal that types a line, waits until the session has answered it, and detaches.
attached() {
  program=$1 session=$2 word=$3 asks=$4
  mkfifo "$home/keys"
  script -qec "'$program' attach $session" /dev/null < "$home/keys" > "$home/seen" 2>&1 &
  terminal=$!
  exec 9> "$home/keys"
  until_client "$asks" "$session" || fail "attach did not begin: $(cat "$home/seen")"
  printf 'printf %%s-%%s\\\\n %s typed\r' "$word" >&9
  tries=0
  until "$asks" screen "$session" | grep -q "$word-typed"; do
    tries=$((tries + 1)); [ $tries -lt 100 ] || fail "what was typed does not show: $("$asks" screen "$session")"; sleep 0.1
  done
  printf '\034d' >&9
  wait $terminal || fail "attach ended with $?: $(cat "$home/seen")"
  exec 9>&-
  rm "$home/keys"
  grep -q "$word-typed" "$home/seen" || fail "the terminal did not show it"
}
until_client() {
  tries=0
  until "$1" info "$2" --json | tr -d ' \n' | grep -q '"clients":\[{'; do
    tries=$((tries + 1)); [ $tries -lt 100 ] || return 1; sleep 0.1
  done
}
# Everything a person asks most, by one program of a session that another one's host has.
used() {
  program=$1 session=$2 what=$3
  "$program" ls | grep -q "^$session " || fail "$what: ls"
  same "$("$program" run "$session" -- 'echo $((6*7))')" 42 "$what: run"
  "$program" send "$session" --enter "echo se''nt" || fail "$what: send"
  tries=0
  until "$program" screen "$session" | grep -q '^sent'; do
    tries=$((tries + 1)); [ $tries -lt 100 ] || fail "$what: screen"; sleep 0.1
  done
  "$program" logs "$session" --plain | grep -q 42 || fail "$what: logs"
  "$program" state "$session" --json > /dev/null || fail "$what: state"
  "$program" graph "$session" --json > /dev/null || fail "$what: graph"
  "$program" take "$session" > /dev/null || fail "$what: take"
  "$program" release "$session" > /dev/null || fail "$what: release"
  "$program" journal "$session" --verify > /dev/null || fail "$what: journal"
  attached "$program" "$session" "$4" "$program"
  say "$what: ls, run, send, screen, logs, state, graph, take, release, journal, attach"
}

"$old" new -d --name old > /dev/null
"$old" run old -- kept=yes > /dev/null
used "$new" old "new client, old host" one
"$new" upgrade > "$home/upgrade" || fail "upgrade: $(cat "$home/upgrade")"
same "$("$new" run old -- 'echo $kept')" yes "the shell of the old keeper under the new host"
used "$new" old "new client, new host, old keeper" two
used "$old" old "old client, new host, old keeper" three
"$new" new -d --name new > /dev/null
used "$old" new "old client, new host, new keeper" four
"$new" run new -- kept=too > /dev/null
"$new" host stop > /dev/null
"$old" host start > /dev/null
same "$("$old" run new -- 'echo $kept')" too "the shell of the new keeper under the old host"
used "$new" new "new client, old host, new keeper" five
say "both ways: all of it"
