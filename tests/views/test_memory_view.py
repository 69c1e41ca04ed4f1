"""`see.memory`: live bytes, held against a count over real JAX's own jaxprs."""

from __future__ import annotations

import jax
import pytest
from jax._src.ad_checkpoint import saved_residuals as jax_residuals

import minijax
from minijax_lab.explain.memory import record_memory

from .test_residuals import FUNCTIONS, library

OPENED = {"jit", "custom_jvp_call", "custom_vjp_call", "remat2", "checkpoint"}
OPENED |= {"closed_call", "core_call"}


def flat(jaxpr, names, counter):
    """(reads, writes) of each equation, calls opened; names stand for arrays."""
    rows = []
    for eqn in jaxpr.eqns:
        reads = [v for v in eqn.invars if not hasattr(v, "val")]
        inner = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
        if eqn.primitive.name in OPENED:
            inner = getattr(inner, "jaxpr", inner)
            for outer, variable in zip(eqn.invars, inner.invars, strict=True):
                literal = hasattr(outer, "val")
                names[variable] = ("outside", 0) if literal else names[outer]
            for variable in inner.constvars:
                names[variable] = ("outside", 0)
            rows += flat(inner, names, counter)
            for outer, variable in zip(eqn.outvars, inner.outvars, strict=True):
                literal = hasattr(variable, "val")
                names[outer] = ("outside", 0) if literal else names[variable]
            continue
        for variable in eqn.outvars:
            size = getattr(variable.aval, "size", 0)
            counter[0] += 1
            dropped = type(variable).__name__ == "DropVar"
            itemsize = variable.aval.dtype.itemsize
            names[variable] = (counter[0], 0 if dropped else size * itemsize)
        inside = max((peak(body) for body in bodies(eqn)), default=0)
        rows.append(
            ([names[v] for v in reads], [names[v] for v in eqn.outvars], inside)
        )
    return rows


def bodies(eqn):
    found = []
    if eqn.primitive.name not in ("scan", "while", "cond"):
        return found
    for value in eqn.params.values():
        for part in value if isinstance(value, (tuple, list)) else [value]:
            part = getattr(part, "jaxpr", part)
            if hasattr(part, "eqns"):
                found.append(part)
    return found


def peak(jaxpr):
    """The most bytes alive at once, by brute force: every array at every equation."""
    names = {v: ("outside", 0) for v in (*jaxpr.invars, *jaxpr.constvars)}
    rows = flat(jaxpr, names, [0])
    out = {names[v] for v in jaxpr.outvars if not hasattr(v, "val")}
    most = 0
    for point in range(len(rows)):
        made = {value for _, writes, _ in rows[: point + 1] for value in writes}
        later = {value for reads, _, _ in rows[point:] for value in reads}
        now = set(rows[point][1])
        alive = {v for v in made if v in later or v in out or v in now}
        most = max(most, sum(size for _, size in alive) + rows[point][2])
    return most


@pytest.mark.parametrize(
    "make, args", FUNCTIONS, ids=lambda x: getattr(x, "__name__", "")
)
def test_peak_is_that_of_jax(make, args):
    mine = make(library(minijax))
    theirs = make(library(jax))
    recording = record_memory(minijax.grad(mine), args, {}, compiled=False)
    (account,) = recording.accounts
    closed = jax.make_jaxpr(jax.grad(theirs))(*args)
    assert account.most == peak(closed.jaxpr)
    assert len(account.points) == len(
        flat(closed.jaxpr, {v: ("outside", 0) for v in closed.jaxpr.invars}, [0])
    )


@pytest.mark.parametrize(
    "make, args", FUNCTIONS, ids=lambda x: getattr(x, "__name__", "")
)
def test_kept_bytes_are_those_of_jax(make, args):
    """JAX's list is for all arguments and counts those that are kept."""
    everything = tuple(range(len(args)))
    gradient = minijax.grad(make(library(minijax)), argnums=everything)
    (account,) = record_memory(gradient, args, {}, compiled=False).accounts
    theirs = [
        aval
        for aval, source in jax_residuals(make(library(jax)), *args)
        if "from the argument" not in source and "literal" not in source
    ]
    assert account.kept == sum(aval.size * aval.dtype.itemsize for aval in theirs)
