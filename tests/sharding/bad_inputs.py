"""Inputs over meshes that are wrong, or nearly so: a table of expressions.

Each is one case. Most are refused by JAX, and then must be refused here with the same
class of exception; a few at the edge are accepted, and then must give the same.

    python tests/sharding/both.py bad_inputs 0 12     one of twelve parts, as JSON
"""

from __future__ import annotations

import numpy as np

# Each group: a template in which an entry of its table stands.
COLLECTIVES = """
lax.psum(a, 'z')
lax.psum(a, None)
lax.psum(a, 0)
lax.psum(a, 7)
lax.psum(a, ('x', 'z'))
lax.psum(a, ('x', 'x'))
lax.psum(a, ())
lax.psum('a', 'x')
lax.psum(a, 'x', axis_index_groups=[[0, 1]])
lax.psum(a, 'x', axis_index_groups=[[0, 0], [1, 2]])
lax.psum(a, 'x', axis_index_groups=[[0, 1], [2]])
lax.psum(a, 'x', axis_index_groups=[[0, 1], [2, 9]])
lax.psum(a, 'x', axis_index_groups=3)
lax.pmean(a, 'z')
lax.pmean(a, None)
lax.pmean(a, ('x', 'z'))
lax.pmax(a, 0)
lax.pmin(a, (0, 1))
lax.pmax(a, 'z')
lax.pmax(a, ('x', 'z'))
lax.pmax(a, None)
lax.pmin(a, 'z')
lax.pmax(a, 'x', axis_index_groups=[[0, 1]])
lax.psum(a, ['x'])
lax.pmean(a, ['x'])
lax.pmax(a, ['x'])
lax.pmin(a, ['x'])
lax.ppermute(a, ['x'], [(0, 1)])
lax.pshuffle(a, ['x'], [1, 0, 2, 3])
lax.all_gather(a, ['x'])
lax.all_gather(a, ['x'], to='invarying')
lax.psum_scatter(a, ['x'])
lax.all_to_all(a, ['x'], 1, 0)
lax.pswapaxes(a, ['x'], 1)
lax.pcast(a, ['x'], to='varying')
lax.axis_index(['x'])
lax.axis_size(['x']) * a
lax.ppermute(a, 'x', [(0.0, 1.0)])
lax.ppermute(a, 'x', [(0, 1.5)])
lax.ppermute(a, 'x', [(0, 1), (0, 2)])
lax.ppermute(a, 'x', [(0, 1), (2, 1)])
lax.ppermute(a, 'x', [(0, 9)])
lax.ppermute(a, 'x', [(9, 0)])
lax.ppermute(a, 'x', [(-1, 0)])
lax.ppermute(a, 'x', [(0, -1)])
lax.ppermute(a, 'x', [(0,)])
lax.ppermute(a, 'x', [(0, 1, 2)])
lax.ppermute(a, 'x', [0, 1])
lax.ppermute(a, 'x', 'ab')
lax.ppermute(a, 'x', None)
lax.ppermute(a, 'x', [])
lax.ppermute(a, 'x', {0: 1})
lax.ppermute(a, 'x', [(0, -1), (1, 0), (2, 1), (3, 2)])
lax.ppermute(jnp.ones(3), 'x', [(0, 1)])
lax.ppermute(a, 'x', [('0', '1')])
lax.ppermute(a, 'x', [(True, False)])
lax.ppermute(a, 'x', np.array([[0, 1], [1, 0]]))
lax.ppermute(a, 'z', [(0, 1)])
lax.ppermute(a, ('x', 'z'), [(0, 1)])
lax.all_gather(a, 'x', axis=7)
lax.all_gather(a, 'x', axis=7, tiled=True)
lax.all_gather(a, 'x', axis=2, tiled=True)
lax.all_gather(a, 'x', axis=-3, tiled=True)
lax.all_gather(a, 'x', axis=-4)
lax.all_gather(a, 'x', axis=-7)
lax.all_gather(a, 'x', axis=1.5)
lax.all_gather(a, 'x', axis='x')
lax.all_gather(a, 'x', axis=None)
lax.all_gather(a[0, 0], 'x', tiled=True)
lax.all_gather(a, 'z')
lax.all_gather(a, None)
lax.all_gather(a, 'x', to='nowhere')
lax.all_gather(a, 'x', axis_index_groups=[[0, 1], [2]])
lax.psum_scatter(a, 'x', scatter_dimension=7)
lax.psum_scatter(a, 'x', scatter_dimension=-7)
lax.psum_scatter(a, 'x', scatter_dimension=0)
lax.psum_scatter(a, 'x', scatter_dimension=0, tiled=True)
lax.psum_scatter(a, 'x', scatter_dimension=-1)
lax.psum_scatter(a, 'x', scatter_dimension=1.5)
lax.psum_scatter(a, 'x', scatter_dimension='x')
lax.psum_scatter(a, 'z')
lax.psum_scatter(a[0, 0], 'x')
lax.all_to_all(a, 'x', 7, 0)
lax.all_to_all(a, 'x', 1, 7)
lax.all_to_all(a, 'x', -7, 0)
lax.all_to_all(a, 'x', 1, -7)
lax.all_to_all(a, 'x', 0, 1)
lax.all_to_all(a, 'x', 0, 1, tiled=True)
lax.all_to_all(a, 'x', 1, 7, tiled=True)
lax.all_to_all(a, 'x', 7, 1, tiled=True)
lax.all_to_all(a, 'x', 1.5, 0)
lax.all_to_all(a, 'x', 1, 0.5)
lax.all_to_all(a, 'z', 1, 0)
lax.pshuffle(a, 'x', [0, 0, 1, 2])
lax.pshuffle(a, 'x', [0, 1])
lax.pshuffle(a, 'x', [0.0, 1.0, 2.0, 3.0])
lax.pshuffle(a, 'x', [0, 1, 2, 9])
lax.pbroadcast(a, 'x', 9)
lax.pbroadcast(a, 'z', 0)
lax.pswapaxes(a, 'x', 0)
lax.pswapaxes(a, 'x', 7)
lax.axis_index('z')
lax.axis_index(None)
lax.axis_index(0)
lax.axis_index(('x', 'z'))
lax.axis_size('z')
lax.axis_size(None)
lax.axis_size(())
lax.pcast(a, 'x', to='nowhere')
lax.pcast(a, 'z', to='varying')
lax.pcast(a, {'x'}, to='varying')
lax.pcast(a, 'x', to='varying')
lax.pcast(a, 'y', to='invarying')
"""

