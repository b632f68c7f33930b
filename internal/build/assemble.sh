#!/usr/bin/env bash
# Writes the output of the Collector's builder for all lists of components to a folder two levels deep: assemble.sh FOLDER
#
# The builds share a module and everything except the list of components, which the build tags `slim` and `quickstart` (which
# implies `slim`) select. run.go replaces main_others.go, which the builder has no option to leave out. On Windows, run gets the
# converters, too.
set -euo pipefail
go=${GO:-go} to=$1
builder() { $go tool -modfile=internal/build/tools/go.mod builder --skip-compilation "$@"; }

mkdir -p bin
sed "s|output_path: .*|output_path: ./$to|" builder-config.yaml > bin/builder-config.yaml
rm -f "$to/go.mod"
# A module proxy may not have a module that only tests of the eBPF profiler import. Then the builder fails after it has written
# go.mod, and `go mod tidy -e` does the rest without that module.
builder --config bin/builder-config.yaml || [ -f "$to/go.mod" ]
$go -C "$to" mod tidy -e
for part in slim quickstart; do
  sed "s|output_path: .*|output_path: ./bin/$part|" "builder-config.$part.yaml" > bin/builder-config.part.yaml
  builder --config bin/builder-config.part.yaml --skip-get-modules
  tags=$part
  [ "$part" = quickstart ] || tags="$part && !quickstart"
  { printf '//go:build %s\n\n' "$tags"; cat "bin/$part/components.go"; } > "$to/components_$part.go"
  rm -r "bin/$part"
done
{ printf '//go:build !slim\n\n'; cat "$to/components.go"; } > bin/components.go
mv bin/components.go "$to/components.go"
awk '{ print } /^func run\(/ { print "\taddConverters(&params)" }' "$to/main_windows.go" > bin/main_windows.go
mv bin/main_windows.go "$to/main_windows.go"
rm "$to/main_others.go"
