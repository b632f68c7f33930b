#!/usr/bin/env bash
# Generates the metrics and the status of components by mdatagen: metadata.sh METADATA.YAML...
# The tests that it also generates for each component are one loop over all components in internal/testing/components; that for
# leaked goroutines stays.
set -euo pipefail
for metadata in "$@"; do
  ${GO:-go} tool -modfile="$PWD/internal/build/tools/mdatagen/go.mod" mdatagen "$metadata"
  folder=$(dirname "$metadata")
  rm -rf "$folder"/generated_component_test.go "$folder"/internal/metadatatest "$folder"/internal/metadata/generated_*_test.go
done
