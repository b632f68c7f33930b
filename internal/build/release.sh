#!/usr/bin/env bash
# Builds all files of a release: archives of both programs for each platform, packages, bills of materials, the notes, and
# checksums of all of them: release.sh FOLDER
# The Makefile sets DIST, VERSION, RELEASE_PLATFORMS, PACKAGE_ARCHS, COLLECTOR_TAGS, COLLECTOR_FLAGS and TOOL_FLAGS.
set -euo pipefail
go=${GO:-go} to=$1
eval "collector_flags=($COLLECTOR_FLAGS) tool_flags=($TOOL_FLAGS)"

built=$(sed -n 's/^  version: //p' builder-config.yaml)
[ "$VERSION" = "$built" ] || { echo "VERSION is $VERSION, the collector says $built: set \`version\` in builder-config*.yaml, and run make generate" >&2; exit 1; }
rm -rf "$to" && mkdir -p "$to"
# The page of a release has its version as the title, and no relative links.
awk -v version="$VERSION" '/^## / { here = $2 "" == version; next } here' CHANGELOG.md |
  sed -E "s#\]\(([^):]+)\)#](https://github.com/otelcol-profiles/otelcol-profiles/blob/v$VERSION/\1)#g" > "$to/notes.md"
[ -s "$to/notes.md" ] || { echo "CHANGELOG.md has no section $VERSION" >&2; exit 1; }

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) # the time of all files
export SOURCE_DATE_EPOCH
for platform in $RELEASE_PLATFORMS; do
  export GOOS=${platform%/*} GOARCH=${platform#*/}
  exe=
  [ "$GOOS" != windows ] || exe=.exe
  echo "== $platform"
  folder="$PWD/$to/${DIST}_${VERSION}_${GOOS}_$GOARCH"
  mkdir -p "$folder/config"
  $go -C cmd/otelcol-profiles build "${collector_flags[@]}" -o "$folder/$DIST$exe" .
  $go build "${tool_flags[@]}" -o "$folder/profiletool$exe" ./cmd/profiletool
  cp LICENSE bin/NOTICE CHANGELOG.md "$folder"
  cp -r config/*.yaml config/backends config/targets "$folder/config"
  [ "$GOOS" != linux ] || { mkdir "$folder/config/systemd" && cp config/systemd/*.service "$folder/config/systemd"; }
done
unset GOOS GOARCH
internal/build/packages.sh "$to"
$go run ./internal/build/notice -C cmd/otelcol-profiles -tags="$COLLECTOR_TAGS" -sbom "$VERSION" > "$to/${DIST}_$VERSION.cdx.json"
$go run ./internal/build/notice -C cmd/profiletool -tags=grpcnotrace -sbom "$VERSION" > "$to/profiletool_$VERSION.cdx.json"
$go run ./internal/build/release -dir "$to" -time "$SOURCE_DATE_EPOCH"
