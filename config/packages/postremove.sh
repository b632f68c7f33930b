#!/bin/sh
# Runs after removal, and for deb after a purge, which also deletes the state and the user.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
if [ "$1" = purge ]; then
  rm -rf /var/lib/otelcol-profiles
  rmdir /etc/otelcol-profiles/targets /etc/otelcol-profiles 2>/dev/null || true
  ! command -v userdel >/dev/null || userdel otelcol-profiles 2>/dev/null || true
fi
