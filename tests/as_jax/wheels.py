"""Libraries for JAX: their wheels in a folder, and the programs that use them.

Nothing of jax is installed beside them: whether `import jax` is jax or minijax is
decided by how a program is started.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "libraries"

# Of each program in libraries/: the wheels that it needs. The first is the library.
# A later fastprogress imports a web framework; TensorFlow Probability has been adapted
# to today's jax in its nightly wheels alone.
FLAX = ["flax", "optax", "msgpack", "rich", "treescope", "PyYAML", "orbax-checkpoint"]
FLAX += ["absl-py", "etils", "nest_asyncio", "humanize", "simplejson", "tensorstore"]
FLAX += ["markdown-it-py", "mdurl", "pygments", "importlib_resources", "zipp", "fsspec"]
FLAX += ["aiofiles", "psutil", "protobuf", "typing_extensions", "chex", "toolz"]
EQUINOX = ["equinox", "jaxtyping", "wadler_lindig", "typing_extensions"]
CHEX = ["chex", "absl-py", "toolz", "typing_extensions"]
LINEAX = ["lineax", *EQUINOX]
OPTIMISTIX = ["optimistix", *LINEAX]
NEEDS = {
    "optax": ["optax", *CHEX],
    "flax_linen": FLAX,
    "flax_nnx": FLAX,
    "equinox": EQUINOX,
    "chex": CHEX,
    "haiku": ["dm-haiku", "jmp", "tabulate", *FLAX],
    "jaxopt": ["jaxopt"],
    "diffrax": ["diffrax", *OPTIMISTIX],
    "optimistix": OPTIMISTIX,
    "lineax": LINEAX,
    "blackjax": ["blackjax", "fastprogress==1.0.3", "fastcore", "optax", *CHEX],
    "numpyro": ["numpyro", "multipledispatch", "tqdm"],
    "distrax": [
        "distrax", "tfp-nightly", "decorator", "six", "gast", "cloudpickle",
        "dm-tree", "attrs", "wrapt", "optax", *CHEX,
    ],
    "tinygp": ["tinygp", *EQUINOX],
    "dynamax": ["dynamax", "fastprogress==1.0.3", "fastcore", "optax", *CHEX,
                "jaxtyping", "tfp-nightly", "decorator", "six", "gast", "cloudpickle",
                "dm-tree", "attrs", "wrapt", "wadler_lindig"],
    "einops": ["einops"],
    "jaxtyping": ["jaxtyping", "wadler_lindig"],
    "jraph": ["jraph"],
}  # fmt: skip


def install(names: list[str], folder: Path) -> str:
    """Install wheels without what they ask for; returns pip's complaint, or ""."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--target", str(folder)]
    missing = [name for name in names if not (folder / f".{name}").exists()]
    if not missing:
        return ""
    done = subprocess.run([*command, *missing], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    for name in missing:
        (folder / f".{name}").touch()
    return ""


def version(name: str, folder: Path) -> str:
    """The version of an installed wheel."""
    pattern = f"{name.replace('-', '_')}-*.dist-info"
    found = next(iter(folder.glob(pattern)), None)
    return found.name.removesuffix(".dist-info").split("-")[1] if found else "?"


def run(
    program: Path, minijax: bool, folder: Path = PROGRAMS
) -> subprocess.CompletedProcess:
    """Run a program, with wheels in `folder`; what it prints is text to compare."""
    command = [sys.executable, "-W", "ignore"]
    command += ["-m", "minijax.as_jax"] if minijax else []
    path = os.pathsep.join([str(ROOT), str(folder)])
    # Without the flags of the tests: a user's environment.
    own = ("XLA_", "JAX_", "MINIJAX_")
    plain = {k: v for k, v in os.environ.items() if not k.startswith(own)}
    return subprocess.run(
        [*command, str(program)],
        env={**plain, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=500,
    )
