#!/bin/sh
# Makes the user and the folders. The service is not started, because it needs a certificate.
set -e
command -v systemd-sysusers >/dev/null && systemd-sysusers bkb-tuner.conf
command -v systemd-tmpfiles >/dev/null && systemd-tmpfiles --create bkb-tuner.conf
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
exit 0
