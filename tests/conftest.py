"""What all tests share: quick compilation, markers, and what this machine lacks."""

import contextlib
import functools
import gc
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pytest

# Value tests compile many small programs and run each once: XLA's optimisations cost
# more than they save. minijax reads its variable when it compiles; it is set only while
# a test of this folder runs, since the kernels of notebooks inherit the environment and
# should compile as a learner's would. JAX reads its own when it is imported.
FAST_COMPILE = "MINIJAX_TEST_FAST_COMPILE"
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

# Compiled programs are kept for the next process by default. In the tests they are kept
# in a folder of their own, which all processes of one run share: what stands in the
# user's folder changes no test, and the cache is used by many processes at once.
CACHE_FOLDER = "MINIJAX_COMPILATION_CACHE_DIR"


def _compile_cheaply_in_jax() -> None:
    """Turns XLA's fusion emitters off wherever JAX compiles without optimisations.

    minijax's fast mode does the same, which halves the time of a small program. JAX has
    no setting for it, and XLA_FLAGS would hold for the whole process and its children.
    """
    compiler = sys.modules.get("jax._src.compiler")
    if compiler is None or importlib.metadata.version("jaxlib") >= "0.11":
        return  # jaxlib 0.11 and later know no such flag
    import jax

    original = compiler.get_compile_options

    @functools.wraps(original)
    def get_compile_options(*args, **kwargs):
        options = original(*args, **kwargs)
        cheap = jax.config.read("jax_disable_most_optimizations")
        if cheap and os.environ.get(FAST_COMPILE) == "1":
            flag = ("xla_cpu_use_fusion_emitters", False)
            options.env_option_overrides = [*options.env_option_overrides, flag]
        return options

    compiler.get_compile_options = get_compile_options


def pytest_collection_finish() -> None:
    # By now the test modules have imported JAX, if they need it.
    _compile_cheaply_in_jax()
    # Thousands of tests and both libraries stay until the end: the garbage collector
    # need not look at them again and again.
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def small_heap():
    """The garbage collector sees only the objects that are made from here on."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def whole_tracebacks():
    """Failures show minijax's own frames, which users do not see by default."""
    config = sys.modules.get("minijax.support.config")
    with config.traceback_filtering("off") if config else contextlib.nullcontext():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    before = os.environ.get(FAST_COMPILE)
    os.environ[FAST_COMPILE] = before or "1"
    try:
        return (yield)
    finally:
        if before is None:
            del os.environ[FAST_COMPILE]


# marker, the programs of which one must be there, what is skipped without
TOOLS = {
    "browser": (("chromium", "google-chrome"), "views are not tried in a browser"),
    "compiler": (("g++",), "nothing written in C++ is built"),
    "node": (("node",), "the sources of the views are not built again"),
}

# The chapter that builds a library while it runs.
BUILDS_CPP = "20_calling_out.ipynb"


def pytest_configure(config: pytest.Config) -> None:
    if CACHE_FOLDER not in os.environ:
        folder = tempfile.mkdtemp(prefix="minijax-programs-")
        os.environ[CACHE_FOLDER] = folder
        config.add_cleanup(functools.partial(shutil.rmtree, folder, True))
    config.addinivalue_line("markers", "slow: runs only with MINIJAX_TEST_ALL=1")
    config.addinivalue_line(
        "markers", "repeats: goes a way that another test goes; as slow"
    )
    config.addinivalue_line(
        "markers", "full_optimisation: compiles as users do, in tests/random"
    )
    for marker, (programs, _) in TOOLS.items():
        config.addinivalue_line("markers", f"{marker}: needs {' or '.join(programs)}")


