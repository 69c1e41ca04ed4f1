"""Compiles what pytest imports with rewritten asserts, once and on all cores.

Each worker of a test run imports all test modules. Where nothing has compiled them
before, as in a new clone, each does it for itself.
"""

import importlib.metadata
import multiprocessing
from collections.abc import Iterator
from pathlib import Path

try:
    from _pytest.assertion import AssertionState, rewrite
    from _pytest.config import get_config
except ImportError:  # functions of pytest's own, which another pytest may lack
    AssertionState = rewrite = get_config = None

ROOT = Path(__file__).resolve().parents[2]


def compile_module(path: Path) -> bool:
    """Writes the compiled module where pytest looks for it; False if it is there."""
    config = get_config()
    folder = rewrite.get_cache_dir(path)
    compiled = folder / (path.name.removesuffix(".py") + rewrite.PYC_TAIL)
    if rewrite._read_pyc(path, compiled) is not None:
        return False
    digest, code = rewrite._rewrite_test(path, config)
    rewrite.try_makedirs(folder)
    state = AssertionState(config, "rewrite")
    return rewrite._write_pyc(state, code, digest, compiled)


def plugins() -> Iterator[Path]:
    """The modules of installed plugins of pytest, whose asserts it rewrites too."""
    for one in importlib.metadata.distributions():
        if one.entry_points.select(group="pytest11"):
            for file in one.files or ():
                if file.suffix == ".py":
                    yield Path(str(file.locate()))


def main() -> None:
    """These are functions of pytest's own: with another pytest each worker compiles."""
    tests = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("tests/**/conftest.py")]
    paths = sorted({*tests, *plugins()}, key=lambda path: -path.stat().st_size)
    try:
        with multiprocessing.Pool() as pool:
            pool.map(compile_module, paths, chunksize=4)
    except (AttributeError, TypeError) as error:
        print(f"each worker compiles the test modules: {error}")


if __name__ == "__main__":
    main()
