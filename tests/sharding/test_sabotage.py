"""Random programs notice a wrong rule: four are made wrong, one at a time.

They are compared with JAX as in `test_random_programs.py`: values, dtypes, shardings
and, over Explicit axes, types. As they are none differs; with a wrong rule some do.
"""

import subprocess
import sys

import numpy as np
import pytest

from tests.sharding.both import ROOT, Library, described
from tests.sharding.test_automatic import compare

pytestmark = pytest.mark.whole

# The rule, and what is wrong with it.
SABOTAGES = ("cut of dot_general", "transpose of all_gather")
SABOTAGES += ("batch of reshard over an Explicit axis", "transpose of psum")


def _programs(lib):
    """Small random programs on Explicit and Manual axes, by seed."""
    mj, lax, jnp, P = lib.mj, lib.lax, lib.jnp, lib.P
    explicit = lib.make_mesh((4, 2), "xy", lib.explicit)

    def typed(function, *args):
        types = []

        def traced(*args):
            out = function(*args)
            types.append(str(mj.typeof(out)))
            return out

        return mj.jit(traced)(*args), types

    def program(seed):
        rng = np.random.default_rng(seed)
        axis = str(rng.choice(["x", "y"]))
        x = lib.put(lib.numbers(8, 8), axis, None, mesh=explicit)
        kind = seed % 4
        if kind == 0:
            w = lib.put(lib.numbers(8, 8), None, None, mesh=explicit)
            return typed(lambda x, w: jnp.sin(x) @ w, x, w)
        if kind == 1:
            add = float(rng.integers(1, 9))
            with mj.set_mesh(explicit):
                one = mj.vmap(lambda row: mj.sharding.reshard(row, P(None)) + add)
                return typed(one, x)
        gathers = kind == 2
        scale = float(rng.integers(1, 9))

        def body(part):
            part = jnp.sin(part) * scale
            if gathers:
                return part * lax.all_gather(part, axis).sum(0)
            return part * lax.psum(part, axis)

        inner = mj.shard_map(
            body, mesh=lib.mesh, in_specs=P(axis), out_specs=P(axis), check_vma=False
        )
        return mj.jit(mj.grad(lambda x: (inner(x) ** 2).sum()))(lib.numbers(8, 4))

    return program


def _sabotage(name, patch):
    """Makes one rule wrong."""
    from minijax.core import arithmetic
    from minijax.primitives.parallel import collectives
    from minijax.programs.sharding import cuts, reshard

    if name == "cut of dot_general":
        rule = cuts.RULES["dot_general"]
        wrong = lambda *args: [cuts.whole(len(cut)) for cut in rule(*args)]
        patch.setitem(cuts.RULES, "dot_general", wrong)
    elif name == "batch of reshard over an Explicit axis":

        def lost(axis_data, args, dims, *, dst_sharding, **params):
            spec = dst_sharding.spec.inserted(dims[0], None)
            params["dst_sharding"] = dst_sharding.update(spec=spec)
            return reshard.reshard_p.bind(*args, **params), dims[0]

        patch.setattr(reshard.reshard_p, "batch", lost)
    else:
        which = name.removeprefix("transpose of ") + "_p"
        primitive = getattr(collectives, which)
        rule = primitive.transpose
        twice = lambda *args, **params: [
            ct if ct is None else arithmetic.add(ct, ct) for ct in rule(*args, **params)
        ]
        patch.setattr(primitive, "transpose", twice)


def _described(lib, count):
    program = _programs(lib)
    leaves = lib.mj.tree_util.tree_leaves
    found = []
    for seed in range(count):
        try:
            found.append(described(program(seed), leaves))
        except Exception as error:
            found.append(type(error).__name__)
    return found


def _differ(ours, theirs):
    if isinstance(ours, str):
        return True
    try:
        compare(ours, theirs)
    except AssertionError:
        return True
    return False


def _red(name, count=16):
    """How many programs differ from JAX, in a process that has cached no types."""
    wanted = _described(Library("jax"), count)
    assert not any(isinstance(one, str) for one in wanted), wanted
    lib = Library("minijax")
    with pytest.MonkeyPatch.context() as patch:
        if name != "nothing":
            _sabotage(name, patch)
        found = _described(lib, count)
    return sum(map(_differ, found, wanted))


@pytest.mark.parametrize(
    "name",
    [
        SABOTAGES[0],
        *(pytest.param(n, marks=pytest.mark.slow) for n in (*SABOTAGES[1:], "nothing")),
    ],
)
def test_a_wrong_rule_is_noticed(name):
    done = subprocess.run(
        [sys.executable, "-m", "tests.sharding.test_sabotage", name],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    assert not done.returncode, done.stderr[-2000:]
    red = int(done.stdout.splitlines()[-1])
    assert red == 0 if name == "nothing" else red > 0


if __name__ == "__main__":
    print(_red(sys.argv[1]))
