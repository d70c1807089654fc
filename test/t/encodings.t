#!/bin/bash
# golden.t, and filters and counters of text, in databases of other encodings than
# UTF-8: text must have the hash of its UTF-8 form, or in SQL_ASCII of its bytes. Text
# without a form in UTF-8 must be an error. Prints TAP; connects as psql does, as a user
# who may create databases.
set -uo pipefail

golden=$(dirname "$0")/golden.t

# Runs a command in a database of the encoding $1.
within() {
    local encoding=$1 database=bloomtype_${1,,}_$$
    shift
    createdb --template=template0 --encoding="$encoding" --locale=C "$database" &&
        PGDATABASE=$database PGCLIENTENCODING=$encoding psql -Xq -c 'CREATE EXTENSION bloomtype' &&
        PGDATABASE=$database "$@" || echo "not ok 0 - $encoding"
    dropdb --if-exists "$database"
}

# Reads lines "EXPECTED EXPRESSION", EXPECTED being the value or the SQLSTATE.
expect() {
    local encoding=$1 expected expression got tests=0
    while read -r expected expression; do
        got=$(PGCLIENTENCODING=$encoding psql -XAtq -v VERBOSITY=sqlstate -c "SELECT $expression" 2>&1)
        if [[ ${got#ERROR:  } == "$expected" ]]; then
            echo "ok 0 - $encoding: $expression"
        else
            printf 'not ok 0 - %s: %s\n#   got %s, expected %s\n' "$encoding" "$expression" "$got" "$expected"
        fi
        tests=$((tests + 1))
    done
    echo "1..$tests"
}

# Runs a script in WIN1252 whose only output must be t.
expect_plan() {
    local got
    got=$(PGCLIENTENCODING=WIN1252 psql -XAtq 2>&1)
    [[ $got == t ]] && echo "ok 0 - statistics in WIN1252" || printf 'not ok 0 - statistics in WIN1252\n#   %s\n' "$got"
    echo "1..1"
}

{
    within LATIN1 "$golden"
    within SQL_ASCII "$golden"
    # Counters of text that is not ASCII. ä is E4 in LATIN1, C3 A4 in UTF-8.
    within LATIN1 expect LATIN1 <<'END'
t substr(bloom_counter_agg(chr(228))::bytea, 29) = substr(bloom_counter_agg('\xc3a4'::bytea)::bytea, 29)
t substr(bloom_level_agg(chr(228), 7)::bytea, 29) = substr(bloom_level_agg('\xc3a4'::bytea, 7)::bytea, 29)
3 bloom_count(bloom_add(bloom_create_counter(10), chr(228), 3), chr(228)::varchar)
t bloom_remove(bloom_add(bloom_create_counter(10), chr(228)), chr(228)) = bloom_create_counter(10)
END
    within SQL_ASCII expect SQL_ASCII <<'END'
t substr(bloom_counter_agg(chr(228))::bytea, 29) = substr(bloom_counter_agg('\xe4'::bytea)::bytea, 29)
t substr(bloom_level_agg(chr(228), 7)::bytea, 29) = substr(bloom_level_agg('\xe4'::bytea, 7)::bytea, 29)
3 bloom_count(bloom_add(bloom_create_counter(10), chr(228), 3), chr(228)::varchar)
t bloom_remove(bloom_add(bloom_create_counter(10), chr(228)), chr(228)) = bloom_create_counter(10)
END
    # In WIN1252 0x81 is no character, and 0x80 is the euro sign, E2 82 AC in UTF-8.
    within WIN1252 expect WIN1252 <<'END'
t substr(bloom_agg(chr(128))::bytea, 29) = substr(bloom_agg('\xe282ac'::bytea)::bytea, 29)
22P05 bloom_agg(chr(129))
22P05 bloom_agg('a'::text) @> chr(129)
t bloom_agg(convert_to(chr(129), 'WIN1252')) @> '\x81'::bytea
t substr(bloom_counter_agg(chr(128))::bytea, 29) = substr(bloom_counter_agg('\xe282ac'::bytea)::bytea, 29)
22P05 bloom_counter_agg(chr(129))
22P05 bloom_level_agg(chr(129), 2)
22P05 bloom_add(bloom_create_counter(10), chr(129))
22P05 bloom_remove(bloom_create_counter(10), chr(129))
22P05 bloom_count(bloom_counter_agg('a'::text), chr(129))
22P05 bloom_counter_agg('a'::text) @> chr(129)
END
    # The planner looks at common values that the query never reads.
    within WIN1252 expect_plan <<'END'
CREATE TABLE common AS SELECT i, CASE WHEN i < 100 THEN 'a' || i ELSE chr(129) END AS x FROM generate_series(1, 1000) AS i;
ANALYZE common;
SELECT count(*) = 1 FROM common WHERE i < 100 AND bloom_add(bloom_create(10), 'a5') @> x;
END
    # PostgreSQL converts from MULE_INTERNAL to some encodings, but not to UTF-8.
    [[ $(psql -XAtqc "SELECT pg_char_to_encoding('MULE_INTERNAL')") == -1 ]] ||
        within MULE_INTERNAL expect MULE_INTERNAL <<'END'
t substr(bloom_agg('a'::text)::bytea, 29) = substr(bloom_agg('a'::bytea)::bytea, 29)
42883 bloom_agg(convert_from('\x81e4', 'MULE_INTERNAL'))
42883 bloom_agg(convert_from('\x81e4', 'MULE_INTERNAL')::name)
42883 bloom_counter_agg(convert_from('\x81e4', 'MULE_INTERNAL'))
t bloom_agg(convert_to('a', 'MULE_INTERNAL')) @> '\x61'::bytea
t bloom_agg(5) @> 5
END
} | awk '
    /^1\.\./ { plan += substr($0, 4); next }
    /^(not )?ok / { sub(/ok [0-9]+/, "ok " ++n) }
    { print }
    END { print "1.." plan + 0 }'
