#!/usr/bin/env bash
# The scripts of the page to play with are what their JSDoc says: `tsc --checkJs` over web/*.js, which share one scope, as in
# the page. Needs npm for the compiler, which goes into BUILD/browser.
. "$SRC/tests/cli/common.bash"
command -v npm >/dev/null || skip "no npm"
playwright

list() { printf '"%s", ' "$@" | sed 's/, $//'; }
check() {
    cat >tsconfig.json <<J
{"compilerOptions": {"noEmit": true, "allowJs": true, "checkJs": true, "target": "es2022", "lib": ["es2022", "dom", "dom.iterable"], "types": []},
 "files": [$(list "$@")]}
J
    "$browser/node_modules/.bin/tsc" -p tsconfig.json
}
check "$SRC/tests/browser/types.d.ts" "$SRC"/web/*.js || fail "the scripts of the page are not what their comments say"
# and it would say so
cp "$SRC"/web/*.js .
echo "show('three');" >>panel6.js
if check "$SRC/tests/browser/types.d.ts" ./*.js >said; then fail "a text in place of a number passes"; fi
[ "$(grep -c 'error TS' said)" = 1 ] && grep -q TS2345 said || fail "$(cat said)"