SHARD_MAPS = """
in_specs=P('z'), out_specs=P('x')
in_specs=P('x'), out_specs=P('z')
in_specs=P('x', 'x'), out_specs=P('x')
in_specs=P('x'), out_specs=P('x', 'x')
in_specs=P('x', 'y', None), out_specs=P('x')
in_specs=P('x'), out_specs=P('x', 'y', None)
in_specs=P(('x', 'z')), out_specs=P('x')
in_specs=P(('x', 'x')), out_specs=P('x')
in_specs=P(0), out_specs=P('x')
in_specs=P(P.UNCONSTRAINED), out_specs=P('x')
in_specs=P('x'), out_specs=P(P.UNCONSTRAINED)
in_specs=P(None, ('x', 'y')), out_specs=P('x')
in_specs='x', out_specs=P('x')
in_specs=P('x'), out_specs='x'
in_specs=('x',), out_specs=P('x')
in_specs=0, out_specs=P('x')
in_specs=None, out_specs=P('x')
in_specs=P('x'), out_specs=None
in_specs=(), out_specs=P('x')
in_specs=(P('x'), P('x')), out_specs=P('x')
in_specs=[P('x')], out_specs=P('x')
in_specs={'a': P('x')}, out_specs=P('x')
in_specs=P('x'), out_specs=(P('x'), P('x'))
in_specs=P('x'), out_specs=(P('x'),)
in_specs=P('x'), out_specs={'a': P('x')}
in_specs=P('x'), out_specs=P()
in_specs=P('x', 'y'), out_specs=P('x')
in_specs=P('x'), out_specs=P(None, 'y')
in_specs=N(mesh, P('x')), out_specs=P('x')
in_specs=P('x'), out_specs=N(mesh, P('x'))
in_specs=P('x'), out_specs=P('x'), mesh=3
in_specs=P('x'), out_specs=P('x'), mesh='x'
in_specs=P('x'), out_specs=P('x'), mesh=None
in_specs=P('i'), out_specs=P('x'), mesh=line
in_specs=P('x'), out_specs=P('x'), mesh=empty
in_specs=P('x'), out_specs=P('x'), mesh=jax.devices()
in_specs=P('x'), out_specs=P('x'), axis_names={'z'}
in_specs=P('x'), out_specs=P('x'), axis_names={'x', 'z'}
in_specs=P('x'), out_specs=P('x'), axis_names={'y'}
in_specs=P('y'), out_specs=P('x'), axis_names={'x'}
in_specs=P('x'), out_specs=P('y'), axis_names={'x'}
in_specs=P('x'), out_specs=P('x'), axis_names='x'
in_specs=P('x'), out_specs=P('x'), axis_names=['x']
in_specs=P('x'), out_specs=P('x'), axis_names=('x',)
in_specs=P('x'), out_specs=P('x'), axis_names={0}
in_specs=P('x'), out_specs=P('x'), axis_names=None
in_specs=P('x', unreduced={'y'}), out_specs=P('x')
in_specs=P('x', reduced={'y'}), out_specs=P('x')
in_specs=P('x'), out_specs=P('x', unreduced={'y'})
in_specs=P('x'), out_specs=P('x', reduced={'y'})
in_specs=P('x', unreduced={'y'}), out_specs=P('x'), axis_names={'x'}
in_specs=P('x', unreduced={'x'}), out_specs=P('x')
in_specs=P('x', unreduced={'z'}), out_specs=P('x')
out_specs=P('x')
in_specs=P('x')
in_specs=P('x'), out_specs=P('x'), check_vma=3
in_specs=P('x'), out_specs=P('x'), check_rep=True
"""

# Of a shard_map over x alone.
PARTIAL = """
lax.psum(a, ('x', 'y'))
lax.psum(a, ('y', 'x'))
lax.pmean(a, ('x', 'y'))
lax.psum_scatter(a, ('x', 'y'), tiled=True)
lax.psum((a, 1.0), ('x', 'y'))
lax.pmax(a, ('x', 'y'))
lax.pcast(a, ('x', 'y'), to='varying')
lax.pcast(a, 'y', to='unreduced')
lax.pcast(a, 'y', to='varying')
lax.psum(1, ('x', 'y'))
lax.all_gather(a, ('x', 'y'), tiled=True)
lax.ppermute(a, ('x', 'y'), [(0, 1)])
"""

