// Tokens to their k experts of the highest logits, of equal ones the lower. src0[p, b * experts + e] is the logit of
// token b * partitions + p. dst[e, :] = tokens of expert e, ascending, then -1; src1[e, 0] = how many chose it, written
// too, though only as many are in dst as it has columns. FP32 (a NaN is above infinity) or 32-bit integers.
#include "best.h"

template <typename Order>
static void choose(uint8_t *chosen, uint32_t tokens, uint32_t experts, uint32_t k) {
    const gp::Columns<const uint32_t> logits(GP_SRC0);
    for (uint32_t before = logits.number, block = 0; before < tokens; before += logits.partitions, block++) {
        const uint32_t left = tokens - before, rows = left < logits.rows ? left : logits.rows;
        gp::best<Order>(logits.walk(block * experts), experts, rows, k, [=](uint32_t p, const uint32_t *place) {
            for (uint32_t j = 0; j < k; j++) chosen[(before + p) * k + j] = uint8_t(place[j]);
        });
    }
}

/* Each core looks through all choices for those of its own experts. */
static void collect(const uint8_t *chosen, uint32_t tokens, uint32_t k) {
    const gp::Columns<int32_t> lists(GP_DST), counts(GP_SRC1);
    int32_t count[PLEXUS_LANE_BITS] = {};
    const int32_t room = int32_t(lists.count[0]);
    const uint32_t rows = lists.rows, first = lists.number;
    if (!rows) return;
    for (uint32_t token = 0; token < tokens; token++)
        for (uint32_t j = 0; j < k; j++) {
            const uint32_t p = *chosen++ - first;
            if (p < rows && count[p]++ < room) lists[uint32_t(count[p]) - 1][p] = int32_t(token);
        }
    for (uint32_t p = 0; p < rows; p++) {
        auto out = lists.walk(uint32_t(count[p]));
        for (int32_t i = count[p]; i < room; i++, out.next()) out[p] = -1;
        counts[0][p] = count[p];
    }
}

GP_ENTRY(route) {
    const uint32_t tokens = GP_OPERATOR(ROUTE_TOKENS), experts = GP_OPERATOR(ROUTE_EXPERTS), k = GP_OPERATOR(ROUTE_K);
    uint8_t *chosen = static_cast<uint8_t *>(gp_shared(0));
    if (gp_pattern_of(GP_SRC0).dtype == PLEXUS_DTYPE_FP32) choose<gp::Float>(chosen, tokens, experts, k);
    else choose<gp::Signed>(chosen, tokens, experts, k);
    gp_barrier();
    collect(chosen, tokens, k);
    return 0;
}
