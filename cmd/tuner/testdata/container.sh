# Runs the command of a container as process 1 of it, in a root of its own:
#
#	sh container.sh ROOT USER READONLY FROM:TO… -- COMMAND…
#
# The caller has made the namespaces for mounts and processes. Each FROM is a file, a link or
# a folder, which the container has at TO. A USER is UID:GID. READONLY is true or false.
set -e
root=$1 user=$2 readonly=$3
shift 3
mount --make-rprivate /
mount -t tmpfs -o mode=0755 container "$root"
while [ "$1" != -- ]; do
	from=${1%:*} to=$root${1##*:}
	mkdir -p "$(dirname "$to")"
	if [ -L "$from" ]; then
		cp -a "$from" "$to"
	else
		if [ -d "$from" ]; then mkdir -p "$to"; else : >"$to"; fi
		mount --bind "$from" "$to"
	fi
	shift
done
shift
mkdir "$root/proc"
mount -t proc proc "$root/proc"
if [ "$readonly" = true ]; then mount -o remount,ro "$root"; fi
exec setpriv --no-new-privs chroot --userspec="$user" "$root" "$@"