BODIES = """
lambda a: 'text'
lambda a: None
lambda a: a[0, 0]
lambda a: a.sum(0)
lambda a, b: a
lambda: 1
3
None
lambda a: lax.psum(a, 'x')
lambda a: jnp.float32(1)
lambda a: a.at[9].set(1)
lambda a: np.asarray(a)
lambda a: jax.device_put(a, jax.devices()[1])
lambda a: a.to_device(jax.devices()[0])
lambda a: a + jax.device_put(np.ones(4, 'f4'), jax.devices()[1])
lambda a: jax.device_put(a)
lambda a: jax.device_put(a, on('x'))
lambda a: lax.scan(lambda c, _: (c + a, None), jnp.zeros((2, 4)), None, length=2)[0]
lambda a: lax.cond(a[0, 0] > 0, lambda a: lax.psum(a, 'x'), lambda a: a, a)
lambda a: lax.pcast(a, ('x', 'x'), to='unreduced')
lambda a: lax.psum_scatter(a, ('y', 'x'), tiled=True)
lambda a: float(a.sum())
lambda a: lax.with_sharding_constraint(a, N(mesh, P('x')))
lambda a: lax.with_sharding_constraint(a, N(mesh, P(None, 'x')))
lambda a: jax.device_put(a, N(mesh, P('x')))
lambda a: jax.sharding.reshard(a, P('x'))
lambda a: jax.pmap(lambda b: b)(a)
lambda a: jax.jit(lambda b: b, in_shardings=N(mesh, P('x')))(a)
lambda a: lax.scan(lambda c, _: (c + a, None), jnp.zeros((2, 4)), None, length=2)[0]
lambda a: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + abs(a), jnp.zeros((2, 4)))
lambda a: lax.cond(a.sum() > 0, lambda: a, lambda: jnp.zeros((2, 4)))
lambda a: jax.shard_map(lambda b: b, mesh=mesh, in_specs=P('x'), out_specs=P('x'))(a)
lambda a: jax.shard_map(lambda b: b, mesh=line, in_specs=P('i'), out_specs=P('i'))(a)
"""

MESHES = """
make_mesh((0,), ('a',))
make_mesh((-1,), ('a',))
make_mesh((-2, -2), ('a', 'b'))
make_mesh((4, 0), ('a', 'b'))
make_mesh((16,), ('a',))
make_mesh((3,), ('a',))
make_mesh((4, 2), ('a',))
make_mesh((4,), ('a', 'b'))
make_mesh((4, 2), ('a', 'a'))
make_mesh((4, 2), ('a', None))
make_mesh((4, 2), 'ab')
make_mesh((8,), 'a')
make_mesh(8, 'a')
make_mesh('8', 'a')
make_mesh((8.0,), ('a',))
make_mesh((True,), ('a',))
make_mesh(None, ('a',))
make_mesh((8,), None)
make_mesh((), ())
make_mesh((8,), ('a',), axis_types=auto)
make_mesh((8,), ('a',), axis_types=('Auto',))
make_mesh((8,), ('a',), axis_types=(auto, auto))
make_mesh((8,), ('a',), axis_types='auto')
make_mesh((8,), ('a',), devices=jax.devices()[:4])
make_mesh((8,), ('a',), devices=[])
make_mesh((2,), ('a',), devices=[3, 4])
make_mesh((2,), ('a',), devices=jax.devices()[:1] * 2)
Mesh(jax.devices(), ('a', 'b'))
Mesh(jax.devices(), 'ab')
Mesh(jax.devices(), None)
Mesh(jax.devices(), 3)
Mesh([], ('a',))
Mesh(np.array(jax.devices()).reshape(4, 2), ('a',))
Mesh(np.array(jax.devices()).reshape(4, 2), ('a', 'a'))
Mesh(jax.devices(), ('a',), axis_types=(3,))
AbstractMesh((4,), ('a', 'b'))
AbstractMesh((4, 2), ('a', 'a'))
AbstractMesh((4,), ('a',), axis_types=(auto, auto))
AbstractMesh(4, 'a')
AbstractMesh((('a', 4),))
AbstractMesh((0,), ('a',))
AbstractMesh((4,), ('a',)).devices
N(mesh, 'x')
N(mesh, None)
N(mesh, ('x',))
N(mesh, P('z'))
N(mesh, P('x', 'x'))
N(mesh, P(('x', 'x')))
N(mesh, P(0))
N(mesh, P(unreduced={'x'}))
N(mesh, P(reduced={'x'}))
N(explicit, P(unreduced={'z'}))
N(abstract.update(axis_types=(manual, manual)), P(unreduced={'x'}))
N(abstract.update(axis_types=(manual, manual)), P('x', reduced={'y'}))
N(explicit, P(reduced={'z'}))
N(explicit, P(P.UNCONSTRAINED))
N(None, P('x'))
N(3, P('x'))
N(mesh, P('x'), memory_kind='moon')
P('x', unreduced={'x'})
P('x', reduced={'x'})
P(unreduced={'x'}, reduced={'x'})
P(unreduced='x')
P(unreduced=('x',))
P(unreduced={None})
P((('x',),))
P([['x']])
P('x')[3]
N(mesh, P('x')).shard_shape((7, 4))
N(mesh, P('x')).shard_shape(())
N(mesh, P('x')).shard_shape(8)
N(mesh, P('x')).devices_indices_map((7,))
N(explicit, P(unreduced={'x'})).devices_indices_map((8,))
jax.set_mesh(3)
jax.set_mesh('x')
jax.sharding.use_abstract_mesh(mesh)
jax.sharding.ManualAxisType(varying=frozenset('x'), reduced=frozenset('x'))
"""

