#!/usr/bin/env bash
# finetti explore: the page as it was built, or how to get it. tests/all/explore.sh opens it in a browser.
. "$SRC/tests/cli/common.bash"

refuses 2 "explore" explore page.html
if [ -e "$BUILD/web/index.html" ]; then
    accepts explore
    grep -q "default-src 'none'" explore.html || fail "the page has no policy"
    grep -q 'class="panel"' explore.html || fail "the page has no panels"
    mkdir folder
    accepts explore --out folder
    prints folder/explore.html
    cmp explore.html folder/explore.html
    refuses 1 "nowhere" explore --out nowhere/page.html
else
    refuses 1 "make web" explore
fi
[ ! -e nowhere ]
