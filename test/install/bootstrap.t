#!/bin/bash
# What script/bootstrap leaves alone. Changes the system that it runs on, so it is
# for a chroot only: script/dev/chroot bookworm -- test/install/bootstrap.t
set -uo pipefail
export DEBIAN_FRONTEND=noninteractive
count=0 failed=0

# Takes a name, then a command that has to succeed.
check() {
    local name=$1
    shift
    count=$((count + 1))
    "$@" || { failed=$((failed + 1)); printf 'not '; }
    echo "ok $count - $name"
}

equal() {
    [[ $1 == "$2" ]] || { printf '# have %s\n# want %s\n' "$1" "$2"; return 1; }
}

apt() {
    apt-get -qy "$@" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }
}

version_of() {
    dpkg-query -W -f '${Version}' "$1"
}

[[ -d /bloomtype ]] || { echo "Bail out! this is not script/dev/chroot's chroot"; exit 1; }
# Services may start here, as they may where somebody runs it.
rm -f /usr/sbin/policy-rc.d

check "installs a server" script/bootstrap demo
server=$(dpkg-query -W -f '${Package}\n' 'postgresql-*' | grep -xE 'postgresql-[0-9]+')
major=${server#postgresql-}
check "without a cluster" equal "$(pg_lsclusters --no-header)" ""
check "and without a trace" test ! -e /etc/postgresql-common/createcluster.d

# A newer server is to be had.
old=$(version_of "$server")
sed -n 's|/debian/\? \(\S*\) |/debian-security \1-security |p' /etc/apt/sources.list >/etc/apt/sources.list.d/security.list
apt update
if [[ $(apt-cache madison "$server" | awk 'NR == 1 {print $3}') == "$old" ]]; then
    check "leaves an older server alone # skip there is no newer one" true
else
    apt remove "postgresql-server-dev-$major" libpq-dev
    before=$(dpkg-query -W)
    check "installs what is missing beside an older server" script/bootstrap demo
    check "leaves the others alone" equal "$(diff <(echo "$before") <(dpkg-query -W) | grep '^<')" ""
    check "and chooses the server's version" equal "$(version_of "postgresql-server-dev-$major")" "$old"
fi

# The server's version is to be had no more.
apt remove "postgresql-server-dev-$major" libpq-dev
sed -i "s/$old/&~/" /var/lib/dpkg/status
before=$(dpkg-query -W)
check "stops where a package must be upgraded" eval '! script/bootstrap demo 2>/tmp/said'
check "names it" grep -qF " $server from $old~ to " /tmp/said
check "and does nothing" equal "$(dpkg-query -W)" "$before"
echo "1..$count"
echo "# $((count - failed)) passed, $failed failed"
((failed == 0))
