"""Primitives that few programs use: ragged products, hardware random bits."""
