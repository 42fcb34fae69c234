#!/bin/sh
# systemd.sh PROGRAM: the user units of the packages under a real `systemd --user`, in namespaces and control groups of its own, which are gone
# afterwards. Needs root, and systemd's program; the machine itself need not run it.
set -eu
program=$1
if [ "${2-}" != inside ]; then
  dir=$(mktemp -d)
  groups=
  for root in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
    [ -e "$root/cgroup.procs" ] || continue
    mkdir "$root/holdfast-check-$$"
    groups="$groups $root/holdfast-check-$$"
  done
  code=0
  # What has joined the groups ends before they are removed.
  sh -c 'for group in '"$groups"'; do echo $$ > $group/cgroup.procs; done; exec unshare --mount --pid --cgroup --fork --kill-child sh "$@"' \
    sh "$0" "$program" inside "$dir" "$(dirname "$0")/../systemd" || code=$?
  for group in $groups; do find "$group" -depth -type d -exec rmdir {} +; done
  rm -rf "$dir"
  exit $code
fi
dir=$3 units=$4
say() { echo "packages: systemd: $*"; }
fail() { say "FAILED: $*"; cat "$dir/log" || true; exit 1; }
mount -t proc proc /proc
# Seen from inside, the groups made above are the roots, and there are no others.
mixed=no
[ ! -e /sys/fs/cgroup/systemd/cgroup.procs ] || mixed=yes
if [ $mixed = yes ]; then
  mount -t tmpfs tmpfs /sys/fs/cgroup
  mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/unified
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
  mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
else
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
# It looks here whether the machine runs systemd.
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system "$dir/run" "$dir/config/systemd/user" "$dir/home"
chmod 700 "$dir/run"
export XDG_RUNTIME_DIR="$dir/run" XDG_CONFIG_HOME="$dir/config" XDG_STATE_HOME="$dir/state" HOME="$dir/home"
unset HOLDFAST_HOME HOLDFAST_SESSION HOLDFAST_ACTOR DBUS_SESSION_BUS_ADDRESS || true
cp "$units/holdfast-host.socket" "$dir/config/systemd/user/"
sed "s#^ExecStart=/usr/bin/holdfast #ExecStart=$program #" "$units/holdfast-host.service" > "$dir/config/systemd/user/holdfast-host.service"
grep -q "^ExecStart=$program host run" "$dir/config/systemd/user/holdfast-host.service" || fail "the unit does not start the program"
/usr/lib/systemd/systemd --user --log-target=console > "$dir/log" 2>&1 &
until_true() {
  tries=0
  until eval "$1"; do tries=$((tries + 1)); [ $tries -lt 150 ] || fail "$2"; sleep 0.1; done
}
main() { systemctl --user show holdfast-host.service -p MainPID --value; }
until_true '[ -S "$dir/run/systemd/private" ]' "systemd --user does not start"
systemctl --user start holdfast-host.socket || fail "the socket unit"
[ "$(main)" = 0 ] || fail "the host runs before anything asked for it"
"$program" new -d --name work > /dev/null || fail "new"
first=$(main)
[ "$first" != 0 ] || fail "the host that answers is not systemd's"
"$program" run work -- kept=yes > /dev/null
systemctl --user stop holdfast-host.service 2> /dev/null
[ "$(main)" = 0 ] || fail "it was not stopped"
[ "$("$program" run work -- 'echo $kept')" = yes ] || fail "the session did not outlive a stop of the unit"
second=$(main)
kill -9 "$second"
until_true '[ "$(main)" != 0 ] && [ "$(main)" != "$second" ]' "systemd did not restart the host"
[ "$("$program" run work -- 'echo $kept')" = yes ] || fail "the session did not outlive a kill of the host"
[ "$(systemctl --user show holdfast-host.service -p NRestarts --value)" = 1 ] || fail "restarts are not systemd's"
third=$(main)
"$program" upgrade > /dev/null || fail "upgrade"
until_true '[ "$(main)" != 0 ] && [ "$(main)" != "$third" ]' "after an upgrade the host is not systemd's"
[ "$("$program" run work -- 'echo $kept')" = yes ] || fail "the session did not outlive an upgrade"
"$program" end --all > /dev/null
say "the socket starts the host; a session outlives a stop, a kill and an upgrade of it"
