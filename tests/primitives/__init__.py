"""Tests of primitives, family by family."""
