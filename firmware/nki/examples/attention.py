"""Flash attention: softmax(q k^T scale) v by blocks of keys, with a running maximum and sum."""

import nki
import nki.isa as nisa
import nki.language as nl


def sbuf(rows, columns, dtype=nl.float32):
    """A tile of SBUF."""
    return nl.ndarray((rows, columns), dtype=dtype, buffer=nl.sbuf)


@nki.jit
def flash_attention(q, k, v, causal=False):
    """q, k, v [tokens, d], d at most pmax -> [tokens, d]. With `causal` a token sees those before it and itself."""
    (tokens, d), size = q.shape, nl.tile_size.pmax
    y = nl.ndarray((tokens, d), dtype=q.dtype, buffer=nl.shared_hbm)
    for first in range(0, tokens, size):
        rows = min(size, tokens - first)
        q_turned = turned(q[first : first + rows, :], rows, d)
        top, total, out = sbuf(rows, 1), sbuf(rows, 1), sbuf(rows, d)
        nisa.memset(dst=top, value=-3.0e38)
        nisa.memset(dst=total, value=0.0)
        nisa.memset(dst=out, value=0.0)
        for begin in range(0, min(first + rows, tokens) if causal else tokens, size):
            keys = min(size, tokens - begin)
            scores_sum = nl.ndarray((rows, keys), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(scores_sum, q_turned, turned(k[begin : begin + keys, :], keys, d))
            scores = sbuf(rows, keys)
            nisa.tensor_scalar(dst=scores, data=scores_sum, op0=nl.multiply, operand0=d**-0.5)
            if causal and begin + keys > first:
                masked = sbuf(rows, keys)
                nisa.affine_select(
                    dst=masked,
                    pattern=[[-1, keys]],
                    offset=first - begin,
                    channel_multiplier=1,
                    on_true_tile=scores,
                    on_false_value=-3.0e38,
                )
                scores = masked
            block_top, next_top, negative = sbuf(rows, 1), sbuf(rows, 1), sbuf(rows, 1)
            nisa.tensor_reduce(dst=block_top, op=nl.max, data=scores, axis=1)
            nisa.tensor_tensor(dst=next_top, data1=top, data2=block_top, op=nl.maximum)
            nisa.tensor_scalar(dst=negative, data=next_top, op0=nl.multiply, operand0=-1.0)
            powers, sums, shrink = sbuf(rows, keys, q.dtype), sbuf(rows, 1), sbuf(rows, 1)
            nisa.activation(dst=powers, op=nl.exp, data=scores, bias=negative, reduce_op=nl.add, reduce_res=sums)
            nisa.activation(dst=shrink, op=nl.exp, data=top, bias=negative)
            nisa.scalar_tensor_tensor(
                dst=total, data=total, op0=nl.multiply, operand0=shrink, op1=nl.add, operand1=sums
            )
            weights_sum = nl.ndarray((keys, rows), dtype=q.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=weights_sum, data=powers)
            weights, values = sbuf(keys, rows, q.dtype), sbuf(keys, d, q.dtype)
            nisa.tensor_copy(dst=weights, src=weights_sum)
            nisa.dma_copy(dst=values, src=v[begin : begin + keys, :])
            product = nl.ndarray((rows, d), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(product, weights, values)
            nisa.scalar_tensor_tensor(dst=out, data=out, op0=nl.multiply, operand0=shrink, op1=nl.add, operand1=product)
            top = next_top
        inverse, done = sbuf(rows, 1), sbuf(rows, d, q.dtype)
        nisa.reciprocal(dst=inverse, data=total)
        nisa.tensor_scalar(dst=done, data=out, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=y[first : first + rows, :], src=done)
    return y


def turned(x, rows, d):
    """x [rows, d] of HBM as [d, rows] in SBUF."""
    tile, found = sbuf(rows, d, x.dtype), sbuf(d, rows, x.dtype)
    nisa.dma_copy(dst=tile, src=x)
    sums = nl.ndarray((d, rows), dtype=x.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=sums, data=tile)
    nisa.tensor_copy(dst=found, src=sums)
    return found
