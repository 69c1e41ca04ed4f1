"""The table of public names says what is true today, and why each absent one is."""

import fnmatch
import functools

import jax
import pytest

from tests.oracle import make_api_table as table

pytest.importorskip("minijax")

pytestmark = pytest.mark.skipif(
    jax.__version__ != table.EXPECTED_JAX,
    reason=f"the table belongs to jax {table.EXPECTED_JAX}",
)


@pytest.fixture(scope="module")
def rows():
    return table.build_rows()


def test_table_is_current(rows):
    assert table.TABLE.read_text() == table.render(rows), (
        "book/api_table.md is old: python tests/oracle/make_api_table.py"
    )


def test_each_name_that_falls_short_has_a_reason(rows):
    silent = [
        f"{r.module}.{r.name}" for r in rows if r.note.endswith("no reason given")
    ]
    assert silent == []


@pytest.mark.parametrize(("kind", "status"), [("group", "not"), ("partly", "partly")])
def test_each_reason_is_about_something_that_falls_short(rows, kind, status):
    absent = [f"{row.module}.{row.name}" for row in rows if row.status == status]
    idle = [
        pattern
        for pattern, _ in table.load_reasons(kind=kind)
        if not any(fnmatch.fnmatchcase(name, pattern) for name in absent)
    ]
    assert idle == []


def plain(x, y=1, *, z=None):
    return x


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (plain, ""),
        (lambda *args: args, ""),
        (lambda x, y=1, *, z=None, w=2: x, "lacks `w`"),
        (lambda x, *, z=None: x, "adds `y`"),
        (lambda y=1, x=2, *, z=None: x, "another order"),
        (lambda x, y=2, *, z=None: x, "`y` is 1 by default, in JAX 2"),
        (lambda x, y=1, z=None: x, "`z` is keyword-only"),
    ],
)
def test_differences_of_signatures_are_seen(theirs, words):
    note = table.compare(plain, theirs)
    assert words in note if words else note == ""


def test_a_jitted_function_shows_its_signature():
    jitted = functools.wraps(plain)(lambda *args: None)
    assert table.compare(jitted, plain) == ""


def refused(name):
    """What jax says when a program with the operation is compiled for a CPU."""
    x, ones = jax.numpy.ones((1, 32)), jax.numpy.ones(1, "int32")

    def received(token, x):
        return jax.lax.precv(token, x, "i", [(0, 0)])

    programs = {
        "psend": lambda x: received(jax.lax.psend(x, "i", [(0, 0)]), x),
        "precv": lambda x: received(jax.lax.create_token(), x),
        "ragged_all_to_all": lambda x: jax.lax.ragged_all_to_all(
            x, x, 0 * ones, ones, 0 * ones, ones, axis_name="i"
        ),
        "scaled_matmul": lambda x: jax.nn.scaled_matmul(*[x[None].astype("int8")] * 4),
        "scaled_dot_general": lambda x: jax.nn.scaled_dot_general(
            *(x, x, (((1,), (1,)), ((), ()))),
            configs=[jax.nn.get_scaled_dot_general_config("mxfp8")] * 3,
        ),
    }
    mesh, all_of_it = jax.make_mesh((1,), ("i",)), jax.sharding.PartitionSpec()
    specs = {"mesh": mesh, "in_specs": all_of_it, "out_specs": all_of_it}
    mapped = jax.shard_map(programs[name], **specs, check_vma=False)
    with pytest.raises(Exception) as error:
        jax.jit(programs[name] if "scaled" in name else mapped)(x)
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("psend", "psend is currently only implemented on GPU"),
        ("precv", "precv is currently only implemented on GPU"),
        ("ragged_all_to_all", "UNIMPLEMENTED: HLO opcode `ragged-all-to-all`"),
        ("scaled_matmul", "'scaled_matmul' not found for platform cpu"),
        ("scaled_dot_general", "'scaled_matmul' not found for platform cpu"),
    ],
)
def test_jax_refuses_on_a_cpu_what_the_table_says_so_of(name, words):
    assert words in refused(name)
