#!/bin/sh
# Runs counter.js, whose tests print TAP.
directory=$(dirname "$0")
exec node --test-reporter="$(realpath "$directory")/tap.js" "$directory/counter.js"
