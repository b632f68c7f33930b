#!/usr/bin/env bash
# Builds collectors, the smallest first, until one has all that a configuration needs, and prints its path: choose.sh CONFIG
set -euo pipefail

for build in QUICKSTART=1 SLIM=1 SLIM=; do
  ${MAKE:-make} --no-print-directory collector $build >&2
  case $build in QUICKSTART=1) suffix=-quickstart ;; SLIM=1) suffix=-slim ;; *) suffix= ;; esac
  answer=$("bin/otelcol-profiles$suffix" validate --config "$@" 2>&1) && break
  # A larger build may have what this one lacks. No build accepts any other fault, which the collector reports when it starts.
  [[ $answer == *"unknown type"* || $answer == *"full build"* ]] || break
done
echo "bin/otelcol-profiles$suffix"
