#!/bin/bash
# What a newcomer does, from a clone to a first filter: the commands of README.md, on a
# system without PostgreSQL. Prints the seconds that each step takes, which decide
# nothing. Changes the system that it runs on, so it is for a chroot only, with a clone
# in the directory CLONE:
#   script/dev/chroot --share CLONE bookworm -- test/install/first_use.t
set -uo pipefail
export DEBIAN_FRONTEND=noninteractive
count=0 failed=0

# Takes a name, then a command that has to succeed, and tells how long it took.
check() {
    local name=$1 start=$EPOCHREALTIME status=0
    shift
    "$@" >/tmp/log 2>&1 </dev/null || status=$?
    count=$((count + 1))
    ((status == 0)) || { failed=$((failed + 1)); printf 'not '; }
    echo "ok $count - $name"
    awk -v name="$name" -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "# %5.1f s  %s\n", b - a, name }'
    ((status == 0)) || sed 's/^/# /' /tmp/log
}

# Prints the block of commands that follows the line of README.md that begins with $1.
commands() {
    awk -v start="$1" 'index($0, start) == 1 { found = 1 }
        found && /^    / { print; printed = 1 }
        found && printed && !/^    / { exit }' "$tree/README.md"
}

# A bare system has no sudo, asks before it installs, and has its own version of
# PostgreSQL.
adapted() {
    sed -e 's/\bsudo //; s/apt install/apt-get install -y --no-install-recommends/' -e "s/\b18\b/$major/g; s/-18\b/-$major/g"
}

# The first filter is that of README.md's first query.
first_filter() {
    local query
    query=$(sed -n '/^SELECT bloom_agg(name)/p' "$tree/README.md")
    [[ $query ]] || return 1
    runuser -u postgres -- psql -Xq -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION bloomtype'
    [[ $(runuser -u postgres -- psql -XAtc "$query") == t ]]
}

# As Debian's package does where services start.
start_cluster() {
    pg_lsclusters --no-header | grep -q . || pg_createcluster "$major" main
    pg_ctlcluster "$major" main start
}

[[ -d /bloomtype && -d /mnt/.git ]] || { echo "Bail out! this is not script/dev/chroot's chroot with a clone"; exit 1; }
tree=/tmp/clone
apt-get -q update >/dev/null
began=$EPOCHREALTIME
check "install git" apt-get install -y --no-install-recommends git
check "clone" git -c safe.directory='*' clone -q /mnt "$tree"
cd "$tree" || exit 1
check "install PostgreSQL" apt-get install -y --no-install-recommends postgresql
major=$(pg_lsclusters --no-header | awk '{ print $1; exit }')
[[ $major ]] || major=$(cd /usr/lib/postgresql && echo *)
check "start it" start_cluster
# The first command installs the compiler and the headers; the others build and install.
block=$(commands 'Replace 18 by' | adapted)
[[ $block == *install*$'\n'*make* ]] || { echo "Bail out! README.md does not say how to install from source"; exit 1; }
check "install what builds bloomtype" bash -ec "$(sed -n 1p <<<"$block")"
check "build and install bloomtype" bash -ec "$(sed 1d <<<"$block")"
check "make a first filter" first_filter
all=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }')
check "or script/demo" script/demo
echo "1..$count"
echo "# $((count - failed)) passed, $failed failed (from a clone to a first filter: $all)"
((failed == 0))
