#!/usr/bin/env bash
# `again.sh COMMAND` runs a `go test` of end-to-end tests, and then once more, by themselves, those that failed: they wait for
# processes and browsers, which a busy machine can delay for longer than a test waits. The output has both runs. What does not pass by
# itself is not tried again: a panic, a data race, more than three tests at once, and what does not compile.
set -uo pipefail

output=$(mktemp)
trap 'rm -f "$output"' EXIT
env "$@" 2>&1 | tee "$output"
status=$?
mapfile -t tests < <(sed -n 's/^--- FAIL: \([^ ]*\) .*/\1/p' "$output" | sort -u)
mapfile -t packages < <(sed -n 's/^FAIL\t\([^ \t]*\)\t[0-9.]*s$/\1/p' "$output" | sort -u)
if ((status == 0 || ${#tests[@]} == 0 || ${#tests[@]} > 3)) || grep -qE '^(panic: |WARNING: DATA RACE)|\[(build|setup) failed\]' "$output"; then
  exit "$status"
fi

command=()
for word; do
  [[ $word == ./* || $word == github.com/* ]] || command+=("$word")
done
echo "== once more: ${tests[*]}"
env "${command[@]}" -count=1 -run "^($(IFS='|'; echo "${tests[*]}"))\$" "${packages[@]}"
