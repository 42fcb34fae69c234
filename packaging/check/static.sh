#!/bin/sh
# static.sh PROGRAM BUSYBOX: a static program in a root that has nothing but itself and a static shell: no C library, no /etc. Runs in namespaces
# of its own, so that no process is left.
set -eu
program=$1 busybox=$2
if [ "${3-}" != inside ]; then
  root=$(mktemp -d)
  code=0
  unshare --mount --pid --net --fork --kill-child sh "$0" "$program" "$busybox" inside "$root" || code=$?
  rm -rf "$root"
  exit $code
fi
root=$4
say() { echo "packages: static: $*"; }
fail() { say "FAILED: $*"; exit 1; }
mount -t tmpfs -o mode=755 tmpfs "$root"
cd "$root"
mkdir -m 755 bin dev dev/pts proc home tmp
cp "$program" bin/holdfast
cp "$busybox" bin/busybox
ln -s busybox bin/sh
mknod -m 666 dev/null c 1 3
mknod -m 666 dev/tty c 5 0
mknod -m 666 dev/urandom c 1 9
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t proc proc proc
# Of the machine itself: script(1) needs it.
mount -t proc proc /proc
chroot=$(command -v chroot)
hf() { env -i PATH=/bin HOME=/home LOGNAME=ann TERM=xterm "$chroot" "$root" /bin/holdfast "$@"; }
until_true() {
  tries=0
  until eval "$1"; do tries=$((tries + 1)); [ $tries -lt 300 ] || fail "$2"; sleep 0.1; done
}
say "$(hf --version), $(stat -c %s bin/holdfast) bytes"
hf new -d --name work -- /bin/sh > /dev/null || { cat home/.local/state/holdfast/*.log 2>/dev/null | tail -20; fail "new"; }
hf send work --enter 'echo $((6*7))' || fail "send"
until_true 'hf screen work | grep -q "^42"' "the shell does not answer: $(hf screen work)"
[ "$(hf run --new -- /bin/busybox echo ran)" = ran ] || fail "run"
host=$(hf host status --json | tr ',{}' '\n' | sed -n 's/^ *"pid": *//p')
kill -9 "$host" || fail "no host to kill"
hf ls | grep -q '^work ' || fail "the session is gone with the host"
# Who sent has the turn still: a person at a terminal waits for it.
hf release work > /dev/null || fail "release"
mkfifo keys
script -qec "env -i PATH=/bin HOME=/home LOGNAME=ann TERM=xterm '$chroot' '$root' /bin/holdfast attach work" /dev/null < keys > seen 2>&1 &
terminal=$!
exec 9> keys
until_true 'hf info work --json | tr -d " \n" | grep -q "\"clients\":\[{"' "attach did not begin: $(cat seen)"
printf 'echo at$((1+1))ached\r' >&9
until_true 'hf screen work | grep -q "^at2ached"' "what was typed does not show: $(hf screen work; tail -c 600 seen | cat -v; hf journal work | tail -5)"
printf '\034d' >&9
wait $terminal || fail "attach ended with $?: $(cat seen)"
exec 9>&-
grep -q at2ached seen || fail "the terminal did not show it"
hf end --all > /dev/null
hf host stop > /dev/null
say "an empty root: new, send, screen, run, kill -9 of the host, ls, attach, detach, end"
