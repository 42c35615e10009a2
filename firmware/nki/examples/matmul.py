"""A matrix product by tiles of the configuration."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def matmul_tiled(a_t, b):
    """a_t [K, M], b [K, N] -> [M, N]; tiles of what the array takes, the last ones smaller."""
    (k_size, m_size), (_, n_size) = a_t.shape, b.shape
    rows, columns, wide = nl.tile_size.pmax, nl.tile_size.gemm_stationary_fmax, nl.tile_size.gemm_moving_fmax
    c = nl.ndarray((m_size, n_size), dtype=a_t.dtype, buffer=nl.shared_hbm)
    for m in range(0, m_size, columns):
        m_end = min(m + columns, m_size)
        for n in range(0, n_size, wide):
            n_end = min(n + wide, n_size)
            sums = nl.ndarray((m_end - m, n_end - n), dtype=nl.float32, buffer=nl.psum)
            for k in range(0, k_size, rows):
                k_end = min(k + rows, k_size)
                left = nl.ndarray((k_end - k, m_end - m), dtype=a_t.dtype, buffer=nl.sbuf)
                right = nl.ndarray((k_end - k, n_end - n), dtype=b.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=left, src=a_t[k:k_end, m:m_end])
                nisa.dma_copy(dst=right, src=b[k:k_end, n:n_end])
                nisa.nc_matmul(dst=sums, stationary=left, moving=right)
            out = nl.ndarray(sums.shape, dtype=c.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=out, src=sums)
            nisa.dma_copy(dst=c[m:m_end, n:n_end], src=out)
    return c
