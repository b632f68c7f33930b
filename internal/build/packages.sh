#!/usr/bin/env bash
# Builds packages of the collector and of the tool, for each architecture and format: packages.sh FOLDER
# The Makefile sets DIST, VERSION, PACKAGE_ARCHS, COLLECTOR_FLAGS and TOOL_FLAGS.
set -euo pipefail
go=${GO:-go} to=$1
eval "collector_flags=($COLLECTOR_FLAGS) tool_flags=($TOOL_FLAGS)"

mkdir -p "$to" bin/package
sed 's|/usr/local/bin|/usr/bin|; s|^DynamicUser=yes|User=otelcol-profiles|; /^# The packages replace/d' \
  config/systemd/otelcol-profiles.service > bin/package/otelcol-profiles.service
export NAME=$DIST OTHER=otelcol-profiles-slim VERSION ARCH BINARIES=$PWD/bin/package
[ "$DIST" = otelcol-profiles ] || OTHER=otelcol-profiles
for ARCH in $PACKAGE_ARCHS; do
  GOOS=linux GOARCH=$ARCH $go -C cmd/otelcol-profiles build "${collector_flags[@]}" -o "$BINARIES/$DIST" .
  GOOS=linux GOARCH=$ARCH $go build "${tool_flags[@]}" -o "$BINARIES/profiletool" ./cmd/profiletool
  for format in deb rpm apk; do
    for package in collector tool; do
      $go tool -modfile="$PWD/internal/build/tools/nfpm/go.mod" nfpm package --config "config/packages/$package.yaml" --packager "$format" --target "$to"
    done
  done
done
rm -r bin/package
