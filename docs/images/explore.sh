#!/usr/bin/env bash
# Makes docs/images/explore.png, the second panel of the page to play with: the picture that tests/all/explore.sh leaves in
# build/browser. Run from the project's root after that test.
cp build/browser/explore.png docs/images/explore.png
