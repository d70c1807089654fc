# What the scripts share: --help, builds, a private server, and counts of tests.
#
# The server keeps its data and its only socket in a new directory under TMPDIR,
# which is removed whenever the script ends. PG_CONFIG chooses the PostgreSQL, by
# default the newest one in /usr/lib/postgresql. Scripts that run other scripts set
#   BLOOMTYPE_WORK      the directory to use instead, which is then kept
#   BLOOMTYPE_CONF      a file of additional server settings
#   BLOOMTYPE_POSTGRES  a program to start instead of postgres
# shellcheck shell=bash

# The comment at the top of a script is its help. Its first paragraph is the usage.
case ${1:-} in
-h | --help)
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit
    ;;
esac

# Ends the script because of wrong usage, which the message describes.
usage() {
    complain "$@"
    sed -n '2,/^#$/s/^# //p' "$0" >&2
    echo "See $0 --help" >&2
    exit 2
}

# No psql can reach another server by mistake.
for name in "${!PG@}"; do
    [[ $name == PG_CONFIG ]] || unset "$name"
done
unset name

# The server's user reads what root creates.
umask 022

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

say() {
    printf '== %s\n' "$*"
}

complain() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
}

die() {
    complain "$@"
    exit 1
}

# Prints the path of the pg_config to use, or nothing.
find_pg_config() {
    if [[ ${PG_CONFIG:-} ]]; then
        command -v "$PG_CONFIG" || echo "$PG_CONFIG"
    else
        printf '%s\n' /usr/lib/postgresql/*/bin/pg_config | sort -V | sed -n '$p' | grep -v '\*' || true
    fi
}

# Sets PG_CONFIG and puts its programs first in PATH.
use_pg_config() {
    PG_CONFIG=$(find_pg_config)
    [[ -x $PG_CONFIG ]] || die "no pg_config found; set PG_CONFIG"
    PATH=$("$PG_CONFIG" --bindir):$PATH
    export PG_CONFIG PATH
}

# Prints the major version of the PostgreSQL of the pg_config $1.
major_of() {
    "$1" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/'
}

# Copies that PostgreSQL to the directory $1 and uses the copy, so that installing the
# extension changes no other server. PostgreSQL finds its files relative to its programs.
copy_postgres() {
    local option path copy
    use_pg_config
    mkdir -p "$1"
    copy=$(cd "$1" && pwd -P)
    for option in --bindir --pkglibdir --sharedir --includedir; do
        path=$("$PG_CONFIG" "$option")
        mkdir -p "$copy$path"
        cp -a "$path/." "$copy$path"
    done
    PG_CONFIG=$copy$("$PG_CONFIG" --bindir)/pg_config
    use_pg_config
    [[ $("$PG_CONFIG" --pkglibdir) == "$copy"/* ]] || die "this PostgreSQL cannot be copied"
}

# Creates $work, a directory that the server's user can reach and remove_work removes.
# The path of a socket has at most 107 characters.
make_work() {
    local parent
    if [[ ${BLOOMTYPE_WORK:-} ]]; then
        work=$BLOOMTYPE_WORK
        mkdir -p "$work"
        chmod 755 "$work"
        return
    fi
    for parent in "${TMPDIR:-/tmp}" /tmp /var/tmp; do
        work=$(mktemp -d "$parent/bloomtype.XXXXXX") || continue
        chmod 755 "$work"
        if ((${#work} < 80)) && as_server test -x "$work"; then
            return
        fi
        rmdir "$work"
    done
    work=
    die "no temporary directory that the server can use"
}

remove_work() {
    if [[ ${work:-} ]]; then
        stop_servers
        [[ $work == "${BLOOMTYPE_WORK:-}" ]] || rm -rf "$work"
    fi
}

# A script that counts tests says "trap tell_counts EXIT".
passed=0 failed=0

# Adds the assertions in a file of TAP. A bad exit status $1 is at least one failure.
count_tap() {
    local good bad
    good=$(grep -cE '^ok [0-9]' "$2") || true
    bad=$(grep -cE '^not ok [0-9]' "$2") || true
    (($1 == 0 || bad > 0)) || bad=1
    passed=$((passed + good)) failed=$((failed + bad))
}

# Runs a command that prints TAP, shows its output and counts the assertions.
tap() {
    local status=0
    "$@" 2>&1 | tee "$work/log" || status=$?
    count_tap "$status" "$work/log"
}

# Adds the counts in the last line of script/test's output, and sets $result to it. A
# bad exit status $1 is at least one failure.
count_result() {
    result=$(tail -n 1 "$2")
    if [[ $result =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
        (($1 == 0 || BASH_REMATCH[2] > 0)) || failed=$((failed + 1))
    else
        result="no result" failed=$((failed + 1))
    fi
}

tell_counts() {
    local status=$?
    ((status == 0 || failed > 0)) || failed=1
    remove_work
    echo "$passed passed, $failed failed"
    ((failed == 0 && passed > 0)) || exit 1
}

trap remove_work EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Prints the user that runs the server. PostgreSQL refuses to run as root.
server_user() {
    if ((EUID != 0)); then id -un; elif id postgres >/dev/null 2>&1; then echo postgres; else echo nobody; fi
}

as_server() {
    if ((EUID == 0)); then runuser -u "$(server_user)" -- "$@"; else "$@"; fi
}

# Copies the sources to $1, without the products of earlier builds.
copy_sources() {
    mkdir -p "$1"
    tar -C "$top" -c --exclude=./.git --exclude='*.o' --exclude='*.bc' --exclude='*.so' --exclude='*.d' --exclude=./test/unit/build --exclude=./test/fuzz/build \
        --exclude=node_modules . |
        tar -C "$1" -x --no-same-owner
}

# Copies the sources to $work/src and builds them in $work/build.
build() {
    copy_sources "$work/src"
    mkdir "$work/build"
    in_build -j "$(nproc)" all >"$work/build.log" 2>&1 || { cat "$work/build.log"; return 1; }
}

in_build() {
    make -s -C "$work/build" -f "$work/src/Makefile" PG_CONFIG="$PG_CONFIG" "$@"
}

install_extension() {
    in_build install >"$work/install.log" 2>&1 || { cat "$work/install.log"; return 1; }
}

# Starts the server in $work/server. Client programs then connect to it as its superuser.
start_server() {
    start_server_in server
}

start_server_in() {
    local server=$work/$1
    mkdir "$server"
    chown "$(server_user)" "$server"
    (
        cd "$server"
        as_server initdb --no-sync --pgdata=data --username=postgres --auth=trust \
            --encoding=UTF8 --locale=C.UTF-8 >initdb.log 2>&1
    ) || { cat "$server/initdb.log"; die "initdb failed"; }
    cat >>"$server/data/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$server'
fsync = off
full_page_writes = off
shared_buffers = 256MB
max_wal_size = 8GB
END
    [[ ! ${BLOOMTYPE_CONF:-} ]] || cat "$BLOOMTYPE_CONF" >>"$server/data/postgresql.conf"
    (
        cd "$server"
        as_server pg_ctl --pgdata=data --log=log --wait --timeout=300 --silent \
            ${BLOOMTYPE_POSTGRES:+-p "$BLOOMTYPE_POSTGRES"} start
    ) || { cat "$server/log"; die "the server did not start"; }
    export PGHOST=$server PGPORT=5432 PGUSER=postgres PGDATABASE=postgres PGCLIENTENCODING=UTF8
}

stop_servers() {
    local pid
    for pid in "$work"/*/data/postmaster.pid; do
        [[ ! -e $pid ]] ||
            (cd "${pid%/data/*}" && as_server pg_ctl --pgdata=data --mode=immediate --wait --silent stop) || true
    done
}
