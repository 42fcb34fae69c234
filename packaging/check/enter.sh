#!/bin/sh
# enter.sh BASE WORK PACKAGES KIND: a fresh copy of the root BASE in WORK, without a network, and inside.sh in it. Runs in namespaces of
# its own for mounts, processes and the network (`unshare`), so that nothing is left of it but WORK.
set -eu
base=$1 work=$2 packages=$3 kind=$4
here=$(dirname "$0")
rm -rf "$work"
mkdir -p "$work/upper" "$work/work" "$work/root"
root=$work/root
# Where the file system cannot be laid over, it is copied.
mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$root" 2>/dev/null || cp -a "$base/." "$root/"
mount -t proc proc "$root/proc"
mkdir -p "$root/dev/pts"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
rm -f "$root/dev/ptmx"
ln -s pts/ptmx "$root/dev/ptmx"
ip link set lo up
mkdir "$root/packages"
cp "$packages"/*.deb "$packages"/*.whl "$packages"/*.tgz "$here/inside.sh" "$root/packages/"
exec chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
  /bin/sh /packages/inside.sh "$kind"
