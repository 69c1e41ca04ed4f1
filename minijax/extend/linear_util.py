"""Functions wrapped in layers of transformations. In JAX: `jax.extend.linear_util`."""

from minijax.transforms.wrapped_functions import EqualStore as EqualStore
from minijax.transforms.wrapped_functions import Store as Store
from minijax.transforms.wrapped_functions import StoreException as StoreException
from minijax.transforms.wrapped_functions import WrappedFun as WrappedFun
from minijax.transforms.wrapped_functions import cache as cache
from minijax.transforms.wrapped_functions import merge_linear_aux as merge_linear_aux
from minijax.transforms.wrapped_functions import transformation as transformation
from minijax.transforms.wrapped_functions import transformation2 as transformation2
from minijax.transforms.wrapped_functions import (
    transformation_with_aux as transformation_with_aux,
)
from minijax.transforms.wrapped_functions import (
    transformation_with_aux2 as transformation_with_aux2,
)
from minijax.transforms.wrapped_functions import wrap_init as wrap_init
