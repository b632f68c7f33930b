#!/bin/sh
# Runs before removal and, with other arguments, before upgrades, which keep the service.
set -e
case "$1" in
  remove | 0) [ ! -d /run/systemd/system ] || systemctl disable --now otelcol-profiles || true ;;
esac
