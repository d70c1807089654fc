#!/bin/sh
# Two rounds of test/durability/crash.t, on a server of its own.
ROUNDS=2 exec "$(dirname "$0")/../durability/crash.t"
