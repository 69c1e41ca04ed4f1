"""Every primitive has every rule that applies to it, or says why it has not.

The walk goes over all registered primitives, so that a new one cannot be forgotten; a
second walk holds that the cases of this folder reach each of them, and a third holds
each primitive's meaning in NumPy against XLA.
"""

import numpy as np
import pytest

from tests.conftest import in_turn
from tests.oracle.oracle import value_difference
from tests.rules.cases import CASES

minijax = pytest.importorskip("minijax")
from minijax.core import language  # noqa: E402
from minijax.extend.core.primitives import remat_p  # noqa: E402, F401  now all are there

# Rules every primitive has, and where else the same knowledge may stand.
RULES = {
    "type_rule": lambda p: p.type_rule,
    "lower": lambda p: p.lowerings or p.impl,
    "jvp": lambda p: p.jvp or p.jvp_terms or p.linearize,
    "batch": lambda p: p.batch,
}


def primitives() -> list:
    return [language.all_primitives[name] for name in sorted(language.all_primitives)]


@pytest.mark.parametrize("rule", RULES)
def test_rule_is_there_or_declared_absent(rule):
    silent = [
        primitive.name
        for primitive in primitives()
        if not RULES[rule](primitive) and rule not in primitive.reasons
    ]
    assert silent == []


def test_reasons_are_phrases_and_not_idle():
    wrong = [
        (primitive.name, rule)
        for primitive in primitives()
        for rule, reason in primitive.reasons.items()
        if len(reason.split()) < 3 or (rule in RULES and RULES[rule](primitive))
    ]
    assert wrong == []


def equations(jaxpr):
    """All equations of a jaxpr and of the jaxprs in their parameters."""
    for eqn in jaxpr.eqns:
        yield eqn
        for value in eqn.params.values():
            for item in value if isinstance(value, (list, tuple)) else [value]:
                inner = getattr(item, "jaxpr", item)
                if hasattr(inner, "eqns"):
                    yield from equations(inner)


def case_functions(entry):
    """The function of a case, and those that its rules make: jvp, vjp, vmap."""
    function = entry.build(minijax)
    args = [minijax.numpy.asarray(arg) for arg in entry.args]
    yield function, args
    if entry.differentiable:

        def inexact(*points):
            full = list(args)
            for position, point in zip(entry.differentiable, points):
                full[position] = point
            leaves = minijax.tree_util.tree_leaves(function(*full))
            return [leaf for leaf in leaves if leaf.dtype.kind in "fc"]

        points = [args[position] for position in entry.differentiable]
        yield lambda *x: minijax.jvp(inexact, x, x), points
        yield (
            lambda *x: (lambda out, pull: pull(out))(*minijax.vjp(inexact, *x)),
            points,
        )


# Primitives that the cases do not reach, and the tests that exercise them.
_COLLECTIVES = """
    all_gather all_to_all axis_index pbroadcast pmax pmin ppermute psum reduce_scatter
"""
REACHED_ELSEWHERE = {
    # vmap computes collectives away, so no jaxpr of a case contains them.
    **dict.fromkeys(_COLLECTIVES.split(), "tests/oracle/test_collectives.py"),
    # Reads and writes of references are discharged before anything runs.
    **dict.fromkeys(
        "addupdate get swap".split(), "tests/primitives/test_references.py"
    ),
    **dict.fromkeys(
        "new_ref empty_ref free_ref freeze run_state".split(),
        "tests/programs/test_refs.py",
    ),
    # What they mean is the user's function.
    **dict.fromkeys(
        "io_callback pure_callback".split(), "tests/programs/test_callbacks.py"
    ),
    **dict.fromkeys(
        "debug_callback debug_print".split(), "tests/programs/test_debug_print.py"
    ),
    # Bound by the lowering of random_bits.
    "threefry2x32": "tests/random/test_threefry.py",
    "iota_2x32_shape": "tests/random/test_threefry.py",
    "dce_sink": "tests/primitives/test_casting.py",
    "stage": "tests/primitives/test_casting.py",
    "empty": "tests/primitives/test_shaping.py",
    # No public function binds it.
    "select_and_scatter": "tests/primitives/test_windows.py",
    "rng_uniform": "tests/random/test_threefry.py",
    # Tokens order effects; they are no arrays.
    "after_all": "tests/primitives/test_tokens.py",
    "create_token": "tests/primitives/test_tokens.py",
    # Raises, and has no results; there when `experimental.checkify` was imported.
    "check": "tests/programs/test_checkify.py",
    # In kernels; there when `experimental.pallas` was imported.
    **dict.fromkeys(
        "atomic_rmw masked_load masked_swap multiple_of num_programs pallas_call "
        "program_id reciprocal run_scoped".split(),
        "tests/pallas/test_kernels.py",
    ),
    **dict.fromkeys("dma_start dma_wait".split(), "tests/pallas/test_pipelines.py"),
    # Bound by the lowering of qr.
    **dict.fromkeys("geqp3 geqrf".split(), "tests/numpy/test_linalg.py"),
    # Programs over several devices.
    "sharding_constraint": "tests/sharding/automatic.py",
    "reshard": "tests/sharding/explicit.py",
    "inspect_sharding": "tests/sharding/automatic.py",
    "custom_partitioning": "tests/sharding/own_partitions.py",
    **dict.fromkeys(
        "all_gather_invariant psum_invariant pvary shard_map".split(),
        "tests/sharding/manual.py",
    ),
    **dict.fromkeys(
        "all_gather_reduced preduced reduced_vary_cast_p unreduced_psum "
        "unreduced_reduce_scatter vary_unreduced_cast_p".split(),
        "tests/sharding/unreduced_manual.py",
    ),
    # Used by reads through mixed indices of references.
    "broadcast_to": "tests/primitives/test_references.py",
    **dict.fromkeys(
        "custom_linear_solve custom_vmap_call linear_call remat_opt".split(),
        "tests/programs/test_custom_rules.py",
    ),
    **dict.fromkeys("remat2 name".split(), "tests/programs/test_checkpoint.py"),
    **dict.fromkeys(["composite", "scaled_dot"], "tests/programs/test_composites.py"),
    "ffi_call": "tests/programs/test_foreign_calls.py",
    "call_exported": "tests/exporting/test_exported.py",
    "layout_constraint": "tests/programs/test_stages.py",
    "dim_as_value": "tests/exporting/test_symbolic_shapes.py",
    "custom_vjp_call": "tests/golden/programs/custom_rules.py",
    "custom_lin": "tests/golden/programs/custom_rules.py",
    "random_gamma": "tests/random/test_gamma_family.py",
    **dict.fromkeys(
        "cond closed_call empty2 platform_index scan while".split(),
        "tests/programs/test_control_flow.py",
    ),
}


