#!/usr/bin/env bash
# Debian packages of the tree as it is committed, in the folder that is given: bash packaging/deb.sh OUT
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$1
version=$(sed -n 's/^#define FIN_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)$/\2/p' include/finetti/base.h | paste -sd.)
rm -rf "$out"
mkdir -p "$out/finetti-$version"
git ls-files -z | xargs -0 cp --parents -t "$out/finetti-$version"
mv "$out/finetti-$version/packaging/debian" "$out/finetti-$version/debian"
cd "$out/finetti-$version"
# What is fetched here is nothing: tools/setup.sh has installed what the build needs.
dpkg-buildpackage -b -us -uc -d >"$out/build.log" 2>&1 || { tail -n 30 "$out/build.log"; exit 1; }
cd ..
rm -rf "finetti-$version"
lintian --no-tag-display-limit --fail-on error ./*.changes
ls -- *.deb