PLACES = """
N(mesh, P('z'))
N(mesh, P('x', 'y', None))
N(mesh, P(None, ('x', 'y')))
N(mesh, P(('x', 'y'), None))
N(mesh3, P('a'))
N(mesh, P(P.UNCONSTRAINED))
N(abstract, P('x'))
N(empty, P())
N(explicit, P(unreduced={'x'}))
N(explicit, P(reduced={'x'}))
N(explicit, P('x', unreduced={'y'}))
P('x')
P('x', 'y')
P('z')
P()
mesh
jax.devices()
jax.devices()[1]
'cpu'
3
'x'
(P('x'),)
N(mesh, P('x'), memory_kind='pinned_host')
N(line, P('i'))
N(back, P('i'))
N(half, P('i'))
"""
TAKERS = """
jax.device_put(x, {})
jax.device_put([x, x], [{}, None])
jax.device_put(x[0, 0], {})
jax.device_put(np.ones((6, 4), 'f4'), {})
jax.device_put('x', {})
jax.jit(lambda a: a + 1, in_shardings={})(x)
jax.jit(lambda a: a + 1, out_shardings={})(x)
jax.jit(lambda a: a + 1, in_shardings={})(cut)
jax.jit(lambda a: a[0, 0], out_shardings={})(x)
jax.jit(lambda a: lax.with_sharding_constraint(a, {}))(x)
lax.with_sharding_constraint(x, {})
lax.with_sharding_constraint(x[0, 0], {})
jax.sharding.reshard(x, {})
"""

JITS = """
jax.jit(lambda a: a, in_shardings=(on('x'), on('x')))(x)
jax.jit(lambda a: a, in_shardings=[on('x')])(x)
jax.jit(lambda a: a, in_shardings=())(x)
jax.jit(lambda a: a, in_shardings={'a': on('x')})(x)
jax.jit(lambda a: (a, a), out_shardings=(on('x'),))(x)
jax.jit(lambda a: (a, a), out_shardings=[on('x'), on('x')])(x)
jax.jit(lambda a: a, out_shardings={'a': on('x')})(x)
jax.jit(lambda a: a, in_shardings=on('x'))(a=x)
jax.jit(lambda a, b: a, in_shardings=on('x'))(x, b=x)
jax.jit(lambda a: a, in_shardings='x')(x)
jax.jit(lambda a: a, out_shardings='x')(x)
jax.jit(lambda a: a, in_shardings=on('x'))('text')
jax.jit(lambda a: a, in_shardings=on('x'))(jnp.ones(7))
jax.jit(lambda a: a, in_shardings=on('x'))(jnp.ones(()))
jax.jit(lambda a: jnp.ones(7), out_shardings=on('x'))(x)
jax.jit(lambda a: a, in_shardings=on('x'))(there)
jax.jit(lambda a: a, in_shardings=on('x'))(at(3))
jax.jit(lambda a: a, in_shardings=on('x'))(across)
jax.jit(lambda a: a, in_shardings=on('x'))(at(0))
jax.jit(lambda a: a, in_shardings=on())(at(0))
jax.jit(lambda a: a, in_shardings=on())(at(3))
jax.jit(lambda a: a, in_shardings=on('x'))(jax.device_put(x, N(line, P('i'))))
jax.jit(lambda a: a, in_shardings=on('x'))(jax.device_put(x, N(back, P('i'))))
jax.jit(lambda a: a, in_shardings=on(('x', 'y')))(jax.device_put(x, N(line, P('i'))))
jax.jit(lambda a, b: a + b)(there, jax.device_put(x, N(other, P('i'))))
jax.jit(lambda a, b: a + b)(cut, there)
jax.jit(lambda a, b: a)(cut, there)
jax.jit(lambda a, b: a + b)(cut, at(3))
jax.jit(lambda a, b: a)(cut, at(3))
jax.jit(lambda a, b: a)(at(2), at(3))
jax.jit(lambda a: a, in_shardings=on('x'), out_shardings=N(half, P('i')))(x)
jax.jit(lambda a: a, in_shardings=N(half, P('i')), out_shardings=N(other, P('i')))(x)
jax.jit(lambda a: a, in_shardings=on('x'), donate_argnums=7)(x)
jax.jit(lambda a: a, in_shardings=on('x'), static_argnums=0)(x)
jax.jit(lambda a: a, in_shardings=on('x'), device=jax.devices()[0])(x)
jax.jit(lambda a: a, device=jax.devices()[0], backend='cpu')(x)
jax.jit(lambda a: a, backend='moon')(x)
jax.jit(lambda a: a).lower(x).compile()(cut)
jax.jit(lambda a: a).lower(cut).compile()(x)
jax.jit(lambda a: a + 1).lower(cut).compile()(across)
jax.jit(lambda a: a + 1).lower(cut).compile()(there)
jax.jit(lambda a: a + 1).lower(cut).compile()(at(3))
jax.jit(lambda a: a + 1).lower(cut).compile()(np.asarray(x))
jax.jit(lambda a: a + 1).lower(x).compile()(at(3))
jax.jit(lambda a: a + 1).lower(cut).compile()(jnp.ones(3))
jax.jit(lambda a: a + 1).lower(cut).compile()(cut, cut)
jax.jit(lambda a: a + 1).lower(cut).compile()(cut.astype(int))
jax.jit(lambda a: a + 1, in_shardings=on('x')).lower(x).compile()(across)
jax.jit(lambda a: a + 1, in_shardings=on('x')).lower(x).compile()(x)
cut + there
jnp.dot(cut, there.T)
jnp.concatenate([cut, there])
jnp.where(cut > 0, cut, there)
cut.at[0].set(there[0])
jax.make_array_from_callback((8,), on('x'), lambda at: np.ones(3))
jax.make_array_from_callback((7,), on('x'), lambda at: np.ones(7)[at])
jax.make_array_from_callback(8, on('x'), lambda at: np.ones(8)[at])
jax.make_array_from_callback((8,), P('x'), lambda at: np.ones(8)[at])
jax.make_array_from_single_device_arrays((8, 4), on('x'), [x])
jax.make_array_from_single_device_arrays((8, 4), on('x'), x)
jax.make_array_from_single_device_arrays((8, 4), on('x'), [np.ones((2, 4))] * 8)
jax.make_array_from_process_local_data(on('x'), np.ones(7))
jax.make_array_from_process_local_data(on('x'), np.ones(8), (16,))
jax.device_put_sharded([x, x], jax.devices()[:3])
jax.device_put_replicated(x, [])
jax.device_put(x, jax.devices('moon')[0])
jax.default_device(3).__enter__()
jax.device_put(x, on('x'), donate=True, may_alias=True)
jax.jit(lambda a: jax.device_put(a, on('x'), donate=True, may_alias=True))(x)
jax.device_put([x, x], [on('x')])
jax.device_put(x, mesh)
jax.device_put(x, on('x'), src=3)
jax.jit(lambda a, n: a, static_argnums=1, donate_argnums=1)(x, 3)
jax.jit(lambda a: a, donate_argnames='zz')(x)
jax.jit(lambda a: a, in_shardings=on('x'), donate_argnums=3)(x)
jax.jit(lambda a: (a, a), out_shardings=[on('x')])(x)
jax.jit(lambda a: a + 1, in_shardings=on('x')).lower(x).compile()(x, x)
N(mesh, P('x')).shard_shape((7,))
mesh.update(axis_types=(auto,))
jax.sharding.reshard(e, N(explicit2, P('u')))
jax.smap(lambda a: a, in_axes=[0], out_axes=0, axis_name='x')
jax.smap(lambda a: a, in_axes={'a': 0}, out_axes=0, axis_name='x')
jax.smap(lambda a: a, in_axes=0, out_axes=0, axis_name=('x', 'y'))
jax.smap(lambda a: a, in_axes=0, out_axes=0, axis_name=['x'])
jax.smap(lambda a: a, in_axes=(0.5,), out_axes=0, axis_name='x')
jax.smap(lambda a: a, in_axes=0, out_axes='0', axis_name='x')
"""

