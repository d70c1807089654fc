# Sourced by the scripts beside it: finding and building for a PostgreSQL, and
# a private throwaway server. The server has its data and its only socket in a
# fresh directory under TMPDIR, which go away when the script ends, whatever
# ends it. PG_CONFIG chooses the PostgreSQL, by default the newest one under
# /usr/lib/postgresql. Every other PG* variable of the caller is dropped, so
# that no server but the private one can be reached by mistake. For the scripts
# that run others in a special way there are
#   BLOOMTYPE_WORK      the directory to use for all that, which then stays
#   BLOOMTYPE_CONF      a file of further settings for the server
#   BLOOMTYPE_POSTGRES  a program to start in place of postgres
# shellcheck shell=bash

for name in "${!PG@}"; do
    [[ $name == PG_CONFIG ]] || unset "$name"
done
unset name

# The server's user is to read what root makes.
umask 022

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

say() {
    printf '== %s\n' "$*"
}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# Prints the path of the pg_config to use, or nothing if there is none.
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

# The major version of the PostgreSQL that the pg_config $1 belongs to.
major_of() {
    "$1" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/'
}

# As use_pg_config, but makes a copy of that PostgreSQL below the directory $1 and
# goes over to it, so that what is installed there is nobody else's. A PostgreSQL
# finds its files from where its programs are.
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

# Makes $work, a directory that the server's user can reach and that
# remove_work will remove. A socket's path may have 107 characters.
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
    die "no temporary directory that the server could use"
}

remove_work() {
    if [[ ${work:-} ]]; then
        stop_server
        [[ $work == "${BLOOMTYPE_WORK:-}" ]] || rm -rf "$work"
    fi
}

# For scripts that count tests. What ends them, whatever that is, is to be
# trap tell_counts EXIT.
passed=0 failed=0

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

# The user the server runs as: never root, PostgreSQL refuses that.
server_user() {
    if ((EUID != 0)); then id -un; elif id postgres >/dev/null 2>&1; then echo postgres; else echo nobody; fi
}

as_server() {
    if ((EUID == 0)); then runuser -u "$(server_user)" -- "$@"; else "$@"; fi
}

# Copies the sources to $1, without what an earlier build may have left there.
copy_sources() {
    mkdir -p "$1"
    tar -C "$top" -c --exclude=./.git --exclude='*.o' --exclude='*.bc' --exclude='*.so' --exclude=./test/unit/build . |
        tar -C "$1" -x --no-same-owner
}

# Builds the extension outside the source tree, $work/src, in $work/build.
build() {
    copy_sources "$work/src"
    mkdir "$work/build"
    in_build -j "$(nproc)" all >"$work/build.log" 2>&1 || { cat "$work/build.log"; return 1; }
}

in_build() {
    make -s -C "$work/build" -f "$work/src/Makefile" PG_CONFIG="$PG_CONFIG" "$@"
}

install_extension() {
    make -s -C "$work/build" -f "$work/src/Makefile" PG_CONFIG="$PG_CONFIG" install \
        >"$work/install.log" 2>&1 || { cat "$work/install.log"; return 1; }
}

# Starts the server in $work/server. Afterwards psql and its kin reach it, as its
# superuser, through PGHOST and PGUSER.
start_server() {
    local server=$work/server
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

stop_server() {
    local server=$work/server
    [[ ! -e $server/data/postmaster.pid ]] ||
        (cd "$server" && as_server pg_ctl --pgdata=data --mode=immediate --wait --silent stop) || true
}
