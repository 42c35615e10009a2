"""RMSNorm fused with a matrix product: rows are normalised, turned and multiplied without going back to HBM."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def rmsnorm_matmul(x, weight, epsilon=1e-5):
    """x [M, K], weight [K, N] -> rmsnorm(x) weight, [M, N]. The factor of a row is applied to its sums, so that x is
    read once."""
    (m_size, k_size), n_size, size = x.shape, weight.shape[1], nl.tile_size.pmax
    wide = nl.tile_size.gemm_moving_fmax
    y = nl.ndarray((m_size, n_size), dtype=x.dtype, buffer=nl.shared_hbm)
    steps = [(k, min(k + size, k_size)) for k in range(0, k_size, size)]
    weights = []
    for k, end in steps:
        tile = nl.ndarray((end - k, n_size), dtype=weight.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=weight[k:end, :])
        weights.append(tile)
    for m in range(0, m_size, size):
        rows = min(size, m_size - m)
        tile = nl.ndarray((rows, k_size), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[m : m + rows, :])
        squares = nl.ndarray((rows, k_size), dtype=nl.float32, buffer=nl.sbuf)
        factor = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=factor)
        nisa.tensor_scalar(dst=factor, data=factor, op0=nl.multiply, operand0=1 / k_size, op1=nl.add, operand1=epsilon)
        nisa.activation(dst=factor, op=nl.rsqrt, data=factor)
        turned = []
        for k, end in steps:
            sums = nl.ndarray((end - k, rows), dtype=x.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=sums, data=tile[:, k:end])
            column = nl.ndarray((end - k, rows), dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=column, src=sums)
            turned.append(column)
        for n in range(0, n_size, wide):
            n_end = min(n + wide, n_size)
            product = nl.ndarray((rows, n_end - n), dtype=nl.float32, buffer=nl.psum)
            for column, tile_of_weight in zip(turned, weights, strict=True):
                nisa.nc_matmul(dst=product, stationary=column, moving=tile_of_weight[:, n:n_end])
            out = nl.ndarray((rows, n_end - n), dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_scalar(dst=out, data=product, op0=nl.multiply, operand0=factor)
            nisa.dma_copy(dst=y[m : m + rows, n:n_end], src=out)
    return y
