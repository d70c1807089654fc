#!/bin/bash
# golden.t in databases of other encodings than UTF-8: text must hash there as its
# UTF-8 does, or where nobody knows what it is, as its bytes. Prints TAP; connects
# as psql does, as somebody who may create databases.
set -uo pipefail

golden=$(dirname "$0")/golden.t
for encoding in LATIN1 SQL_ASCII; do
    database=bloomtype_${encoding,,}_$$
    createdb --template=template0 --encoding="$encoding" --locale=C "$database" &&
        psql -Xq -d "$database" -c 'CREATE EXTENSION bloomtype' &&
        PGDATABASE=$database "$golden" || echo "not ok 0 - $encoding"
    dropdb --if-exists "$database"
done | awk '
    /^1\.\./ { plan += substr($0, 4); next }
    /^(not )?ok / { sub(/ok [0-9]+/, "ok " ++n) }
    { print }
    END { print "1.." plan + 0 }'
