#!/bin/sh
# TypeScript accepts and refuses what types.ts says.
cd "$(dirname "$0")/.." || exit 1
echo 1..1
if output=$(node node_modules/typescript/bin/tsc --project test); then
    echo "ok 1 - types.ts"
else
    echo "not ok 1 - types.ts"
    echo "$output" | sed 's/^/# /'
fi
