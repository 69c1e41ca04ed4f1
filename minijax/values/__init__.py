"""The language: types, programs, primitives, traces, tracers, arrays."""
