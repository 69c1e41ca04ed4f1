#!/bin/sh
# Makes or refreshes an environment: environment.sh FOLDER EXTRAS
# for example: environment.sh .venv lab,test
# uv does it when present (and falls back to pip when it cannot reach what it needs).
set -eu
folder=$1
extras=$2
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
python=$(sh scripts/find_python.sh)

with_uv() {
    command -v uv >/dev/null 2>&1 || return 1
    [ -x "$folder/bin/python" ] || uv venv --quiet --seed --python "$python" "$folder" \
        || return 1
    uv pip install --quiet --python "$folder/bin/python" \
        --constraint constraints.txt --editable ".[$extras]" || return 1
}

with_pip() {
    [ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
        --no-compile --constraint constraints.txt --editable ".[$extras]"
}

# pip would compile the modules one by one, uv not at all; here all cores do it. Some
# packages contain files for other versions of Python, which cannot be compiled.
compile_modules() {
    "$folder/bin/python" -m compileall -qq -j 0 "$folder"/lib/python*/site-packages \
        >/dev/null 2>&1 || true
}

echo "environment: $folder, with $python (the first time takes a few minutes)"
if with_uv; then
    echo "environment: ready, made by uv"
else
    with_pip
    echo "environment: ready"
fi
compile_modules
