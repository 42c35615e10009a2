"""Kernels of rows: sum of two arrays on a grid, transpose, softmax, RMSNorm. In the older style."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def add_tile(a, b):
    """An instance of the grid adds a tile of pmax rows and 64 columns."""
    c = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows = nl.program_id(0) * nl.tile_size.pmax + nl.arange(nl.tile_size.pmax)[:, None]
    columns = nl.program_id(1) * 64 + nl.arange(64)[None, :]
    inside = (rows < a.shape[0]) & (columns < a.shape[1])
    total = nl.load(a[rows, columns], mask=inside) + nl.load(b[rows, columns], mask=inside)
    nl.store(c[rows, columns], value=total, mask=inside)
    return c


def add(a, b):
    """a + b of any shape [M, N]."""
    return add_tile[-(-a.shape[0] // nl.tile_size.pmax), -(-a.shape[1] // 64)](a, b)


@nki.jit
def transpose(x):
    """x [M, N] -> [N, M], by tiles through the array."""
    (m_size, n_size), size = x.shape, nl.tile_size.pmax
    y = nl.ndarray((n_size, m_size), dtype=x.dtype, buffer=nl.shared_hbm)
    for m in range(0, m_size, size):
        for n in range(0, n_size, size):
            m_end, n_end = min(m + size, m_size), min(n + size, n_size)
            turned = nisa.nc_transpose(nl.load(x[m:m_end, n:n_end]))
            nl.store(y[n:n_end, m:m_end], value=turned)
    return y


@nki.jit
def softmax(x):
    """Rows of x [M, N]; the sum comes from the accumulator of the scalar engine."""
    (rows, columns), size = x.shape, nl.tile_size.pmax
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for first in nl.affine_range(0, rows, size):
        end = min(first + size, rows)
        tile = nl.load(x[first:end, 0:columns], dtype=nl.float32)
        top = nisa.tensor_reduce(nl.max, tile, axis=1, negate=True)
        total = nl.ndarray((end - first, 1), dtype=nl.float32, buffer=nl.sbuf)
        powers = nisa.activation(
            op=nl.exp, data=tile, bias=top, reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce
        )
        nl.store(y[first:end, 0:columns], value=nl.multiply(powers, nisa.reciprocal(total), dtype=x.dtype))
    return y


@nki.jit
def rmsnorm(x, weight, epsilon=1e-5):
    """Rows of x [M, N] by the root of their mean square, times weight [N]."""
    (rows, columns), size = x.shape, nl.tile_size.pmax
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    scale = nl.load(weight.reshape((1, columns)))
    for first in nl.affine_range(0, rows, size):
        end = min(first + size, rows)
        tile = nl.load(x[first:end, :])
        mean = nl.mean(nl.square(tile, dtype=nl.float32), axis=1)
        normal = tile * nl.rsqrt(mean + epsilon)
        nl.store(y[first:end, :], value=normal * scale.broadcast_to((end - first, columns)))
    return y
