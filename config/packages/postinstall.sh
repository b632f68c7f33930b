#!/bin/sh
# Runs after installation and upgrades. Only root and the service read the environment: it may have credentials.
set -e
chown root:otelcol-profiles /etc/otelcol-profiles/environment 2>/dev/null || true
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
case "$1" in
  configure) first=$([ -n "$2" ] || echo yes) ;; # deb: the version that was configured before
  1) first=yes ;;                                # rpm: the number of installed versions
  *) first= ;;
esac
if [ -n "$first" ]; then
  systemctl enable --now otelcol-profiles || true # its log says what is wrong with the configuration
else
  systemctl try-restart otelcol-profiles || true
fi
