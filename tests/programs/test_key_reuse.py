"""debug_key_reuse: the programs in which JAX finds a key that is used twice."""

import pytest

import minijax
from minijax.support.special_errors import KeyReuseError
from tests.programs.sides import LIBRARIES


def twice(library, random):
    key = random.key(0)
    random.normal(key)
    return random.normal(key)


def split_first(library, random):
    key, subkey = random.split(random.key(0))
    random.normal(subkey)
    return random.normal(key)


def split_and_used(library, random):
    key = random.key(0)
    random.split(key)
    return random.normal(key)


def unpacked(library, random):
    return [random.normal(key) for key in random.split(random.key(0), 3)]


def unpacked_twice(library, random):
    keys = random.split(random.key(0), 3)
    random.normal(keys[1])
    return random.uniform(keys[1])


def slices_apart(library, random):
    keys = random.split(random.key(0), 4)
    library.vmap(random.normal)(keys[:2])
    return library.vmap(random.normal)(keys[2:])


def slices_that_overlap(library, random):
    keys = random.split(random.key(0), 4)
    library.vmap(random.normal)(keys[:2])
    return library.vmap(random.normal)(keys[1:])


def in_one_program(library, random):
    f = library.jit(lambda key: random.normal(key) + random.uniform(key))
    return f(random.key(0))


def in_two_programs(library, random):
    f = library.jit(lambda key: random.normal(key))
    key = random.key(0)
    return f(key) + f(key)


def returned_by_a_program(library, random):
    f = library.jit(lambda key: (key, random.normal(key)))
    key, _ = f(random.key(0))
    return random.normal(key)


def closed_over(library, random):
    key = random.key(0)
    library.jit(lambda x: x + random.normal(key))(1.0)
    return random.normal(key)


def folded(library, random):
    key = random.key(0)
    return random.normal(random.fold_in(key, 1)) + random.normal(random.fold_in(key, 2))


def cloned(library, random):
    key = random.key(0)
    random.normal(key)
    return random.normal(random.clone(key))


def batched(library, random):
    keys = random.split(random.key(0), 3)
    library.vmap(random.normal)(keys)
    return library.vmap(random.normal)(keys)


def scan_over_keys(library, random):
    keys = random.split(random.key(0), 3)
    return library.lax.scan(lambda c, key: (c, random.normal(key)), 0.0, keys)[1]


def scan_carries_split(library, random):
    def step(key, x):
        key, subkey = random.split(key)
        return key, random.normal(subkey)

    return library.lax.scan(step, random.key(0), library.numpy.arange(3))[1]


def scan_with_one_key(library, random):
    key = random.key(0)
    step = lambda c, x: (c + random.normal(key), x)
    return library.lax.scan(step, 0.0, library.numpy.arange(3))


def scan_does_not_renew(library, random):
    def step(key, x):
        random.normal(key)
        return random.clone(key), random.normal(key)

    return library.lax.scan(step, random.key(0), library.numpy.arange(3))[1]


def while_renews(library, random):
    body = lambda c: (c[0] + 1, random.split(c[1])[0])
    init = (0, random.key(0))
    return library.lax.while_loop(lambda c: c[0] < 3, body, init)[0]


def while_with_one_key(library, random):
    key = random.key(0)
    body = lambda c: c + 1 + random.normal(key)
    return library.lax.while_loop(lambda c: c < 3, body, 0.0)


def one_branch_uses_it(library, random):
    key = random.key(0)
    library.lax.cond(True, lambda k: random.normal(k), lambda k: 0.0, key)
    return random.normal(key)


def both_branches_use_it(library, random):
    key = random.key(0)
    return library.lax.cond(True, random.normal, random.uniform, key)


def checkpointed(library, random):
    key = random.key(0)
    f = library.checkpoint(lambda x: library.numpy.sin(x * random.normal(key)))
    return library.grad(f)(1.0)


def untyped_keys(library, random):
    key = random.PRNGKey(0)
    random.normal(key)
    return random.normal(key)


def words_and_back(library, random):
    key = random.key(0)
    random.normal(key)
    return random.normal(random.wrap_key_data(random.key_data(key)))


def joined(library, random):
    keys = random.split(random.key(0))
    both = library.numpy.concatenate([keys, random.split(random.key(1))])
    library.vmap(random.normal)(both)
    return random.normal(keys[0])


def permuted(library, random):
    return random.permutation(random.key(0), 5)


def chosen(library, random):
    key = random.key(0)
    random.choice(key, 5, (2,), replace=False)
    return random.categorical(key, library.numpy.ones(5))


PROGRAMS = [
    twice,
    split_first,
    split_and_used,
    unpacked,
    unpacked_twice,
    slices_apart,
    slices_that_overlap,
    in_one_program,
    in_two_programs,
    returned_by_a_program,
    closed_over,
    folded,
    cloned,
    batched,
    scan_over_keys,
    scan_carries_split,
    scan_with_one_key,
    scan_does_not_renew,
    while_renews,
    while_with_one_key,
    one_branch_uses_it,
    both_branches_use_it,
    checkpointed,
    untyped_keys,
    words_and_back,
    joined,
    permuted,
    chosen,
]


def outcome(library, program):
    with library.debug_key_reuse(True):
        try:
            program(library, library.random)
        except Exception as error:
            assert type(error).__name__ == "KeyReuseError"
            return str(error)
    return None


@pytest.mark.parametrize("program", PROGRAMS)
def test_found_where_jax_finds_it(program):
    ours, theirs = (outcome(library, program) for library in LIBRARIES)
    assert (ours is None) == (theirs is None)
    if theirs is not None:
        phrase = theirs.splitlines()[0].partition(":")[0].partition(", because")[0]
        assert ours.startswith(phrase)


def test_the_first_use_is_named():
    with minijax.debug_key_reuse(True), pytest.raises(KeyReuseError) as e:
        twice(minijax, minijax.random)
    assert "It was first used at" in str(e.value)
    assert "random.normal(key)" in e.value.facts["first_used"]
    assert "random.split(key)" in e.value.facts["instead"]
    with minijax.debug_key_reuse(True), pytest.raises(KeyReuseError) as e:
        in_one_program(minijax, minijax.random)
    assert "random.normal(key) + random.uniform(key)" in str(e.value)


def test_without_the_flag_nothing_is_said():
    for program in (twice, in_one_program, scan_with_one_key):
        program(minijax, minijax.random)


def test_nothing_is_kept_of_keys_that_are_gone():
    from minijax.programs.debugging import key_reuse

    with minijax.debug_key_reuse(True):
        before = len(key_reuse._keys.known)
        for seed in range(20):
            minijax.random.normal(minijax.random.key(seed))
        assert len(key_reuse._keys.known) <= before + 3
