#!/bin/sh
# get-criu.sh PREFIX: CRIU 4.2 or later with its libraries, from a newer Debian suite, in a directory of its own. Nothing is installed, and
# apt's own state is not touched. Signatures are checked by the system's keyring, hashes by apt.
set -eu
case "$1" in /*) ;; *) echo "the prefix must be an absolute path" >&2; exit 2 ;; esac
suite=${CRIU_SUITE:-forky}
prefix=$1
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
for needed in apt-get dpkg-deb; do
    command -v "$needed" >/dev/null || { echo "this needs $needed: install CRIU 4.2 or later with your package manager" >&2; exit 3; }
done
[ -r "$keyring" ] || { echo "this needs $keyring: install the package debian-archive-keyring, or CRIU 4.2 or later" >&2; exit 3; }
made=$prefix.new
rm -rf "$made"
mkdir -p "$made/apt/lists/partial" "$made/apt/cache/archives/partial" "$made/debs" "$made/root"
chmod 0755 "$made"
# The mirror that this machine already uses.
mirror=${CRIU_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' | head -n 1)}
[ -n "$mirror" ] || { echo "apt knows no mirror: name one in CRIU_MIRROR, or install CRIU 4.2 or later" >&2; exit 3; }
echo "deb [signed-by=$keyring] $mirror $suite main" >"$made/apt/sources.list"
: >"$made/apt/status"
apt() {
    tool=$1
    shift
    "$tool" -qq -o Dir::Etc::sourcelist="$made/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
        -o Dir::State="$made/apt" -o Dir::State::status="$made/apt/status" -o Dir::State::lists="$made/apt/lists" \
        -o Dir::Cache="$made/apt/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none \
        -o APT::Install-Recommends=false "$@"
}
apt apt-get update
# With an empty status file a simulated installation names everything that CRIU needs.
packages=$(apt apt-get install -y --print-uris criu | sed -n "s/^'[^']*' \([^_]*\)_.*/\1/p")
[ -n "$packages" ] || { echo "$suite has no CRIU" >&2; exit 4; }
(cd "$made/debs" && apt apt-get download $packages)
for deb in "$made"/debs/*.deb; do
    dpkg-deb -x "$deb" "$made/root"
done
rm -rf "$made/apt" "$made/debs"
loader=$(cd "$made" && ls root/usr/lib64/ld-linux-*.so.* root/usr/lib/ld-linux-*.so.* 2>/dev/null | head -n 1)
libraries=$(cd "$made" && ls -d root/usr/lib/*-linux-gnu | head -n 1)
# Relative to itself, so that the directory can be moved.
printf '#!/bin/sh\nd=$(dirname "$0")\nexec "$d/%s" --library-path "$d/%s" "$d/root/usr/sbin/criu" "$@"\n' \
    "$loader" "$libraries" >"$made/criu"
chmod 0755 "$made/criu"
rm -rf "$prefix.old"
if [ -e "$prefix" ]; then mv "$prefix" "$prefix.old"; fi
mv "$made" "$prefix"
rm -rf "$prefix.old"
"$prefix/criu" --version
