#!/usr/bin/env bash
# Reduced SGD has the law of SGD in R^d: every task, form and setting, where `make check` tries a few.
set -euo pipefail
FINETTI_TEST_ALL=1 "$BUILD/tests/test_train_law"
