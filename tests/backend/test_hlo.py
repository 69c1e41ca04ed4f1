"""Contexts, types, constants and locations of StableHLO."""

import gc
import threading

import ml_dtypes
import numpy as np
import pytest

from minijax.backend import buffer_copies, hlo_parts
from minijax.core import compiler, hlo, runtime
from tests.backend.reference import reference_eval, supported_dtypes


class Aval:
    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.weak_type = tuple(shape), np.dtype(dtype), False


def program_of_constants(arrays):
    """A module whose `main` returns these arrays; call it inside a context."""
    types = [hlo.tensor_type(a.shape, a.dtype) for a in arrays]
    module = hlo.ir.Module.create()
    with hlo.ir.InsertionPoint(module.body):
        main = hlo.func.FuncOp("main", hlo.ir.FunctionType.get([], types))
        main.attributes["sym_visibility"] = hlo.string("public")
        with hlo.ir.InsertionPoint(main.add_entry_block()):
            hlo.func.return_([hlo.constant(a) for a in arrays])
    hlo_parts.verify(module)
    return module


def equal(a, b) -> bool:
    return (
        a.shape == b.shape
        and a.dtype == b.dtype.newbyteorder("=")
        and a.tobytes() == np.ascontiguousarray(b).astype(a.dtype).tobytes()
    )


SHAPES = [(), (0,), (1,), (7,), (2, 0), (3, 5)]


def values(shape, dtype) -> np.ndarray:
    numbers = np.arange(np.prod(shape)).reshape(shape) % 2 + 1
    if dtype.kind == "c":
        return (numbers * (1 - 2j)).astype(dtype)
    if dtype.kind == "b" or dtype.name.endswith("2") and "int2" in dtype.name:
        return (numbers - 1).astype(dtype)
    return numbers.astype(dtype)


@pytest.mark.parametrize("dtype", supported_dtypes(), ids=str)
def test_constants_in_the_reference_interpreter(dtype) -> None:
    arrays = [values(shape, dtype) for shape in SHAPES]
    with hlo_parts.context():
        results = reference_eval(program_of_constants(arrays), [])
    assert all(map(equal, results, arrays))


RUNNABLE = [
    d for d in supported_dtypes() if not d.name.startswith(("float4", "float6"))
]


def test_constants_compiled() -> None:
    arrays = [values(shape, dtype) for dtype in RUNNABLE for shape in SHAPES]
    with hlo_parts.context():
        module = program_of_constants(arrays)
        device = runtime.devices("cpu")[0]
        program = compiler.compile_module(module, [device])
    sharding = runtime.single_device_sharding(device)
    avals = [Aval(a.shape, a.dtype) for a in arrays]
    results = program.launcher(avals, [sharding] * len(avals))([])
    wrong = [
        (str(array.dtype), array.shape)
        for result, array in zip(results, arrays)
        if not equal(buffer_copies.to_numpy(result), array)
    ]
    assert not wrong


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12.0)[::-2],
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.full((3,), 7, dtype=">i8"),
        np.broadcast_to(np.float32(2.5), (3, 4)),
        np.broadcast_to(np.arange(3.0)[:, None], (3, 4)),
        np.broadcast_to(np.arange(3.0)[None, :, None], (2, 3, 4)),
        np.broadcast_to(np.array(True), (2,)),
        np.broadcast_to(np.float64(2), (0, 3)),
        np.array([0.0, -0.0]),
        np.array([np.nan, np.nan]),
        np.array([[2.0, 2.0], [2.0, 2.0]], ml_dtypes.bfloat16),
        np.float32(3),
        np.array([True] * 9),
        np.array([False, True] * 9),
    ],
)
def test_strides_orders_and_repetition(array) -> None:
    with hlo_parts.context():
        (result,) = reference_eval(program_of_constants([np.asarray(array)]), [])
    assert result.shape == np.shape(array)
    np.testing.assert_array_equal(result, array)
    if result.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(result), np.signbit(array))


def test_repetition_makes_small_programs() -> None:
    with hlo_parts.context():
        big = np.ones((1000, 1000))
        text = hlo.module_to_text(program_of_constants([big]))
        assert len(text) < 300
        row = np.broadcast_to(np.arange(3.0)[:, None], (3, 100_000))
        assert len(hlo.module_to_text(program_of_constants([row]))) < 500


def test_dtypes_without_counterpart() -> None:
    with hlo_parts.context():
        for dtype in ("U3", "O", "M8[s]", [("a", "f4")]):
            with pytest.raises(TypeError, match="cannot be part of a compiled program"):
                hlo.element_type(np.dtype(dtype))


def test_attributes() -> None:
    with hlo_parts.context():
        assert str(hlo.int_array((np.int64(3), 1))) == "array<i64: 3, 1>"
        assert str(hlo_parts.bool_array([True, False])) == "array<i1: true, false>"
        assert str(hlo_parts.int_matrix([[0, 1], [2, 3]])) == (
            "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
        )
        assert (
            str(hlo_parts.int_matrix(np.zeros((0, 2)))) == "dense<> : tensor<0x2xi64>"
        )
        assert str(hlo_parts.int_attribute(5)) == "5 : i64"
        assert str(hlo_parts.int_attribute(5, bits=32)) == "5 : i32"
        assert str(hlo.string("so")) == '"so"'


def test_locations() -> None:
    def here():
        return runtime.Traceback.get_traceback()

    with hlo_parts.context():
        assert str(hlo.location()) == "loc(unknown)"
        found = str(hlo.location(here(), "jit(f)/cos"))
        assert '"jit(f)/cos"' in found
        assert "here" in found
        assert "test_hlo.py" in found


