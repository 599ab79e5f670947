#!/usr/bin/env bash
# Writes requirements/pins.txt anew: the newest versions that the oldest supported Python takes
# together, so that they exist for all. Usage: tools/lock.sh [PYTHON] (python3.11 if unsaid).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3.11}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install -q 'setuptools>=77'
"$scratch/venv/bin/pip" install -q --no-build-isolation -e host \
    -r requirements/bench.txt -r requirements/test.txt -r requirements/benchmark.txt
{
    echo "# Exact versions of everything that set-up installs. Written by tools/lock.sh."
    "$scratch/venv/bin/pip" freeze --all --exclude-editable | grep -vi '^pip=='
} > requirements/pins.txt
