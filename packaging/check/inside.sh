#!/bin/sh
# inside.sh deb|wheel|npm: installs this package in a fresh root, works with it as a user, and removes it again.
set -eu
kind=$1
say() { echo "packages: $kind: $*"; }
fail() { say "FAILED: $*"; exit 1; }

useradd --create-home --shell /bin/bash ann
# A login, as a person has it; what only root may do is not needed.
as_ann() { su - ann -c "$1"; }
# Every file but the package manager's own records, and Python's own bytecode.
files() {
  find / -xdev \( -path /proc -o -path /dev -o -path /tmp -o -path /packages -o -path /var/lib/dpkg -o -path /var/log -o -path /var/cache \
    -o -path /home/ann/.npm -o -path /home/ann/.cache -o -name __pycache__ \) -prune -o ! -type d -print | sort
}
[ "$kind" != wheel ] || as_ann 'python3 -m venv ~/env'
[ "$kind" != npm ] || as_ann 'mkdir -p ~/npm/lib ~/npm/bin'
files > /tmp/before

case $kind in
  deb)
    dpkg -i /packages/*.deb
    hf=holdfast
    [ -s /usr/share/bash-completion/completions/holdfast ] && [ -s /usr/share/zsh/vendor-completions/_holdfast ] || fail "no completions"
    gzip -dc /usr/share/man/man1/holdfast.1.gz | grep -q '^\.TH' || fail "no manual page"
    [ -s /usr/lib/systemd/user/holdfast-host.socket ] || fail "no units"
    dpkg --verify holdfast || fail "installed files differ from the package"
    ;;
  wheel)
    as_ann '~/env/bin/pip install --quiet --no-index --disable-pip-version-check /packages/*.whl'
    hf='~/env/bin/holdfast'
    ;;
  npm)
    as_ann 'npm install --silent --no-audit --no-fund --offline --global --prefix ~/npm /packages/*.tgz'
    hf='~/npm/bin/holdfast'
    ;;
esac

say "$(as_ann "$hf --version")"
as_ann "$hf new -d --name work" | grep -q work || fail "new"
[ "$(as_ann "$hf run work -- id -un")" = ann ] || fail "run says another user"
# The user directory knows the shell: nothing of the environment says so.
as_ann "env -u SHELL $hf new -d --name plain" > /dev/null
as_ann "$hf info plain --json" | grep -q '/bin/bash' || fail "the user's shell is not known"
as_ann "$hf run work -- kept=yes" > /dev/null
host=$(as_ann "$hf host status --json" | tr ',{}' '\n' | sed -n 's/^ *"pid": *//p')
kill -9 "$host" || fail "no host to kill"
as_ann "$hf ls" | grep -q '^work ' || fail "the session is gone with the host"
[ "$(as_ann "$hf run work -- 'echo \$kept'")" = yes ] || fail "the session's shell is another one"
[ "$(as_ann "$hf host status --json" | tr ',{}' '\n' | sed -n 's/^ *"pid": *//p')" != "$host" ] || fail "the same host"
as_ann "$hf upgrade" | grep -q 'every keeper is of this build' || fail "upgrade"
as_ann "$hf doctor" > /tmp/doctor || fail "doctor: $(cat /tmp/doctor)"
say "new, run, kill -9 of the host, ls, run, upgrade"

# The relay as in docs/relay/Containerfile.
as_ann "HOLDFAST_HOME=~/relay exec $hf relay --listen 127.0.0.1:8080 --behind-proxy" > /tmp/relay 2>&1 &
tries=0
until as_ann 'exec 3<>/dev/tcp/127.0.0.1/8080; printf "GET /healthz HTTP/1.0\r\nX-Forwarded-For: 127.0.0.1\r\nHost: relay\r\n\r\n" >&3; grep -q ok <&3' 2>/dev/null; do
  tries=$((tries + 1))
  [ "$tries" -lt 100 ] || fail "the relay does not answer: $(cat /tmp/relay)"
  sleep 0.1
done
say "a relay answers"

as_ann "$hf end --all" > /dev/null
as_ann "$hf host stop" > /dev/null
case $kind in
  deb) dpkg --purge holdfast ;;
  wheel) as_ann '~/env/bin/pip uninstall --quiet --yes --disable-pip-version-check holdfast-cli' ;;
  npm) as_ann 'npm uninstall --silent --no-audit --no-fund --offline --global --prefix ~/npm @holdfast/cli' ;;
esac
as_ann "command -v $hf" && fail "the program is still there"
files > /tmp/after
[ -d /home/ann/.local/state/holdfast/sessions ] || fail "the user's sessions were removed"
# The shell in the session has its own history.
left=$(comm -13 /tmp/before /tmp/after | grep -v -e '^/home/ann/\.bash_history$' -e '^/home/ann/\.local/state/holdfast/' -e '^/home/ann/\.config/holdfast/' -e '^/home/ann/relay/' || true)
[ -z "$left" ] || fail "left behind: $left"
[ -z "$(comm -23 /tmp/before /tmp/after)" ] || fail "removed more than it brought: $(comm -23 /tmp/before /tmp/after)"
say "removed; nothing but the user's state is left"