def test_locations_keep_the_innermost_frames() -> None:
    def deep(number: int):
        return runtime.Traceback.get_traceback() if number == 0 else deep(number - 1)

    with hlo_parts.context():
        found = str(hlo.location(deep(30)))
    assert found.count("test_hlo.py") == hlo.FRAME_LIMIT


def test_locations_reach_the_compiled_program_and_can_be_stripped() -> None:
    with hlo_parts.context():
        tensor = hlo.tensor_type((3,), np.float32)
        module = hlo.ir.Module.create()
        with hlo.ir.InsertionPoint(module.body):
            signature = hlo.ir.FunctionType.get([tensor], [tensor])
            main = hlo.func.FuncOp("main", signature)
            with hlo.ir.InsertionPoint(main.add_entry_block()):
                line = hlo.ir.Location.file("model.py", 42, 1)
                where = hlo.ir.Location.name("jit(f)/sin", line)
                y = hlo.stablehlo.sine(main.arguments[0], loc=where)
                hlo.func.return_([y])
        program = hlo.module_to_bytes(module)
        assert "model.py" in hlo.module_to_text(module, locations=True)
        assert "model.py" not in hlo.module_to_text(module)
    compiled = compiler.compile_module(program, [runtime.devices("cpu")[0]])
    assert 'op_name="jit(f)/sin"' in compiled.hlo_text()
    stripped = hlo_parts.strip_locations(program)
    assert b"model.py" not in stripped
    with hlo_parts.context():
        text = hlo.module_to_text(hlo_parts.parse(stripped), locations=True)
    assert "stablehlo.sine" in text
    assert "jit(f)" not in text


def test_verify_refuses_wrong_programs() -> None:
    text = """module { func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      return %x : tensor<2xf32> } }"""
    with hlo_parts.context():
        module = hlo_parts.parse(text)
        hlo_parts.verify(module)
        main = module.body.operations[0]
        wrong = hlo.ir.FunctionType.get([], [hlo.tensor_type((2,), np.float32)])
        main.attributes["function_type"] = hlo.ir.TypeAttr.get(wrong)
        with pytest.raises(hlo.ir.MLIRError):
            hlo_parts.verify(module)


def test_reference_interpreter_computes() -> None:
    text = """
    module { func.func public @main(%x: tensor<3xbf16>, %c: tensor<2xcomplex<f32>>,
                                    %b: tensor<i1>)
        -> (tensor<3xbf16>, tensor<2xcomplex<f32>>, tensor<i1>, tensor<2xi8>) {
      %y = stablehlo.add %x, %x : tensor<3xbf16>
      %d = stablehlo.multiply %c, %c : tensor<2xcomplex<f32>>
      %n = stablehlo.not %b : tensor<i1>
      %k = stablehlo.constant dense<[-3, 100]> : tensor<2xi8>
      return %y, %d, %n, %k
        : tensor<3xbf16>, tensor<2xcomplex<f32>>, tensor<i1>, tensor<2xi8> } }"""
    x = np.array([1, 2, 3], ml_dtypes.bfloat16)
    c = np.array([1 + 1j, 2], np.complex64)
    with hlo_parts.context():
        before = hlo_parts.parse(text)
        y, d, n, k = reference_eval(before, [x, c, np.array(True)])
        assert "stablehlo.real" not in hlo.module_to_text(before)
    assert (y.dtype, d.dtype, n.dtype, k.dtype) == (x.dtype, c.dtype, bool, np.int8)
    np.testing.assert_array_equal(y, x + x)
    np.testing.assert_array_equal(d, c * c)
    assert n.tolist() is False
    assert k.tolist() == [-3, 100]


def test_contexts_nest_and_do_not_mix() -> None:
    with hlo_parts.context() as outer:
        outer_type = hlo.tensor_type((3,), np.float32)
        with hlo_parts.context() as inner:
            assert inner is not outer
            inner_type = hlo.tensor_type((3,), np.float32)
            assert inner_type.context is inner
            assert inner_type != outer_type
        assert hlo.tensor_type((3,), np.float32) is outer_type
        assert outer_type.context is outer


def live_contexts() -> int:
    gc.collect()
    return type(hlo.make_context())._get_live_count()


def test_contexts_and_constants_are_freed() -> None:
    def build(number: int) -> None:
        with hlo_parts.context():
            program_of_constants([np.arange(200_000.0) + number])

    build(0)
    before = live_contexts()
    for number in range(200):
        build(number)
    assert live_contexts() <= before + 1
    for _ in range(5):
        with hlo.make_context(), hlo.ir.Location.unknown():
            module = program_of_constants([np.arange(3.0)])
    del module
    assert live_contexts() <= before + 1


def test_a_module_outlives_the_block_of_its_own_context() -> None:
    with hlo.make_context(), hlo.ir.Location.unknown():
        module = program_of_constants([np.arange(3.0)])
    gc.collect()
    assert "dense<[0.0" in hlo.module_to_text(module)


def test_threads_build_programs_at_once() -> None:
    texts = {}

    def build(number: int) -> None:
        for turn in range(30):
            array = np.arange(float(number + 1)) + turn
            with hlo_parts.context():
                texts[number, turn] = hlo.module_to_text(program_of_constants([array]))

    threads = [threading.Thread(target=build, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 180
    for (number, turn), text in texts.items():
        with hlo_parts.context():
            (result,) = reference_eval(hlo_parts.parse(text), [])
        np.testing.assert_array_equal(result, np.arange(float(number + 1)) + turn)