@pytest.fixture(scope="module")
def programs():
    """The jaxprs of all cases with their arguments."""
    made = []
    with minijax.enable_x64(True):
        for entry in CASES:
            for function, args in case_functions(entry):
                made.append((entry, minijax.make_jaxpr(function)(*args), args))
    return made


def test_cases_reach_every_primitive(programs):
    reached = {eqn.primitive.name for _, c, _ in programs for eqn in equations(c.jaxpr)}
    missed = set(language.all_primitives) - reached - set(REACHED_ELSEWHERE)
    assert sorted(missed) == [], sorted(missed)
    assert set(REACHED_ELSEWHERE) & reached == set()


def test_cases_name_what_they_exercise(programs):
    """`primitives` of a case is no more than a promise unless it is held."""
    reached: dict[str, set[str]] = {}
    for entry, closed, _ in programs:
        names = {eqn.primitive.name for eqn in equations(closed.jaxpr)}
        reached.setdefault(entry.name, set()).update(names)
    broken = [
        (entry.name, name)
        for entry in CASES
        for name in entry.primitives
        if name not in reached.get(entry.name, ())
    ]
    assert broken == [], broken


def programs_in_turn(programs):
    """All; in `make test` a fourth of them, and the first ones with each primitive."""
    turn, seen = in_turn([str(n) for n in range(len(programs))], 4), set()
    chosen = []
    for number, program in enumerate(programs):
        names = {eqn.primitive.name for eqn in program[1].jaxpr.eqns}
        if str(number) in turn or not names <= seen:
            chosen.append(program)
            seen |= names
    return chosen


def test_meaning_agrees_with_xla(programs):
    """Each equation of the cases, run by XLA and by its meaning in NumPy."""
    checked = set()
    problems = []
    with minijax.enable_x64(True):
        for entry, closed, args in programs_in_turn(programs):
            for name, message in _meanings(closed, args):
                checked.add(name)
                if message is not None:
                    problems.append(f"{entry.name}: {name}: {message}")
    assert problems == []
    with_meaning = {p.name for p in primitives() if p.meaning is not None}
    unchecked = with_meaning - checked - set(REACHED_ELSEWHERE)
    assert sorted(unchecked) == [], sorted(unchecked)


def _meanings(closed, args):
    """Evaluate a jaxpr by XLA; for each equation with a meaning, how NumPy differs."""
    values = dict(zip(closed.jaxpr.invars, args))
    values.update(zip(closed.jaxpr.constvars, closed.consts))

    def read(atom):
        return atom.val if isinstance(atom, language.Literal) else values[atom]

    for eqn in closed.jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        results = eqn.primitive.rebind(operands, eqn.params)
        results = list(results) if eqn.primitive.multiple_results else [results]
        values.update(zip(eqn.outvars, results))
        if eqn.primitive.meaning is None:
            continue
        yield eqn.primitive.name, _difference_of_meaning(eqn, operands, results)


def _difference_of_meaning(eqn, operands, results):
    avals = [language.get_aval(operand) for operand in operands]
    plain = [np.asarray(x, aval.dtype) for x, aval in zip(operands, avals)]
    with np.errstate(all="ignore"):
        meant = eqn.primitive.meaning(*plain, **eqn.params)
    if not eqn.primitive.multiple_results:
        meant = [meant]
    for ours, xla in zip(meant, results, strict=True):
        xla = np.asarray(xla)
        ours = np.asarray(ours)
        if ours.shape != xla.shape:
            return f"shape {ours.shape}, XLA {xla.shape}"
        message = value_difference(ours.astype(xla.dtype), xla)
        if message is not None:
            return message + " (meaning, XLA)"
    return None