# minijax follows jax 0.10.2. These compare printed programs, jit boundaries or fine
# points of errors with the jax that is installed, and a later one has changed them.
EXPECTED_JAX = "0.10.2"
OF_ONE_JAX = {
    "extend/test_programs.py": "test_same_with_other_imports",
    "nn/test_functions.py": (
        "test_axes_and_masks test_options test_same_program "
        "test_softmax_with_its_own_derivative"
    ),
    "nn/test_initializers.py": "test_simple_ones test_variance_scaling",
    "nn/test_special.py": "test_of_one_argument",
    "numpy/test_boundaries.py": "test_boundary_is_that_of_jax",
    "numpy/test_contractions.py": "test_agrees_with_jax",
    "numpy/test_creation.py": "test_filled",
    "numpy/test_reductions.py": "test_dtypes",
    "numpy/test_selection.py": "test_agrees_with_jax",
    "numpy/test_shaping.py": "test_agrees_with_jax",
    "numpy/test_static_arguments.py": "test_traced_numbers_raise_as_in_jax",
    "numpy/test_ufuncs.py": "test_array_and_number test_one_array test_one_number",
    "oracle/test_derivatives.py": "test_holomorphic",
    "oracle/test_random_programs.py": "test_random_programs",
    "primitives/test_casting.py": "test_derivatives",
    "primitives/test_cumulative.py": "test_texts",
    "primitives/test_general_reduction.py": "test_known_reductions_go_by_their_name",
    "primitives/test_reductions.py": "test_texts test_texts_of_batches",
    "primitives/test_scattering.py": "test_derivatives test_updates",
    "primitives/test_select.py": "test_derivatives",
    "primitives/test_slicing.py": "test_a_traced_vector_of_starts",
    "primitives/test_sorting.py": "test_texts",
    "programs/test_callbacks.py": (
        "test_batched_text test_bessel_functions_by_their_recurrence "
        "test_text_of_io_under_vmap test_vmap_of_vmap"
    ),
    "programs/test_callbacks_in_loops.py": (
        "test_text_of_a_checkpointed_scan test_texts test_texts_of_batches "
        "test_texts_of_values"
    ),
    "programs/test_debug_print.py": "test_text",
    "programs/test_random_callbacks.py": "test_texts",
    "programs/test_checkify.py": "test_text",
    "programs/test_foreign_calls.py": "test_programs_are_printed_as_in_jax",
    "programs/test_stages.py": (
        "test_methods_of_stages_are_those_of_jax test_names_of_modules "
        "test_parameters_of_functions"
    ),
    "exporting/test_symbolic_shapes.py": "test_printed_programs",
    "rules/test_sabotage.py": "test_each_fault_turns_the_tests_red",
    "numpy/test_segments.py": "test_values_and_programs",
    "programs/test_checkpoint.py": (
        "test_checkpoint_name test_errors test_offloaded_residuals "
        "test_offloaded_residuals_of_a_loop test_policies test_refs_inside "
        "test_saved_residuals test_texts"
    ),
    "programs/test_control_flow.py": (
        "test_a_branch_that_stands_twice_is_one_program test_a_loop_used_twice_is_one_"
        "program test_closures_become_constants test_platform_dependent test_refs "
        "test_refs_in_a_scan_have_derivatives test_residuals_of_every_step_alike_are_"
        "not_stacked test_texts test_while_vmapped_over_the_bound_stops_each_example_"
        "by_itself"
    ),
    "programs/test_custom_rules.py": (
        "test_custom_gradient test_optimize_remat test_sequential_vmap "
        "test_text_of_the_derivative_of_custom_root"
    ),
    "programs/test_refs.py": (
        "test_a_ref_prints_what_was_written test_residuals_of_a_pullback "
        "test_text test_text_of_batch test_text_of_grad test_text_of_jvp "
        "test_text_of_programs_over_refs_of_the_caller"
    ),
    "pallas/test_kernels.py": "test_text",
    "pallas/test_triton.py": "test_as_in_jax",
    "sharding/test_automatic.py": "test_as_in_jax",
    "sharding/test_manual.py": "test_as_in_jax",
    "sharding/test_random_programs.py": "test_as_in_jax",
    "views/test_foreign_programs.py": (
        "test_source_lines_are_those_that_jax_recorded "
        "test_the_batch_has_the_equations_of_jax "
        "test_the_program_computes_what_jax_computes "
        "test_the_way_back_has_the_equations_of_jax "
        "test_what_a_policy_keeps_is_what_jax_keeps "
        "test_what_cannot_be_run_is_refused_by_name test_what_is_not_carried_is_said"
    ),
    "random/test_keys.py": "test_printed",
    "random/test_samplers.py": "test_bits_and_jaxpr",
    "random/test_gamma_family.py": "test_jaxprs",
}


