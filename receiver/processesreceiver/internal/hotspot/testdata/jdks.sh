#!/usr/bin/env bash
# Copyright The otelcol-profiles Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fetches Debian's JDK 8, 11 and 21 into the folders 8, 11 and 21 of a folder, each as a file system with its libc: 300 MB to
# download, 1.4 GB on disk. It needs apt, dpkg and Debian's keys, and changes nothing outside of the folder.
#
#   jdks.sh /var/tmp/jdks && make e2e-processes JAVA_ROOTS='/var/tmp/jdks/8 /var/tmp/jdks/11 /var/tmp/jdks/21'
set -euo pipefail
folder=$(realpath -m "$1")
fetch() { # fetch JDK SUITE
  local root=$folder/$1 apt=$folder/apt-$1 package
  [ ! -e "$root/tmp" ] || return 0
  mkdir -p "$apt"/{state/lists/partial,cache/archives/partial} "$root/usr/lib/jvm"
  touch "$apt/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $2 main" > "$apt/sources.list"
  printf '%s "%s";\n' Dir::State "$apt/state" Dir::State::status "$apt/status" Dir::Cache "$apt/cache" \
    Dir::Etc::sourcelist "$apt/sources.list" Dir::Etc::sourceparts - APT::Sandbox::User root > "$apt/apt.conf"
  export APT_CONFIG=$apt/apt.conf
  apt-get -qq update
  (cd "$apt" && apt-get -qq download "openjdk-$1-jdk-headless" "openjdk-$1-jre-headless" libc6 libgcc-s1 libstdc++6 zlib1g)
  for package in "$apt"/*.deb; do dpkg --extract "$package" "$root"; done
  [ -e "$root/lib" ] || ln -s usr/lib "$root/lib"
  [ -e "$root/lib64" ] || ln -s usr/lib64 "$root/lib64"
  rm -rf "$apt"
  mkdir -p "$root/proc"
  install -d -m 1777 "$root/tmp"
}
fetch 8 sid
fetch 11 bullseye
fetch 21 trixie