PMAPS = """
jax.vmap(lambda a: a, spmd_axis_name=['x'])(jnp.ones((8, 3)))
jax.vmap(lambda a: lax.with_sharding_constraint(a, on('x')), spmd_axis_name='x')(x)
jax.vmap(lambda a: kept(on_y(a), a), spmd_axis_name=('x', 'y'))(jnp.ones((8, 2, 4)))
jax.vmap(doubled, spmd_axis_name='x')(jnp.ones((4, 8)))
jax.vmap(added, (0, None), spmd_axis_name='x')(jnp.ones((4, 2)), jnp.ones(8))
jax.vmap(lambda a: a, spmd_axis_name=('x', ['y']))(jnp.ones((8, 3)))
jax.pmap(lambda a: a)()
jax.pmap(lambda a: a)(jnp.ones(()))
jax.pmap(lambda a: a)(jnp.ones((0, 3)))
jax.pmap(lambda a: a)(jnp.ones((9, 3)))
jax.pmap(lambda a: a)('text')
jax.pmap(lambda a: a)(3)
jax.pmap(lambda a: a)([])
jax.pmap(lambda a, b: a)(jnp.ones((8, 3)), jnp.ones((4, 3)))
jax.pmap(lambda a: a, in_axes=1)(jnp.ones((8,)))
jax.pmap(lambda a: a, in_axes=-1)(jnp.ones((3, 8)))
jax.pmap(lambda a: a, in_axes=None)(jnp.ones((8,)))
jax.pmap(lambda a: a, in_axes=None, axis_size=4)(jnp.ones((8,)))
jax.pmap(lambda a: a, in_axes='x')(jnp.ones((8,)))
jax.pmap(lambda a: a, in_axes=1.0)(jnp.ones((8,)))
jax.pmap(lambda a: a, in_axes=(0, 0))(jnp.ones((8,)))
jax.pmap(lambda a: a, in_axes=[0])(jnp.ones((8,)))
jax.pmap(lambda a: a, in_axes=({'a': 0},))(jnp.ones((8,)))
jax.pmap(lambda a: a, out_axes=7)(jnp.ones((8,)))
jax.pmap(lambda a: a, out_axes=-1)(jnp.ones((8, 3)))
jax.pmap(lambda a: a, out_axes=None)(jnp.ones((8,)))
jax.pmap(lambda a: a, out_axes='x')(jnp.ones((8,)))
jax.pmap(lambda a: a, out_axes=(0, 0))(jnp.ones((8,)))
jax.pmap(lambda a: a, axis_size=4)(jnp.ones((8,)))
jax.pmap(lambda a: a, axis_size=0)(jnp.ones((8,)))
jax.pmap(lambda a: a, axis_size=8.0)(jnp.ones((8,)))
jax.pmap(lambda a: a, devices=jax.devices()[:4])(jnp.ones((8,)))
jax.pmap(lambda a: a, devices=[])(jnp.ones((8,)))
jax.pmap(lambda a: a, devices=jax.devices()[:1] * 2)(jnp.ones((2,)))
jax.pmap(lambda a: a, devices=jax.devices()[4:])(here)
jax.pmap(lambda a: a, devices=3)(jnp.ones((8,)))
jax.pmap(lambda a: a, backend='moon')(jnp.ones((8,)))
jax.pmap(lambda a: a, static_broadcasted_argnums=5)(jnp.ones((8,)))
jax.pmap(lambda a: a, static_broadcasted_argnums=(5,))(jnp.ones((8,)))
jax.pmap(lambda a, b: a, static_broadcasted_argnums=(1,))(jnp.ones((8,)), [3])
jax.pmap(lambda a, b: a, static_broadcasted_argnums='x')(jnp.ones((8,)), 3)
jax.pmap(lambda a: a, static_broadcasted_argnums=0)(jnp.ones((8,)))
jax.pmap(lambda a: a, donate_argnums=5)(jnp.ones((8,)))
jax.pmap(3)
jax.pmap(lambda a: 'text')(jnp.ones((8,)))
jax.pmap(lambda a: None)(jnp.ones((8,)))
jax.pmap(lambda a: lax.psum(a, 'z'))(jnp.ones((8,)))
jax.pmap(lambda a: lax.psum(a, 'z'), axis_name='i')(jnp.ones((8,)))
jax.pmap(lambda a: lax.with_sharding_constraint(a, on('x')))(jnp.ones((8, 8)))
jax.pmap(lambda a: lax.with_sharding_constraint(a, on()))(jnp.ones((8, 8)))
jax.pmap(jax.jit(lambda a: a, in_shardings=on('x')))(jnp.ones((8, 8)))
jax.pmap(jax.jit(lambda a: a, out_shardings=on('x')))(jnp.ones((8, 8)))
jax.pmap(lambda a: jax.device_put(a, on('x')))(jnp.ones((8, 8)))
jax.pmap(lambda a: jax.device_put(a, jax.devices()[0]))(jnp.ones((8, 8)))
jax.pmap(lambda a: a, axis_name=3)(jnp.ones((8,)))
jax.pmap(lambda a: a + there)(jnp.ones((8, 1, 1)))
jax.pmap(lambda a, b: a)(jnp.ones((4, 1)), there)
"""

