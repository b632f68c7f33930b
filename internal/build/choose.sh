#!/usr/bin/env bash
# Prints the smallest build that has what a configuration needs: quickstart, slim or full. choose.sh CONFIG
# It reads words, not YAML: whatever it does not understand needs the larger build, which has everything that the smaller one has.
set -euo pipefail

awk '
  BEGIN {
    # What only the full build has. It takes three times as long to compile as the slim one.
    full = "^(kafka|clickhouse|filter|transform|count|signal_?to_?metrics|k8s_?attributes|kubernetes_sd_configs)(/.*)?$"
    # What resource_detection detects in the slim build.
    detectors = "^(env|system)$"
    # The components of builder-config.quickstart.yaml.
    quickstart = "^(pprof|memory_limiter|profile_store)$"
    sections = "^(receivers|processors|connectors|exporters|extensions)$"
  }

  /^[ \t\r]*(#|$)/ || /^---[ \r]*$/ { next }
  !/["\047]/ { sub(/[ \t]#.*/, "") } # between quotes, # may be no comment

  # The quickstart needs that each component has a line of its own: below a section, with the indentation of its first component.
  /^[^ ]/ {
    known = match($0, /^[a-z]+:/)
    section = known && substr($0, 1, RLENGTH - 1) ~ sections
    indent = 0
    if (!known || section && $0 !~ /: *$/) build["slim"]
  }
  /^ / {
    match($0, /^ */)
    if (!indent) indent = RLENGTH
    type = $1
    sub(/[\/:].*/, "", type)
    if (!known || section && RLENGTH == indent && type !~ quickstart) build["slim"]
  }

  # The full build is needed for a key, wherever it is, for what follows `detectors`, in a block or in a line, and for a section
  # that is in another file.
  /^ *\? / { build["full"] } # a key in the long notation
  {
    gsub(/["\047]/, "")
    n = split($0, parts, /[][{},]|(^|[ \t])-[ \t]/)
    for (i = 1; i <= n; i++) {
      value = parts[i]
      if (match(value, /:([ \t\r]|$)/)) {
        key = substr(value, 1, RSTART - 1)
        value = substr(value, RSTART + 1)
        gsub(/[ \t]/, "", key)
        if (key ~ full) build["full"]
      }
      gsub(/[ \t\r]/, "", value)
      if (value == "") continue
      if (key == "detectors" && value !~ detectors || section && value == "$" && /^[a-z]/) build["full"]
    }
  }

  END { print "full" in build ? "full" : "slim" in build ? "slim" : "quickstart" }' "$1"
