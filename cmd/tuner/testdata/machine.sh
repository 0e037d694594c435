# Boots systemd as process 1 of a machine of its own, which has the programs of this one:
#
#	sh machine.sh FOLDER CGROUP
#
# The root is an overlay over the root of this machine, the network is the loopback
# device, and all that changes is in memory below FOLDER. Devices are the harmless ones.
# The kernel's settings are this machine's, so /sys and /proc/sys are read-only. Control
# groups are below one with the name CGROUP in each hierarchy, which the caller removes.
set -e
if [ "$3" != inside ]; then
	for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do
		[ -f "$hierarchy/cgroup.procs" ] && [ ! -L "$hierarchy" ] && mkdir "$hierarchy/$2" || continue
		for file in cpuset.cpus cpuset.mems; do # empty in a new group of version 1
			[ -f "$hierarchy/cpuset.cpu_exclusive" ] && cat "$hierarchy/$file" >"$hierarchy/$2/$file"
		done
		echo $$ >"$hierarchy/$2/cgroup.procs" || rmdir "$hierarchy/$2"
	done
	exec unshare --mount --pid --fork --uts --ipc --net --cgroup --kill-child sh "$0" "$1" "$2" inside
fi
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
for folder in dev run tmp var/lib/docker; do
	mkdir -p "$root/$folder"
	mount -t tmpfs machine "$root/$folder"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
for device in null zero full random urandom tty; do
	: >"$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
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
