#!/bin/sh
# Checks a deb and the other files of deploy/, and names each check that the machine cannot do.
#
# Usage: check.sh PACKAGE.deb, from the root of the source
set -eu
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
has() { command -v "$1" >/dev/null || { echo "skipped: no $1"; return 1; }; }

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
fi
if has kubectl; then
	kubectl kustomize deploy/kubernetes >"$root/objects"
	echo "$(grep -c '^kind:' "$root/objects") objects of Kubernetes"
fi
echo "$(basename "$1") is complete"
