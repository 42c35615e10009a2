// dst[p, :] = the k largest of src0[p, :], the largest first, and src1[p, :] = their columns, written too. Of equal
// elements the lower column comes first. FP32 (a NaN is above infinity, zeros are equal) or 32-bit integers.
#include "tournament.h"

template <typename Order>
static void rows(const gp::Columns<const uint32_t> &from, const gp::Columns<uint32_t> &values,
                 const gp::Columns<uint32_t> &columns, uint32_t k) {
    gp::best<Order>(from.walk(), from.count[0], from.rows, k, [&](uint32_t p, const uint32_t *place) {
        for (uint32_t j = 0; j < k; j++) {
            values[j][p] = from[place[j]][p];
            columns[j][p] = place[j];
        }
    });
}

GP_ENTRY(topk) {
    const gp::Columns<const uint32_t> from(GP_SRC0);
    const gp::Columns<uint32_t> values(GP_DST), columns(GP_SRC1);
    const uint32_t k = GP_OPERATOR(TOPK_K);
    const bool floats = from.dtype == PLEXUS_DTYPE_FP32;
#ifdef __riscv_vector
    gp::Tournament all(k);
    if (all.fits() && from.rows == gp_lanes() && uint32_t(from.step[0]) == from.rows) {
        bool is_value = true, done = all.run(from[0], from.count[0], floats ? gp::POSITIVES : gp::INTEGERS);
        if (!done && floats) is_value = false, done = all.run(from[0], from.count[0], gp::ANY_FLOATS);
        if (done) {
            gp::Walk<const uint32_t> column = {all.columns().at, int32_t(from.rows)};
            gp::copy(columns.walk(), column, k, from.rows);
            if (is_value) gp::copy(values.walk(), all.keys(), k, from.rows);
            else
                for (uint32_t j = 0; j < k; j++, column.next())
                    for (uint32_t p = 0; p < from.rows; p++) values[j][p] = from[column[p]][p];
            return 0;
        }
    }
#endif
    if (floats) rows<gp::Float>(from, values, columns, k);
    else rows<gp::Signed>(from, values, columns, k);
    return 0;
}
