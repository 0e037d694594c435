#!/bin/sh
# Checks a deb, an rpm, an apk and the other files of deploy/, and names each check that the machine
# cannot do.
#
# Usage: check.sh PACKAGE.deb PACKAGE.rpm PACKAGE.apk, from the root of the source
set -eu
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
has() { command -v "$1" >/dev/null || { echo "skipped: no $1"; return 1; }; }

# installs PACKAGE INSTALL REMOVE runs both commands with the package as $1 in a copy of this
# machine, an overlay in memory that ends with them. In between it checks what is there.
installs() {
	[ "$(id -u)" = 0 ] || { echo "skipped: only root can install $1"; return 0; }
	mkdir -p "$root/copy"
	copy=$root/copy unshare --mount --propagation private sh -eu -c '
		mount -t tmpfs copy "$copy"
		mkdir "$copy/upper" "$copy/work" "$copy/root"
		mount -t overlay copy -o "lowerdir=/,upperdir=$copy/upper,workdir=$copy/work" "$copy/root"
		mount -t tmpfs copy "$copy/root/run"
		mount --bind /dev "$copy/root/dev"
		mount -t proc proc "$copy/root/proc"
		cp "$1" deploy/tuner.service "$copy/root/run"
		chroot "$copy/root" sh -eu -c "$2
			tuner version
			cmp /run/tuner.service /usr/lib/systemd/system/tuner.service
			stat -c \"%U:%G %a %n\" /usr/bin/tuner /etc/tuner /var/lib/tuner /var/backups/tuner
			$3
			! test -e /usr/bin/tuner" sh "/run/${1##*/}"' sh "$@" >"$root/log" 2>&1 || { cat "$root/log"; exit 1; }
	for line in 'root:root 755 /usr/bin/tuner' 'root:root 755 /etc/tuner' 'tuner:tuner 700 /var/lib/tuner' 'tuner:tuner 700 /var/backups/tuner'; do
		grep -qxF "$line" "$root/log" || { echo "$1 leaves no $line:"; cat "$root/log"; exit 1; }
	done
	echo "$1 was installed and removed"
}

if has dpkg-deb; then
	dpkg-deb --extract "$1" "$root"
	"$root/usr/bin/tuner" version
	cmp "$root/usr/lib/systemd/system/tuner.service" deploy/tuner.service
	dpkg-deb --field "$1" Package Version Architecture
	sh -n deploy/package/postinstall.sh
	if has systemd-analyze; then
		# The units that this one names are those of the machine.
		systemd-analyze verify --recursive-errors=no --root="$root" tuner.service
		# The threshold is ten times the exposure level.
		systemd-analyze security --offline=true --threshold=30 deploy/tuner.service >"$root/exposure" ||
			{ cat "$root/exposure"; exit 1; }
		tail -n 1 "$root/exposure"
	fi
	if has systemd-sysusers; then
		mkdir -p "$root/etc"
		systemd-sysusers --root="$root" bkb-tuner.conf
		grep '^tuner:' "$root/etc/passwd"
	fi
	# The program is static by intention, and its licences lie beside it under other names.
	if has lintian; then
		lintian --suppress-tags no-changelog,no-copyright-file,statically-linked-binary,extended-description-is-empty --fail-on error "$1"
	fi
	installs "$1" 'dpkg --install "$1"' 'dpkg --purge bkb-tuner'
fi
if has rpm; then
	rpm --checksig --nosignature "$2"
	rpm --query --list --package "$2" | sort >"$root/rpm-files"
	sed -n 's/.*dst: \([^,}]*\).*/\1/p' deploy/package/nfpm.yaml | sort | diff - "$root/rpm-files"
	# The database of rpm does not have the packages of Debian.
	installs "$2" 'rpm --install --nodeps "$1"; rpm --verify --nodeps bkb-tuner' 'rpm --erase bkb-tuner'
fi
# An apk is a chain of tar files: its description, and its contents.
tar -xzOf "$3" .PKGINFO 2>/dev/null | grep -E '^(pkgname|pkgver|arch|license) = '
sed -n 's/.*dst: \/\([^,}]*\).*/\1/p' deploy/package/nfpm.yaml | sort >"$root/apk-files"
tar -tzf "$3" 2>/dev/null | grep -v -e '^\.' -e '/$' | sort | diff - "$root/apk-files"
if has apk; then apk verify --allow-untrusted "$3"; fi
if has kubectl; then
	kubectl kustomize deploy/kubernetes >"$root/objects"
	echo "$(grep -c '^kind:' "$root/objects") objects of Kubernetes"
fi
echo "$(basename "$1"), $(basename "$2") and $(basename "$3") are complete"
