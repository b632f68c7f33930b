#!/usr/bin/env bash
# Prints the smallest build that has what a configuration needs: quickstart, slim or full. choose.sh CONFIG
set -euo pipefail

# What only the full build has. It takes three times as long to compile as the slim one.
full='^ *(kafka|clickhouse|filter|transform|count|signal_?to_?metrics|k8s_?attributes)(/[^ :]*)?:|kubernetes_sd_configs|detectors:.*(aks|azure|ec2|ecs|eks|gcp|k8s)'
# The components of builder-config.quickstart.yaml.
quickstart='pprof|memory_limiter|profile_store'

# types prints the type of each component, and ? where a section is written in a way that is not understood here.
types() {
  awk '
    /^[a-z]/ { section = /^(receivers|processors|connectors|exporters|extensions):/; indent = 0
               if (section && $0 !~ /^[a-z]+: *(#.*)?$/) print "?" }
    section && /^ / && $1 !~ /^#/ {
      match($0, /^ */)
      if (!indent) indent = RLENGTH
      if (RLENGTH == indent) { sub(/[\/:].*/, "", $1); print $1 }
    }' "$1"
}

if grep -qE "$full" "$1"; then
  echo full
elif types "$1" | grep -qvxE "$quickstart"; then
  echo slim
else
  echo quickstart
fi