# Where an Explicit mesh is in use, whose arrays are e = f32[8@x,4], f = f32[8,4@y].
EXPLICITS = """
jax.shard_map(lambda a: jax.grad(total_of_reduced)(jnp.ones(4)), out_specs=P())(e)
e[:, :2] + f[:, :2]
f[:, :2]
f[:, :3]
e[:2]
e[:3]
e[3]
e[::2]
e[jnp.array([1, 2])]
f[:, jnp.array([1, 2])]
e + f
e + there
e + cut
cut + 1
cut + cut
cut.T
jnp.sum(cut)
there + 1
jax.jit(lambda a: a)(cut)
jax.jit(lambda a, b: a + b)(e, cut)
jax.device_put(cut, N(explicit, P('x')))
jax.sharding.reshard(cut, P('x'))
jax.sharding.reshard(cut, N(explicit, P('x')))
e + jax.device_put(x, N(explicit2, P('u')))
jax.device_put(x, N(explicit2, P('u'))) + 1
jnp.sin(jax.device_put(x, N(explicit2, P('u'))))
jax.jit(lambda a: a + 1)(jax.device_put(x, N(explicit2, P('u'))))
jax.jit(lambda a: a)(jax.device_put(x, N(explicit2, P('u'))))
jax.device_put(jax.device_put(x, N(explicit2, P('u'))), N(explicit, P('x')))
jax.sharding.reshard(jax.device_put(x, N(explicit2, P('u'))), P('x'))
jnp.asarray(jax.device_put(x, N(explicit2, P('u'))))
jax.grad(lambda a: a.sum())(jax.device_put(x, N(explicit2, P('u'))))
lax.with_sharding_constraint(jax.device_put(x, N(explicit2, P('u'))), P('x'))
jnp.dot(e, e.T)
jnp.dot(f, f.T)
jnp.dot(f, f.T, out_sharding=P('z'))
jnp.dot(f, f.T, out_sharding=P('x', 'x'))
jnp.dot(f, f.T, out_sharding=P('x', 'y', None))
jnp.dot(f, f.T, out_sharding='x')
jnp.dot(f, f.T, out_sharding=P(unreduced={'x'}))
jnp.dot(f, f.T, out_sharding=P(unreduced={'z'}))
jnp.dot(f, f.T, out_sharding=P(reduced={'y'}))
jnp.dot(f, f.T, out_sharding=P('y', unreduced={'y'}))
jnp.einsum('ij,kj->ik', e, f)
jnp.einsum('ij,kj->ik', f, f)
e.reshape(32)
f.reshape(32)
f.reshape(4, 8)
e.reshape(2, 16)
e.reshape(32, out_sharding=P('z'))
jnp.concatenate([e, f])
jnp.stack([e, f])
jnp.where(e > 0, e, f)
jnp.cumsum(e, 0)
jnp.sort(e, 0)
jnp.sort(f, 1)
jnp.argsort(f, 1)
lax.top_k(f, 2)
jnp.pad(f, ((0, 0), (1, 0)))
jnp.roll(e, 1, 0)
jnp.flip(e, 0)
jnp.tile(e, (2, 1))
jnp.repeat(e, 2, 0)
jnp.split(e, 8)
e.at[0].set(f[0])
e.at[0].set(1.0)
e.at[:3].add(e[:3])
lax.dynamic_slice(e, (0, 0), (3, 4))
lax.dynamic_update_slice(e, f, (0, 0))
lax.conv_general_dilated(e[None, None], e[None, None], (1, 1), 'SAME')
lax.clamp(e, f, e)
lax.select(e > 0, e, f)
lax.broadcast_in_dim(e, (8, 8, 4), (1, 2), out_sharding=P('x', 'x'))
jnp.zeros((8, 4), out_sharding=P('z'))
jnp.zeros((7, 4), out_sharding=P('x'))
jnp.zeros((), out_sharding=P('x'))
jnp.arange(8, out_sharding=P('x', 'y'))
jnp.arange(8, out_sharding=3)
jax.sharding.reshard(e, P('z'))
jax.sharding.reshard(e, P('x', 'x'))
jax.sharding.reshard(e, P('x', 'y', None))
jax.sharding.reshard(e, P(None, ('x', 'y')))
jax.sharding.reshard(e, None)
jax.sharding.reshard(e, 'x')
jax.sharding.reshard(e, (P('x'), P('x')))
jax.sharding.reshard(e, N(mesh, P('x')))
jax.sharding.reshard(e, N(explicit2, P('u')))
jax.sharding.reshard(e, P(P.UNCONSTRAINED))
jax.sharding.reshard('x', P('x'))
jax.jit(lambda a: a, in_shardings=P('y'))(e)
jax.jit(lambda a: a, in_shardings=P(None, 'y'))(e)
jax.jit(lambda a: a, out_shardings=P('z'))(e)
jax.jit(lambda a: a, out_shardings=P('y'))(e)
lax.with_sharding_constraint(e, P('y'))
lax.with_sharding_constraint(e, P('z'))
lax.with_sharding_constraint(e, P('x'))
jax.sharding.auto_axes(lambda a: a)(e)
jax.sharding.auto_axes(lambda a: a, out_sharding=P('z'))(e)
jax.sharding.auto_axes(lambda a: a, axes='z', out_sharding=P('x'))(e)
jax.sharding.auto_axes(lambda a: a, out_sharding=(P('x'), P('x')))(e)
jax.sharding.explicit_axes(lambda a: a)(e)
jax.sharding.explicit_axes(lambda a: a, axes='z', in_sharding=P('x'))(e)
lax.scan(lambda c, _: (c.T.T + f, None), e, None, length=2)
lax.scan(lambda c, _: (jax.sharding.reshard(c, P('y')), None), e, None, length=2)
lax.while_loop(lambda c: True, lambda c: jax.sharding.reshard(c, P('y')), e)
lax.cond(True, lambda: e, lambda: f)
jax.vmap(lambda a, b: a + b)(e, jnp.ones((8, 4)))
jax.vmap(lambda a, b: a + b)(np.ones((8, 4), 'f4'), e)
jax.vmap(lambda a, b: a + b)(e, f)
jax.vmap(lambda a, b: a + b)(f, jnp.ones((8, 4)))
jax.jit(jax.vmap(lambda a, b: a + b, in_axes=(0, 1)))(e, jnp.ones((4, 8)))
jax.vmap(lambda a, b: a + b)(e, jax.sharding.reshard(e, P('y')))
jax.vmap(lambda a: a, in_axes=1, spmd_axis_name='x')(e)
jax.vmap(lambda a: a, spmd_axis_name='y')(e)
jax.vmap(lambda a: a, spmd_axis_name=('x', 'y'))(e)
jax.vmap(lambda a: a, spmd_axis_name=())(e)
jax.grad(lambda a: a)(e)
jax.vjp(lambda a: a, e)[1](f)
jax.jvp(lambda a: a, (e,), (f,))
jax.shard_map(lambda a: a, in_specs=P('y'), out_specs=P('x'))(e)
jax.shard_map(lambda a: a, in_specs=P(None, 'y'), out_specs=P('x'))(e)
jax.shard_map(lambda a: a, in_specs=P('x', unreduced={'y'}), out_specs=P('x'))(e)
jax.shard_map(lambda a: a, in_specs=P('x', reduced={'y'}), out_specs=P('x'))(e)
jax.shard_map(lambda a: a, in_specs=P('x'), out_specs=P('x', reduced={'y'}))(e)
jax.shard_map(lambda a: a, in_specs=P('x'), out_specs=P('x', unreduced={'x'}))(e)
jax.shard_map(lambda a: lax.pcast(a, 'x', to='reduced'), out_specs=P('x'))(e)
jax.shard_map(lambda a: lax.pcast(a, 'y', to='unreduced'), out_specs=P('x'))(e)
jax.shard_map(lambda a: lax.pcast(a, 'x', to='unreduced'), out_specs=P('x'))(e)
jax.shard_map(lambda a: jnp.sin(lax.pcast(a, 'x', to='unreduced')), out_specs=P())(e)
"""


