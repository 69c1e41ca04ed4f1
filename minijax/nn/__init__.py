"""Functions for neural networks: activations, softmax, one-hot codes, initializers."""

# isort: skip_file
# fmt: off
from minijax.nn import initializers
from minijax.nn.attention import dot_product_attention
from minijax.nn.functions import (
    celu, elu, gelu, glu, hard_sigmoid, hard_silu, hard_swish, hard_tanh, identity,
    leaky_relu, log1mexp, log_sigmoid, log_softmax, logmeanexp, logsumexp, mish,
    one_hot, relu, relu6, selu, sigmoid, silu, soft_sign, softmax, softplus,
    sparse_plus, sparse_sigmoid, squareplus, standardize, swish,
)
from minijax.numpy import tanh
