#!/usr/bin/env bash
# Runs `go build` with the given arguments after -C FOLDER, and says every few seconds how far it is if many packages are not in
# the build cache: compile.sh FOLDER OUTPUT [flag]... [package]
set -euo pipefail
go=${GO:-go} folder=$1 output=$2
shift 2

total=$("$go" -C "$folder" list -deps -f '{{if .Stale}}x{{end}}' "$@" | grep -c x) || true
if ((total < 30)); then
  exec "$go" -C "$folder" build -o "$output" "$@"
fi

echo "compiling $total packages for $(basename "$output")"
# `go build -v` prints the path of each package that it begins to compile. Everything else is for the reader.
"$go" -C "$folder" build -v -o "$output" "$@" 2>&1 | {
  count=0 shown=$SECONDS
  while true; do
    status=0
    IFS= read -r -t 3 line || status=$?
    if ((status == 0)); then
      if [[ $line =~ ^[A-Za-z0-9._~/-]+$ ]]; then ((count += 1)); else printf '%s\n' "$line"; fi
    elif ((status <= 128)); then # the end, not the timeout
      break
    fi
    if ((SECONDS - shown >= 3)); then
      echo "  $((count < total ? count : total)) of $total packages, $SECONDS s"
      shown=$SECONDS
    fi
  done
  echo "compiled in $SECONDS s"
}
