#!/usr/bin/env bash
# Reduced SGD has the law of SGD in R^d: every task, form and setting, where `make check` tries a few.
. "$SRC/tests/cli/common.bash"
FINETTI_TEST_SIZE=full "$BUILD/tests/test_train" test_train_law
