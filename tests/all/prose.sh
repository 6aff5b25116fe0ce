# Spelling and style of what people read: README, guides, help, docstrings, headers, messages. Words that are right and in no
# dictionary go into tests/prose/words.txt, phrases that nobody should meet into tests/prose/phrases.txt.
set -eu
. "$SRC/tests/cli/common.bash"
prose() { "$PYTHON" "$SRC/tests/prose/prose.py" "$@"; }
cd "$SRC"
pages="README.md CONTRIBUTING.md python/README.md $(echo docs/*.md)"
help=$BUILD/tests/all_help.txt
{
    "$FINETTI"
    "$FINETTI" help tasks
    "$FINETTI" complete | while read -r command; do "$FINETTI" help "$command"; done
} >"$help"

# shellcheck disable=SC2086 # names of files without spaces
codespell --ignore-words-list=nd,dout,iif $pages CHANGELOG.md docs/man/finetti.1 studies/*.yaml examples python/finetti include cli src "$help" ||
    fail "codespell"
# shellcheck disable=SC2086
prose words tests/prose/words.txt $pages "$help" || fail "these words are in no dictionary"
# shellcheck disable=SC2046,SC2086
prose phrases tests/prose/phrases.txt $pages docs/man/finetti.1 "$help" studies/*.yaml python/finetti/*.py include/finetti/*.h \
    $(find cli src web bench tools examples -name '*.[ch]' -o -name '*.js' -o -name '*.html' -o -name '*.py' -o -name '*.yaml') || fail "say it in plain words"
# A sentence has at most 30 words; how long they are is printed.
# shellcheck disable=SC2086
prose sentences 30 $pages "$help" >"$work/lengths" || { cat "$work/lengths" && fail "sentences are too long"; }
tail -n 1 "$work/lengths"

# Each of the checks finds what is wrong.
cd "$BUILD/tests"
echo 'The moddel says which token decided, that is qwertish, and goes on and on and on and on and on and on and on and on and on and on and on and on and on and on.' >bad.md
! prose words "$SRC/tests/prose/words.txt" bad.md >found || fail "a word was not seen"
grep -q qwertish found && grep -q moddel found
! prose phrases "$SRC/tests/prose/phrases.txt" bad.md >found || fail "a phrase was not seen"
! prose sentences 30 bad.md >found || fail "a long sentence was not seen"
! echo 'recieve' | codespell - >/dev/null || fail "codespell found nothing"
