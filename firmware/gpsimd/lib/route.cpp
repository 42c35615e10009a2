// Tokens to their k experts of the highest logits, of equal ones the lower. src0[p, b * experts + e] is the logit of
// token b * partitions + p. dst[e, :] = tokens of expert e, ascending, then -1; src1[e, 0] = how many chose it, written
// too, though only as many are in dst as it has columns. FP32 (a NaN is above infinity) or 32-bit integers.
#include "tournament.h"

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

#ifdef __riscv_vector

/* All lanes at once. What cores share is then a bit for each token and expert: an array for each core of experts, of a
 * bit for each of its lanes for each token, eight tokens in the order of registers. So it is a mask of eight registers. */
class ByMasks {
  public:
    ByMasks(uint32_t tokens_, uint32_t experts_, uint32_t k)
        : logits(GP_SRC0), lists(GP_DST), counts(GP_SRC1), all(k), tokens(tokens_), experts(experts_),
          lanes(gp_lanes()), bytes((tokens + 7) / 8 * lanes) {}

    /* Whether it can be done so, the same on all cores. */
    bool suits() const {
        const uint32_t room = lists.count[0], mask_rows = (bytes + row_bytes() - 1) / row_bytes();
        return lanes >= 8 && experts <= gp::Tournament::FLAT && (logits.number | logits.partitions | lists.number) % lanes == 0 &&
               uint32_t(logits.step[0]) == lanes && all.fits() && (experts + lanes - 1) / lanes * bytes <= PLEXUS_SHARED_BYTES &&
               MASKS + mask_rows + (room > tokens ? room : tokens) <= table.rows;
    }

    void choose(gp::Keys keys) {
        if (!logits.rows) return;
        for (uint32_t first = logits.number, block = 0; first < tokens; first += logits.partitions, block++) {
            const uint32_t *const in = logits[block * experts];
            if (!all.run(in, experts, keys)) {
                if (keys == gp::POSITIVES) all.run(in, experts, gp::ANY_FLOATS);
                else one_by_one(logits.walk(block * experts));
            }
            share(first);
        }
    }

    /* Each lane stores tokens to rows of its own; where the next goes grows with each that is its. */
    void collect() {
        if (!lists.rows) return;
        uint32_t *const zeros = table.at, *const numbers = table[8];
        uint8_t *mask = reinterpret_cast<uint8_t *>(table[MASKS]);
        uint32_t *const to = table[MASKS + (bytes + row_bytes() - 1) / row_bytes()];
        const uint32_t row = row_bytes(), room = lists.count[0];
        gp::copy({table[MASKS], 0}, {shared_masks(lists.number / lanes), 0}, 1, bytes / 4);
        gp::clear(zeros, 8 * lanes, 0);
        gp::put(numbers, gp::eight(__riscv_vmv_v_x_u32m1(0, gp::FULL), 1), gp::FULL);
        gp::clear(to, room * lanes, uint32_t(-1));
        const vuint32m1_t begin = __riscv_vsll(__riscv_vid_v_u32m1(gp::FULL), 2, gp::FULL);
        vuint32m1_t at = begin;
        for (uint32_t token = 0; token < tokens; token += 8, mask += lanes) {
            const gp::Mask is = __riscv_vlm_v_b4(mask, 8 * lanes);
            gp::Vector further = gp::fetch(zeros, gp::FULL), number = gp::fetch(numbers, gp::FULL);
            further = __riscv_vadd_mu(is, further, further, row, gp::FULL);
            const vuint32m4_t even = __riscv_vget_u32m4(further, 0);
            const vuint32m4_t two = __riscv_vadd(even, __riscv_vget_u32m4(further, 1), gp::FULL);
            const vuint32m2_t first = __riscv_vget_u32m2(two, 0);
            const vuint32m2_t four = __riscv_vadd(first, __riscv_vget_u32m2(two, 1), gp::FULL);
            const vuint32m1_t half = __riscv_vadd(at, __riscv_vget_u32m1(four, 0), gp::FULL);
            const vuint32m2_t ends = __riscv_vcreate_v_u32m1_u32m2(at, half);
            at = __riscv_vadd(half, __riscv_vget_u32m1(four, 1), gp::FULL);
            const vuint32m4_t places = __riscv_vcreate_v_u32m2_u32m4(ends, __riscv_vadd(ends, first, gp::FULL));
            const gp::Vector place = __riscv_vcreate_v_u32m4_u32m8(places, __riscv_vadd(places, even, gp::FULL));
            __riscv_vsuxei32(is, to, place, __riscv_vadd(number, token, gp::FULL), gp::FULL);
        }
        gp::copy(lists.walk(), {to, int32_t(lanes)}, room, lists.rows);
        at = __riscv_vsrl(__riscv_vsub(at, begin, gp::FULL), uint32_t(__builtin_ctz(row)), gp::FULL);
        __riscv_vse32(counts[0], at, lists.rows);
    }

