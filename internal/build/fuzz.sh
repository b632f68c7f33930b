#!/usr/bin/env bash
# Runs every fuzz target whose name begins with a pattern, reports each, and fails at the end if one failed: fuzz.sh PATTERN TIME
# Go writes a failing input below testdata/fuzz of its package. Commit it, so that `go test` always runs it.
set -euo pipefail
failed=() count=0
while IFS=: read -r file func; do
  name="${func#func } in $(dirname "$file")"
  count=$((count + 1))
  echo "== $name"
  ${GO:-go} test -run '^$' -fuzz "^${func#func }\$" -fuzztime "$2" -fuzzminimizetime 10x "$(dirname "$file")" </dev/null || failed+=("$name")
done < <(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | grep -E ":func ($1)" | sort)
echo "== $count fuzz targets, ${#failed[@]} failed"
for name in "${failed[@]}"; do echo "failed: $name"; done
git status --short --untracked-files=all -- '**/testdata/fuzz/**' | sed 's/^?? /new seed, to be committed: /'
((${#failed[@]} == 0))
