#!/usr/bin/env bash
# Runs every check after set-up: ruff, mypy, then pytest with the arguments given (--lint: without pytest).
# All of them run even where one fails; the exit code is that of the first that failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
# As on a plain machine: these two hide what is not flushed and what is not compiled.
unset PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE
failed=0
step() {
    echo "== $*" >&2
    "$@"
    local code=$?
    if ((code != 0 && failed == 0)); then failed=$code; fi
}

step .venv/bin/ruff check .
step .venv/bin/mypy
if [[ ${1:-} != --lint ]]; then
    # Most tests wait for a run of a second: four at a time on two cores, each file in one process.
    # What meets other programs in real time may miss a beat on a busy machine: it gets a second and a
    # third try, and the closing line counts them ("rerun"). A real fault fails three times.
    step .venv/bin/pytest -n 4 --dist loadfile --reruns 2 --reruns-delay 1 "$@"
fi
if ((failed)); then echo "make test: failed, see above" >&2; fi
exit $failed
