#!/bin/sh
# Prints the first Python that is at least 3.11 and able to make an environment.
# Order: $PYTHON, python3 and its versioned names on PATH, then pyenv's versions.
set -u

fits() {
    "$1" - >/dev/null 2>&1 <<'PY'
import sys
import venv
assert (3, 11) <= sys.version_info[:2] < (3, 15)
import ensurepip
PY
}

for name in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python3.14 python; do
    [ -n "$name" ] || continue
    path=$(command -v "$name" 2>/dev/null) || continue
    if fits "$path"; then
        echo "$path"
        exit 0
    fi
done

# pyenv's own shims answer only for the versions that are switched on.
for version in 3.13 3.12 3.11; do
    for path in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version"*/bin/python; do
        if [ -x "$path" ] && fits "$path"; then
            echo "$path"
            exit 0
        fi
    done
done

if command -v uv >/dev/null 2>&1; then
    # uv brings a Python of its own when the machine has none that fits.
    echo "3.11"
    exit 0
fi

echo "minijax needs Python 3.11 or newer with the venv and ensurepip modules;" \
    "none was found. Install one (on Debian: python3-venv) or name it with" \
    "'make PYTHON=/path/to/python'." >&2
exit 1