  private:
    static constexpr uint32_t MASKS = 16; /* rows before them */

    uint32_t row_bytes() const { return table.row_bytes(); }
    uint32_t *shared_masks(uint32_t core) const { return gp::shared(core * bytes / 4); }

    /* Integers, of which some that are chosen are the least that there is. */
    void one_by_one(gp::Walk<const uint32_t> in) const {
        gp::best<gp::Signed>(in, experts, lanes, all.k, [&](uint32_t p, const uint32_t *place) {
            for (uint32_t j = 0; j < all.k; j++) all.columns()[j * lanes + p] = place[j];
        });
    }

    /* Bits of what these tokens chose. */
    void share(uint32_t first) const {
        const size_t vl = gp::length(all.k * lanes);
        const vuint32m1_t lane = __riscv_vid_v_u32m1(gp::FULL);
        for (uint32_t from = 0, core = 0; from < experts; from += 32) {
            const gp::Vector none = gp::all(0, gp::FULL);
            const gp::Vector expert = __riscv_vsub(gp::fetch(all.columns().at, vl), from, vl);
            const gp::Vector bit = __riscv_vsll(gp::all(1, vl), expert, vl);
            const gp::Vector bits = __riscv_vmerge_tu(none, none, bit, __riscv_vmsltu(expert, 32, vl), vl);
            const vuint32m4_t four = __riscv_vor(__riscv_vget_u32m4(bits, 0), __riscv_vget_u32m4(bits, 1), gp::FULL);
            const vuint32m2_t two = __riscv_vor(__riscv_vget_u32m2(four, 0), __riscv_vget_u32m2(four, 1), gp::FULL);
            vuint32m1_t word = __riscv_vor(__riscv_vget_u32m1(two, 0), __riscv_vget_u32m1(two, 1), gp::FULL);
            word = __riscv_vmerge(word, 0, __riscv_vmsgeu(lane, tokens - first, gp::FULL), gp::FULL);
            /* the order of registers: bits 0 and 2 of the number change places */
            vuint32m1_t turned = __riscv_vor(__riscv_vand(__riscv_vsrl(lane, 2, gp::FULL), 1, gp::FULL),
                                             __riscv_vand(__riscv_vsll(lane, 2, gp::FULL), 4, gp::FULL), gp::FULL);
            turned = __riscv_vor(turned, __riscv_vand(lane, uint32_t(-6), gp::FULL), gp::FULL);
            word = __riscv_vrgather(word, turned, gp::FULL);
            for (uint32_t shift = 0; shift < 32 && from + shift < experts; shift += lanes, core++) {
                const vuint16mf2_t half = __riscv_vnsrl(word, shift, gp::FULL);
                uint8_t *const to = reinterpret_cast<uint8_t *>(shared_masks(core)) + first * lanes / 8;
                if (lanes == 8) __riscv_vse8(to, __riscv_vnsrl(half, 0, gp::FULL), gp::FULL);
                else
                    __riscv_vse32(reinterpret_cast<uint32_t *>(to),
                                  __riscv_vreinterpret_u32m1(__riscv_vlmul_ext_u16m1(half)), lanes / 2);
            }
        }
    }

    const gp::Columns<const uint32_t> logits;
    const gp::Columns<uint32_t> lists, counts;
    gp::Tournament all;
    const gp::Table table;
    const uint32_t tokens, experts, lanes, bytes; /* of the masks of a core */
};

#endif

GP_ENTRY(route) {
    const uint32_t tokens = GP_OPERATOR(ROUTE_TOKENS), experts = GP_OPERATOR(ROUTE_EXPERTS), k = GP_OPERATOR(ROUTE_K);
    const bool floats = gp_pattern_of(GP_SRC0).dtype == PLEXUS_DTYPE_FP32;
#ifdef __riscv_vector
    ByMasks by_masks(tokens, experts, k);
    if (by_masks.suits()) {
        by_masks.choose(!floats ? gp::INTEGERS : 4 * k > experts ? gp::ANY_FLOATS : gp::POSITIVES);
        gp_barrier();
        by_masks.collect();
        return 0;
    }
#endif
    uint8_t *chosen = static_cast<uint8_t *>(gp_shared(0));
    if (floats) choose<gp::Float>(chosen, tokens, experts, k);
    else choose<gp::Signed>(chosen, tokens, experts, k);
    gp_barrier();
    collect(chosen, tokens, k);
    return 0;
}
