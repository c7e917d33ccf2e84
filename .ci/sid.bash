# A system of Debian sid, whose Swift is 6.2: the oldest that Cairn supports. Sourced by scripts in this folder, which need
# root. With an argument, the system is made in that directory. It is removed at the end.
cd "$(dirname "$0")/.."
export SWIFT_BACKTRACE=enable=no LC_ALL=C DEBIAN_FRONTEND=noninteractive
unset TMPDIR
mirror=http://deb.debian.org/debian

[ "$(id -u)" = 0 ] || { echo "only root may make a system for another Swift" >&2; exit 2; }
if [ $# -gt 0 ]; then mkdir -p "$1"; work=$(mktemp -d "$(cd "$1" && pwd)/XXXXXX"); else work=$(mktemp -d); fi
root=$work/sid
# Debootstrap mounts here, and may be interrupted.
remove() {
  kill $(jobs -p) 2>/dev/null || true
  wait
  umount -q "$root"/* 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap remove EXIT
trap 'exit 130' INT TERM

# A command that hangs is ended after an hour. It runs in the background, so that the script can be interrupted.
limited() {
  timeout -k 10 3600 "$@" &
  wait "$!"
}

step() {
  echo "::: $*"
  local began=$SECONDS status=0
  if [ "$(type -t "$1")" = function ]; then "$@" || status=$?; else limited "$@" || status=$?; fi
  echo "::: took $((SECONDS - began)) s"
  return "$status"
}

# Runs a command in the system. Its mounts and processes are in namespaces of their own, so they end with the command.
inside() {
  limited unshare --mount --pid --fork --kill-child bash -c '
    mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" || exit
    chroot "$0" env -C /cairn HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
    exit "$?"' "$root" "$@"
}

# Installs packages in the system. Shows what the command printed only if it fails.
install() { step inside "$@" >"$work/log" 2>&1 || { cat "$work/log"; return 1; }; }

# Makes the system, with Swift and these packages, and copies the sources to /cairn.
make_system() {
  if ! command -v debootstrap >/dev/null; then
    step apt-get update -q
    step apt-get install -y -q debootstrap
  fi
  step debootstrap --variant=minbase sid "$root" "$mirror" >"$work/log" || { cat "$work/log"; exit 1; }
  mkdir "$root/cairn"
  # A clock that is wrong is no reason to fail.
  step inside apt-get -o Acquire::Check-Valid-Until=false update -q
  install apt-get install -y -q --no-install-recommends \
    swiftlang git libc6-dev libstdc++-15-dev lld python3 diffutils e2fsprogs "$@"
  # Debian's package has the module _Testing_Foundation without its library, of which no test uses anything. And its
  # programs do not find their libraries.
  [ -e "$root$libraries/lib_Testing_Foundation.so" ] || step inside ar rc "$libraries/lib_Testing_Foundation.a"
  echo "$libraries" >"$root/etc/ld.so.conf.d/swift.conf"
  step inside ldconfig
  echo "::: installed:"
  inside dpkg-query -W swiftlang libc6-dev libstdc++-15-dev lld python3 "$@"
  inside swift --version 2>&1 | tee "$work/version"
  grep -q "Swift version 6\.2" "$work/version" || { echo "::: Debian sid has another Swift than 6.2" >&2; exit 2; }
  tar -c --exclude=.git --exclude='.build*' . | tar -x -C "$root/cairn"
}
libraries=/usr/libexec/swift/lib/swift/linux

# Runs a command that runs tests, in the system. Prints the failures, not what passed.
tests() {
  local status=0
  "$@" >"$work/tests" 2>&1 || status=$?
  [ "$status" = 0 ] || grep -a -v "^◇\|^✔" "$work/tests" | tail -n 200
  grep -a " skipped" "$work/tests" || true
  grep -a "Test run with" "$work/tests" || { echo "::: the tests did not end"; status=1; }
  return "$status"
}