def lines(table):
    """The entries of a table."""
    return table.strip().splitlines()


PROGRAMS = []
for _entry in lines(COLLECTIVES):
    _mapped = f"jax.shard_map(lambda a: kept({_entry}, a), mesh=mesh, in_specs=P('x')"
    PROGRAMS += [
        f"{_mapped}, out_specs=P('x'))(x)",
        f"{_mapped}, out_specs=P('x'), check_vma=False)(x)",
        f"jax.vmap(lambda a: {_entry}, axis_name='x')(x.reshape(4, 2, 4))",
    ]
for _entry in lines(SHARD_MAPS):
    _mesh = "" if "mesh=" in _entry else "mesh=mesh, "
    PROGRAMS.append(f"jax.shard_map(lambda a: a, {_mesh}{_entry})(x)")
for _entry in lines(BODIES):
    PROGRAMS.append(
        f"jax.shard_map({_entry}, mesh=mesh, in_specs=P('x'), out_specs=P('x'))(x)"
    )
for _entry in lines(PARTIAL):
    _mapped = f"jax.shard_map(lambda a: kept({_entry}, a), mesh=mesh, in_specs=P('x')"
    PROGRAMS.append(f"jax.jit({_mapped}, out_specs=P('x'), axis_names={{'x'}}))(x)")
