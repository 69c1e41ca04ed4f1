"""Write the expected texts of the golden corpus from JAX, or check them.

    python tests/golden/make.py            writes tests/golden/expected/<group>.txt
    python tests/golden/make.py --check    exits 1 if JAX now prints anything else

The corpus is defined by one release, EXPECTED_JAX; other releases are refused.
"""

import argparse
import difflib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.golden.normalise import normalise  # noqa: E402
from tests.golden.programs.registry import all_programs, jaxpr_text  # noqa: E402

EXPECTED_JAX = "0.10.2"
EXPECTED = pathlib.Path(__file__).resolve().parent / "expected"


def render(jax) -> dict[str, str]:
    """The content of each expected file, by group, as this JAX prints it."""
    blocks: dict[str, list[str]] = {}
    for entry in all_programs():
        text = normalise(jaxpr_text(entry, jax))
        heading = f"# {entry.name} ({entry.kind})"
        blocks.setdefault(entry.group, []).append(f"{heading}\n{text}\n")
    header = f"jax {jax.__version__}; made by tests/golden/make.py; do not edit\n"
    return {group: "\n".join([header, *items]) for group, items in blocks.items()}


def read_expected() -> dict[str, str]:
    """The committed text of each program, by `group/name`."""
    texts: dict[str, str] = {}
    for path in sorted(EXPECTED.glob("*.txt")):
        for block in ("\n" + path.read_text()).split("\n# ")[1:]:
            heading, _, text = block.partition("\n")
            texts[f"{path.stem}/{heading.split()[0]}"] = text.rstrip("\n")
    return texts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    options = parser.parse_args()
    import jax

    if jax.__version__ != EXPECTED_JAX:
        print(f"the corpus belongs to jax {EXPECTED_JAX}, this is {jax.__version__}")
        return 2
    contents = render(jax)
    changed = 0
    stale = {path.stem for path in EXPECTED.glob("*.txt")} - set(contents)
    for group, content in contents.items():
        path = EXPECTED / f"{group}.txt"
        old = path.read_text() if path.exists() else ""
        if old == content:
            continue
        changed += 1
        if options.check:
            name = f"{group}.txt"
            lines = difflib.unified_diff(
                old.splitlines(), content.splitlines(), name, name, lineterm=""
            )
            print("\n".join(lines))
        else:
            path.write_text(content)
    for group in sorted(stale):
        print(f"{group}.txt belongs to no group of programs")
        if not options.check:
            (EXPECTED / f"{group}.txt").unlink()
    count = len(all_programs())
    verb = "differ" if options.check else "written"
    print(f"{count} programs, {len(contents)} files, {changed} {verb}")
    return 1 if options.check and (changed or stale) else 0


if __name__ == "__main__":
    sys.exit(main())
