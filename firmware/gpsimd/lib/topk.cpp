// dst[p, :] = the k largest of src0[p, :], the largest first, and src1[p, :] = their columns, written too. Of equal
// elements the lower column comes first. FP32 (a NaN is above infinity, zeros are equal) or 32-bit integers.
#include "best.h"

template <typename Order>
static void rows() {
    const gp::Columns<const uint32_t> from(GP_SRC0);
    const gp::Columns<uint32_t> values(GP_DST), columns(GP_SRC1);
    const uint32_t k = GP_OPERATOR(TOPK_K);
    gp::best<Order>(from.walk(), from.count[0], from.rows, k, [&](uint32_t p, const uint32_t *place) {
        for (uint32_t j = 0; j < k; j++) {
            values[j][p] = from[place[j]][p];
            columns[j][p] = place[j];
        }
    });
}

GP_ENTRY(topk) {
    if (gp_pattern_of(GP_SRC0).dtype == PLEXUS_DTYPE_FP32) rows<gp::Float>();
    else rows<gp::Signed>();
    return 0;
}