# These take longest, several of them by waiting for a browser or a child. They start
# first: what starts last should be short, since the other workers wait for it.
LONGEST = (
    "views/test_book.py",
    "views/test_lab.py",
    "notebooks/test_bulk_check.py",
    "views/test_gallery.py",
    "house/test_tools.py",
    "numpy/test_transformations.py",
    "oracle/test_random_programs.py",
)


def _another_jax() -> bool:
    """Whether a jax is installed that prints some programs in its own way."""
    if importlib.util.find_spec("jax") is None:
        return False
    return importlib.metadata.version("jax") != EXPECTED_JAX


def _holds_for_one_jax(item: pytest.Item) -> bool:
    """Whether a test compares what one version of jax does."""
    path = item.path.relative_to(Path(__file__).parent).as_posix()
    if path.startswith("views/claims/"):
        return True  # they count in programs as JAX prints them
    names = OF_ONE_JAX.get(path, "").split()
    return getattr(item, "originalname", item.name) in names


def _missing_tools() -> dict[str, str]:
    """For each marker whose tool is not here, the sentence that says so."""
    return {
        marker: f"{' or '.join(programs)} is not on this machine: {consequence}"
        for marker, (programs, consequence) in TOOLS.items()
        if not any(shutil.which(program) for program in programs)
    }


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = _missing_tools()
    if not os.environ.get("MINIJAX_TEST_ALL"):
        reasons["slow"] = "a long test: MINIJAX_TEST_ALL=1 runs it"
        reasons["repeats"] = "repeats another test: MINIJAX_TEST_ALL=1 runs it"
    if not os.environ.get("MINIJAX_TEST_GPU"):
        reasons["gpu"] = "needs an accelerator: MINIJAX_TEST_GPU=1 runs it"
    here = Path(__file__).parent
    longest = {here / name: place for place, name in enumerate(LONGEST)}
    checking = "MINIJAX_TEST_UNTIL" in os.environ
    if not checking:
        items.sort(key=lambda item: longest.get(item.path, len(longest)))
    another = _another_jax()
    for item in items:
        if another and here in item.path.parents and _holds_for_one_jax(item):
            reason = f"compares what jax {EXPECTED_JAX} alone does"
            item.add_marker(pytest.mark.skip(reason=reason))
        if checking and item.path in longest:
            reason = "too long for `make check`: `make test` runs it"
            item.add_marker(pytest.mark.skip(reason=reason))
        if item.path.name == BUILDS_CPP:
            item.add_marker(pytest.mark.compiler)
        for marker, reason in reasons.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_setup() -> None:
    # `make check` has two minutes, on a slow machine too.
    if time.time() > float(os.environ.get("MINIJAX_TEST_UNTIL", "inf")):
        pytest.skip("not reached in the time of `make check`: `make test` runs it")


def pytest_terminal_summary(terminalreporter) -> None:
    for sentence in _missing_tools().values():
        terminalreporter.write_line(sentence)
    if not os.environ.get("MINIJAX_TEST_ALL"):
        terminalreporter.write_line(
            "left to make test-all: tests marked slow or repeats; random programs "
            "after the first 60; values of programs whose calls another case compares; "
            "JAX and samplers compiled in more than one way"
        )
