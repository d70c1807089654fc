# What the scripts share: --help, builds, a private server, and counts of tests.
#
# The server keeps its data and its only socket in a new directory under TMPDIR,
# which is removed whenever the script ends. PG_CONFIG chooses the PostgreSQL, by
# default the newest one in /usr/lib/postgresql. Scripts that run other scripts set
#   BLOOMTYPE_WORK      the directory to use instead, which is then kept
#   BLOOMTYPE_CONF      a file of additional server settings
#   BLOOMTYPE_POSTGRES  a program to start instead of postgres
#   BLOOMTYPE_BUILT     a $work whose copy of PostgreSQL, which PG_CONFIG then names, has
#                       the extension: the script neither copies nor builds
# shellcheck shell=bash

if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
    echo "$0 needs bash 4.4 or later, and this is $BASH_VERSION." \
        "On macOS: brew install bash, and then \"\$(brew --prefix)/bin/bash $0\"" >&2
    exit 1
fi

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

has() {
    command -v "$1" >/dev/null 2>&1
}

# Can this system install Debian's packages?
has_apt() {
    has apt-get && has dpkg-query
}

# Prints the number of processors. macOS has no nproc.
processors() {
    nproc 2>/dev/null || getconf _NPROCESSORS_ONLN
}

# Prints the path of the pg_config to use, or nothing. On Debian, pg_config in PATH may
# come without a server.
find_pg_config() {
    local found
    if [[ ${PG_CONFIG:-} ]]; then
        command -v "$PG_CONFIG" || echo "$PG_CONFIG"
        return
    fi
    found=$(printf '%s\n' /usr/lib/postgresql/*/bin/pg_config | sort -V | sed -n '$p' | grep -v '\*') || true
    [[ $found ]] || has_apt || found=$(command -v pg_config) || true
    [[ ! $found ]] || echo "$found"
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

# What copy_postgres copies of a directory that may have other programs and headers, too.
server_programs=(postgres postmaster initdb 'pg*' psql {create,drop,vacuum,reindex,cluster}db {create,drop}user
    ecpg oid2name vacuumlo)
client_headers=('libpq*' 'pg_config*.h' postgres_ext.h)

# Copies that PostgreSQL to the directory $1 and uses the copy, so that installing the
# extension changes no other server. PostgreSQL finds its files relative to its programs.
copy_postgres() {
    local option path pattern file copy
    local -a names
    use_pg_config
    [[ ! ${BLOOMTYPE_BUILT:-} ]] || return 0
    mkdir -p "$1"
    copy=$(cd "$1" && pwd -P)
    for option in --bindir --includedir --pkglibdir --sharedir --pkgincludedir --includedir-server; do
        path=$("$PG_CONFIG" "$option")
        mkdir -p "$copy$path"
        case $option in
        --bindir) names=("${server_programs[@]}") ;;
        --includedir) names=("${client_headers[@]}") ;;
        *) names=(.) ;;
        esac
        for pattern in "${names[@]}"; do
            # shellcheck disable=SC2231  # expands the pattern
            for file in "$path"/$pattern; do
                [[ ! -e $file ]] || cp -pPR "$file" "$copy$path"
            done
        done
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

# What else a script has started.
stop_jobs() {
    :
}

remove_work() {
    if [[ ${work:-} ]]; then
        stop_jobs
        stop_servers
        [[ $work == "${BLOOMTYPE_WORK:-}" ]] || rm -rf "$work"
    fi
}

# A script that counts tests says "trap tell_counts EXIT".
passed=0 failed=0 skipped=

# Adds the assertions in a file of TAP. A bad exit status $1 is at least one failure.
count_tap() {
    local good bad
    good=$(grep -E '^ok [0-9]' "$2" | grep -cvE '^ok [0-9]+ # SKIP ') || true
    skipped+=$(sed -nE 's/^ok [0-9]+ # SKIP /; skipped: /p' "$2")
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
    echo "$passed passed, $failed failed${skipped//$'\n'/}"
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
    if ((EUID != 0)); then
        "$@"
    elif has runuser; then
        runuser -u "$(server_user)" -- "$@"
    else
        sudo -u "$(server_user)" -- "$@"
    fi
}

# Unpacks PostgreSQL's newest available source package of the major version $2 in $1/source;
# fails if there is none. Uses a private apt configuration with the source packages of this
# machine's archives.
fetch_source() {
    local dir=$1 major=$2 apt=$1/apt file source_version
    [[ ! -e $dir/source/configure ]] || return 0
    rm -rf "$apt" "$dir/source"
    mkdir -p "$apt"/{parts,lists/partial,archives/partial}
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [[ ! -e $file ]] || sed 's/^deb /deb-src /' "$file" >>"$apt/sources.list"
    done
    for file in /etc/apt/sources.list.d/*.sources; do
        [[ ! -e $file ]] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$apt/parts/${file##*/}"
    done
    cat >"$apt/conf" <<END
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "$apt/parts";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt";
APT::Sandbox::User "";
END
    (
        export APT_CONFIG=$apt/conf
        cd "$apt"
        apt-get -q update >log 2>&1 || { cat log; exit 1; }
        # An archive can list a package that its mirror does not have.
        for source_version in $(apt-cache showsrc --only-source "postgresql-$major" |
            sed -n 's/^Version: //p' | sort -urV); do
            say "Fetching the source of postgresql-$major $source_version"
            if apt-get -q source --download-only "postgresql-$major=$source_version" >log 2>&1; then
                dpkg-source -x ./*.dsc "$dir/source.new" >log 2>&1 || { cat log; exit 1; }
                exit 0
            fi
            cat log
        done
        exit 1
    ) || { complain "apt has no source of postgresql-$major"; return 1; }
    mv "$dir/source.new" "$dir/source"
    rm -rf "$apt"
}

# Copies the sources to $1, without the products of earlier builds. Of sources that are
# there it copies those that differ, and removes those that are gone, so that make builds
# what changed.
copy_sources() {
    local difference directory file
    local -a products=('*.o' '*.bc' '*.d' '*.so' '*.dylib' node_modules __pycache__)
    rm -rf "$1.new"
    mkdir -p "$1.new"
    # Without -m, a file that is older than what make built of another version would not count as changed.
    tar -C "$top" -cf - "${products[@]/#/--exclude=}" --exclude=./.git --exclude=./results --exclude=./test/unit/build \
        --exclude=./test/fuzz/build . | tar -C "$1.new" -xmf - --no-same-owner
    if [[ ! -e $1 ]]; then
        mv "$1.new" "$1"
        return
    fi
    LC_ALL=C diff -rq "${products[@]/#/--exclude=}" "$1" "$1.new" >"$1.differences" || true
    while IFS= read -r difference; do
        if [[ $difference =~ ^"Only in $1"(.new)?(/[^:]*)?": "(.*)$ ]]; then
            directory=${BASH_REMATCH[2]} file=${BASH_REMATCH[3]}
            [[ $directory/$file != /test/@(unit|fuzz)/build ]] || continue
            if [[ ${BASH_REMATCH[1]} ]]; then
                mv "$1.new$directory/$file" "$1$directory/"
            else
                rm -rf "${1:?}$directory/$file"
            fi
        elif [[ $difference =~ ^"Files $1/"(.*)" and $1.new/"(.*)" differ"$ && ${BASH_REMATCH[1]} == "${BASH_REMATCH[2]}" ]]; then
            mv -f "$1.new/${BASH_REMATCH[1]}" "$1/${BASH_REMATCH[1]}"
        else
            rm -rf "$1"
            mv "$1.new" "$1"
            break
        fi
    done <"$1.differences"
    rm -rf "$1.new"
}

# Copies the sources to $work/src and builds them in $work/build, or what changed.
build() {
    if [[ ${BLOOMTYPE_BUILT:-} ]]; then
        ln -s "$BLOOMTYPE_BUILT/src" "$BLOOMTYPE_BUILT/build" "$work"
        return
    fi
    copy_sources "$work/src"
    # A change of flags changes all. make does not see that a file is gone.
    [[ ! $work/src/Makefile -nt $work/build ]] || rm -rf "$work/build"
    mkdir -p "$work/build"
    rm -f "$work/build/bloomtype".{so,dylib}
    in_build -j "$(processors)" all >"$work/build.log" 2>&1 || { cat "$work/build.log"; return 1; }
}

in_build() {
    make -s -C "$work/build" -f "$work/src/Makefile" PG_CONFIG="$PG_CONFIG" "$@"
}

install_extension() {
    [[ ! ${BLOOMTYPE_BUILT:-} ]] || return 0
    in_build install >"$work/install.log" 2>&1 || { cat "$work/install.log"; return 1; }
}

# Starts the server in $work/server. Client programs then connect to it as its superuser.
start_server() {
    start_server_in server
}

# Its settings are in a file of their own, so that a server whose data are there already gets those of this run.
start_server_in() {
    local server=$work/$1 locale=C
    mkdir -p "$server"
    ! locale -a 2>/dev/null | grep -iqxE 'C\.utf-?8' || locale=C.UTF-8
    if [[ ! -e $server/data ]]; then
        chown "$(server_user)" "$server/"
        (
            cd "$server"
            as_server initdb --no-sync --pgdata=data --username=postgres --auth=trust \
                --encoding=UTF8 --locale="$locale" >initdb.log 2>&1
        ) || { cat "$server/initdb.log"; die "initdb failed"; }
        echo "include '../settings.conf'" >>"$server/data/postgresql.conf"
    fi
    cat >"$server/settings.conf" <<END
listen_addresses = ''
unix_socket_directories = '$server'
fsync = off
full_page_writes = off
shared_buffers = 256MB
max_wal_size = 8GB
max_prepared_transactions = 10
END
    [[ ! ${BLOOMTYPE_CONF:-} ]] || cat "$BLOOMTYPE_CONF" >>"$server/settings.conf"
    (
        cd "$server"
        # The server would take it for the encoding of its parallel workers.
        unset PGCLIENTENCODING
        as_server pg_ctl --pgdata=data --log=log --wait --timeout=300 --silent \
            ${BLOOMTYPE_POSTGRES:+-p "$BLOOMTYPE_POSTGRES"} start
    ) || { cat "$server/log"; die "the server did not start"; }
    connect_to "$1"
}

# Client programs then connect to the server in $work/$1.
connect_to() {
    export PGHOST=$work/$1 PGPORT=5432 PGUSER=postgres PGDATABASE=postgres PGCLIENTENCODING=UTF8
}

# Stops the server in the directory $1, in a mode of pg_ctl.
stop_server() {
    (cd "$1" && as_server pg_ctl --pgdata=data --mode="${2:-immediate}" --wait --silent stop) || true
}

# Stops the servers in these directories, if they are servers.
stop_servers_in() {
    local home
    for home in "$@"; do
        [[ ! -e $home/data/postmaster.pid ]] || stop_server "$home"
    done
}

# Stops those that interrupted tests have left in their directories for temporary files.
stop_servers_of_tests() {
    stop_servers_in "$work"/tmp/*/*
}

stop_servers() {
    stop_servers_in "$work"/*
    stop_servers_of_tests
}
