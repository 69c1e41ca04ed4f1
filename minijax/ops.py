"""Reductions over segments of arrays. In JAX: `jax.ops`."""

from minijax.numpy.reduce.segments import segment_max as segment_max
from minijax.numpy.reduce.segments import segment_min as segment_min
from minijax.numpy.reduce.segments import segment_prod as segment_prod
from minijax.numpy.reduce.segments import segment_sum as segment_sum
