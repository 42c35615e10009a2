// dst[p, 0] = sum of row p of a matrix in HBM, 32-bit integers that wrap: at gp_imm1(), with gp_imm2() columns, more than
// SBUF holds if it likes. src0 is a buffer with as many partitions, of two halves: the DMA fills one while a core sums
// the other.
#include <plexus/view.h>

static gp_descriptor fill;

GP_ENTRY(row_sums) {
    const gp::View<const int32_t> buffer(GP_SRC0);
    const gp::View<int32_t> sum(GP_DST);
    const uint32_t first = buffer.begin(), rows = buffer.end() - first, half = buffer.count() / 2;
    const uint32_t columns = uint32_t(gp_imm2()), number = gp_core() * gp_lanes() + first;
    if (!rows || !half) return rows ? 1 : 0;

    const uint32_t here = uint32_t(gp_imm1() >> PLEXUS_CORE_ID_LSB), row_bytes = columns * 4;
    const uint64_t matrix = gp_imm1() + uint64_t(number - buffer.pattern().partition_start) * row_bytes;
    const auto start = [&](uint32_t column, uint32_t which) {
        const uint32_t left = columns - column, width = left < half ? left : half;
        const uint64_t to = uint64_t(number) * PLEXUS_PARTITION_STRIDE_BYTES + buffer.pattern().offset + which * half * 4;
        gp_descriptor_copy(&fill, gp_address(PLEXUS_SPACE_SBUF, to, here), matrix + column * 4, width * 4, rows,
                           PLEXUS_PARTITION_STRIDE_BYTES, row_bytes);
        gp_dma_push(&fill); // has been read then: the next may take its place
    };

    for (uint32_t p = 0; p < rows; p++) sum(first + p, 0) = 0;
    if (columns) start(0, 0);
    for (uint32_t column = 0, piece = 0; column < columns; column += half, piece++) {
        if (column + half < columns) start(column + half, ~piece & 1);
        gp_dma_wait(piece + 1);
        const uint32_t left = columns - column, width = left < half ? left : half;
        for (uint32_t p = 0; p < rows; p++) {
            const int32_t *row = buffer.row(first + p) + (piece & 1) * half;
            uint32_t total = 0;
            for (uint32_t i = 0; i < width; i++) total += uint32_t(row[i]);
            sum(first + p, 0) = int32_t(uint32_t(sum(first + p, 0)) + total);
        }
    }
    return 0;
}