for _taker in lines(TAKERS):
    PROGRAMS += [_taker.format(_place) for _place in lines(PLACES)]
# JAX ends the process: XLA fails on a check of its own.
for _taker in (
    "jax.jit(lambda a: a + 1, in_shardings=N(explicit, P('x', unreduced={'y'})))(x)",
    "jax.device_put(x[0, 0], N(explicit, P(unreduced={'x'})))",
):
    PROGRAMS.remove(_taker)
PROGRAMS += [*lines(MESHES), *lines(JITS), *lines(PMAPS)]
PROGRAMS += [f"explicitly: {_entry}" for _entry in lines(EXPLICITS)]


def kept(found, a):
    """Something of the shape of `a` that depends on what was found."""
    return a + 0 * sum(one.ravel()[0] for one in [found] if hasattr(one, "ravel"))


def names(lib):
    """What the expressions may use."""
    jax, kinds = lib.mj, lib.sharding
    devices = np.array(jax.devices())
    x = lib.jnp.asarray(lib.numbers(8, 4))
    row = {"axis_types": (lib.auto,)}
    explicit = lib.make_mesh((4, 2), "xy", lib.explicit)

    def mapped(f, *ins):
        return jax.shard_map(f, mesh=lib.mesh, in_specs=ins, out_specs=lib.P("x"))

    return {
        "jax": jax,
        "jnp": lib.jnp,
        "lax": lib.lax,
        "np": np,
        "P": lib.P,
        "N": lib.Named,
        "Mesh": kinds.Mesh,
        "AbstractMesh": kinds.AbstractMesh,
        "make_mesh": jax.make_mesh,
        "auto": lib.auto,
        "manual": kinds.AxisType.Manual,
        "on": lib.on,
        "on_y": lambda a: lib.lax.with_sharding_constraint(a, lib.on("y")),
        "total_of_reduced": lambda a: lib.lax.pcast(a, "x", to="reduced").sum(),
        "doubled": mapped(lambda a: 2 * a, lib.P("x")),
        "added": mapped(lambda a, b: a + b, lib.P(), lib.P("x")),
        "kept": kept,
        "mesh": lib.mesh,
        "line": lib.line,
        "explicit": explicit,
        "explicit2": lib.make_mesh((8,), "u", lib.explicit),
        "abstract": lib.mesh.abstract_mesh,
        "empty": kinds.Mesh(np.empty((), object), ()),
        "mesh3": kinds.Mesh(devices[:3], ("a",), **row),
        "back": kinds.Mesh(devices[::-1], ("i",), **row),
        "half": kinds.Mesh(devices[:4], ("i",), **row),
        "other": kinds.Mesh(devices[4:], ("i",), **row),
        "x": x,
        "cut": lib.put(x, "x"),
        "there": jax.device_put(x, lib.Named(kinds.Mesh(devices[4:], "i"), lib.P("i"))),
        "at": lambda number: jax.device_put(x, jax.devices()[number]),
        "across": lib.put(x, None, "y"),
        "here": lib.put(x[:4, 0], "i", mesh=kinds.Mesh(devices[:4], ("i",), **row)),
        "e": lib.put(x, "x", mesh=explicit),
        "f": lib.put(x, None, "y", mesh=explicit),
    }


_known: dict[str, dict] = {}


def case(program):
    """The case of one expression: a result is described by its leaves."""

    def run(lib):
        if lib.name not in _known:
            _known[lib.name] = names(lib)
        known = _known[lib.name]
        text = program.removeprefix("explicitly: ")
        if text == program:
            result = eval(text, known)
        else:
            with lib.mj.set_mesh(known["explicit"]):
                result = eval(text, known)
        return [
            np.asarray(leaf)
            if isinstance(leaf, lib.mj.Array) and leaf.dtype.kind in "fiub"
            else type(leaf).__name__
            for leaf in lib.mj.tree_util.tree_leaves(result)
        ]

    return run


CASES = {program: case(program) for program in PROGRAMS}
