#!/bin/sh
# Runs before installation and upgrades: the user that the service runs as.
set -e
if ! getent passwd otelcol-profiles >/dev/null 2>&1 && ! grep -q '^otelcol-profiles:' /etc/passwd; then
  if command -v useradd >/dev/null; then
    useradd --system --user-group --home-dir /var/lib/otelcol-profiles --no-create-home --shell /usr/sbin/nologin otelcol-profiles
  else # Alpine
    adduser -S -D -H -h /var/lib/otelcol-profiles -s /sbin/nologin otelcol-profiles
  fi
fi
