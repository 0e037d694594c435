# Boots systemd as process 1 of a machine of its own, which has the programs of this one.
# unshare has made the namespaces. The root is an overlay over the root of this machine,
# the network is the loopback device, and all that changes is in memory below $1. The
# kernel's settings and devices are this machine's, so /sys and /proc/sys are read-only.
set -e
mount --make-rprivate /
mount -t tmpfs machine "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay machine -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
root=$1/root
mount -t proc proc "$root/proc"
echo 1 >"$root/proc/sys/net/ipv4/ip_forward" # of this network; Docker wants it
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
mount --rbind /dev "$root/dev"
for folder in run tmp var/lib/docker; do
	mkdir -p "$root/$folder"
	mount -t tmpfs machine "$root/$folder"
done
# Only what the page sets up runs, and none of this machine's services.
rm -rf "$root"/etc/systemd/system/*.wants "$root"/etc/systemd/system/*.requires
ip link set lo up
cd "$root"
mkdir old
pivot_root . old
exec env -i container=namespace PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -c '
	umount -l /old && rmdir /old
	exec /lib/systemd/systemd --system --unit=basic.target --show-status=0'
