#!/usr/bin/env bash
# Takes uPlot, which draws curves of the page to play with, from npm into third_party/uplot:
#
#     tools/update_uplot.sh 1.6.32      that version
#     tools/update_uplot.sh --check     are the files those of npm? Exits with 1 if not
set -euo pipefail
folder=$(cd "$(dirname "$0")/../third_party/uplot" && pwd)
[ $# = 1 ] || { sed -n '2,5p' "$0" >&2; exit 2; }
version=$1
if [ "$version" = --check ]; then
    # The minified file begins with the version: "/*! ... (v1.6.32) */".
    version=$(head -c 300 "$folder/uPlot.iife.min.js" | sed -n 's/.*(v\([0-9.]*\)).*/\1/p')
    [ -n "$version" ] || { echo "no version in $folder/uPlot.iife.min.js" >&2; exit 1; }
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent "uplot@$version" >/dev/null && tar xzf uplot-*.tgz)
for file in dist/uPlot.iife.min.js dist/uPlot.min.css LICENSE; do
    if [ "$1" = --check ]; then
        cmp "$work/package/$file" "$folder/${file##*/}" || exit 1
    else
        cp "$work/package/$file" "$folder/"
    fi
done
echo "uPlot $version"
