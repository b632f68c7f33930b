#!/usr/bin/env bash
# Fails if something that is generated differs from what would be generated now: check_generated.sh METADATA.YAML...
#
# The builder runs in an empty folder at the same depth as the real one (for its replace line ../..), with a copy of the files
# that are written by hand. So neither untracked files nor the state of git can hide a difference.
set -euo pipefail
go=${GO:-go} main=cmd/otelcol-profiles
stale() { echo "stale: $1" >&2; exit 1; }

rm -rf bin/generated bin/_metadata && mkdir -p bin/generated bin/_metadata
for metadata in "$@"; do
  folder=$(dirname "$metadata")
  mkdir -p "bin/_metadata/$folder" && cp -r "$folder/." "bin/_metadata/$folder"
  internal/build/metadata.sh "$metadata"
  diff -r "bin/_metadata/$folder" "$folder" || stale "commit what is now in $folder"
done
grep -L '^// Code generated' "$main"/*.go | xargs cp -t bin/generated
internal/build/assemble.sh bin/generated
diff -r -x otelcol-profiles "$main" bin/generated || stale "run \`make generate\` and commit $main"
$go run ./internal/build/chart | diff - config/helm/templates/_manifests.tpl || stale "run \`make generate\` and commit config/helm"
$go run ./internal/build/notice -C "$main,cmd/profiletool" -tags=grpcnotrace > bin/NOTICE.table
diff NOTICE bin/NOTICE.table || stale 'run `make notice` and commit NOTICE'
$go mod tidy -e -diff
for module in internal/build/tools internal/build/tools/*/; do
  $go -C "$module" mod tidy -diff
done
