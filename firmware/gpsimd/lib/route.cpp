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
 * bit for each of its lanes for each token, eight tokens in the order of registers: a mask of eight of them. */
class ByMasks {
  public:
    ByMasks(uint32_t tokens_, uint32_t experts_, uint32_t k)
        : logits(GP_SRC0), lists(GP_DST), counts(GP_SRC1), all(k), tokens(tokens_), experts(experts_),
          lanes(gp_lanes()), bytes((tokens + lanes - 1) / lanes * lanes * lanes / 8) {}

    /* Whether it can be done so, the same on all cores. */
    bool suits() const {
        const uint32_t room = lists.count[0];
        return lanes >= 8 && (logits.start | logits.partitions | lists.start) % lanes == 0 &&
               uint32_t(logits.step[0]) == lanes && experts <= gp::Tournament::FLAT && all.fits() &&
               (experts + lanes - 1) / lanes * bytes <= PLEXUS_SHARED_BYTES &&
               MASKS + mask_rows() + (room > tokens ? room : tokens) <= table.rows;
    }

    void choose(gp::Keys keys) {
        if (!logits.rows) return;
        uint32_t first = logits.number;
        for (auto in = logits.walk(); first < tokens;) {
            const uint32_t left = (tokens - first - 1) / logits.partitions + 1,
                           several = left < gp::Tournament::AT_ONCE ? left : gp::Tournament::AT_ONCE;
            if (!all.run_several(in.at, experts, several, keys)) {
                if (keys == gp::POSITIVES) all.run_several(in.at, experts, several, gp::ANY_FLOATS);
                else
                    for (uint32_t n = 0; n < several; n++)
                        one_by_one({in.at + n * experts * lanes, in.step}, all.columns_of_several(n).at);
            }
            for (uint32_t n = 0; n < several; n++, first += logits.partitions, in.at += experts * lanes)
                share(first, all.columns_of_several(n).at);
        }
    }

    /* Each lane stores tokens to rows of its own; where the next goes grows with each that is its. */
    void collect() {
        if (!lists.rows) return;
        uint32_t *const zeros = table.at, *const numbers = table[8], *const masks = table[MASKS];
        uint32_t *const to = table[MASKS + mask_rows()];
        const uint32_t room = lists.count[0];
        gp::copy({masks, 0}, {shared_masks(lists.number / lanes), 0}, 1, bytes / 4);
        gp::clear(zeros, 8 * lanes, 0);
        gp::put(numbers, gp::eight(__riscv_vmv_v_x_u32m1(uint32_t(-8), gp::FULL), 1), gp::FULL);
        const vuint32m1_t begin = __riscv_vsll(__riscv_vid_v_u32m1(gp::FULL), 2, gp::FULL);
        vuint32m1_t count = store_all(begin, masks, to);
        count = __riscv_vsrl(__riscv_vsub(count, begin, gp::FULL), uint32_t(__builtin_ctz(row_bytes())), gp::FULL);
        __riscv_vse32(counts[0], count, lists.rows);
        const uint32_t least = __riscv_vmv_x(__riscv_vredminu(count, count, gp::FULL)),
                       most = __riscv_vmv_x(__riscv_vredmaxu(count, count, gp::FULL));
        const uint32_t full = least < room ? least : room, rows = lists.rows, wide = lanes;
        const uint32_t step = uint32_t(lists.step[0]);
        const uint32_t some = step == rows && most < room ? most : room; /* behind those all are -1 */
        const uint32_t *from = to + full * lanes;
        uint32_t *out = lists[full];
        gp::copy(lists.walk(), {to, int32_t(lanes)}, full, rows);
        for (uint32_t i = full; i < some; i++, from += wide, out += step) {
            const vuint32m1_t token = __riscv_vle32_v_u32m1(from, rows);
            __riscv_vse32(out, __riscv_vmerge(token, uint32_t(-1), __riscv_vmsleu(count, i, rows), rows), rows);
        }
        if (some < room) gp::clear(out, (room - some) * rows, uint32_t(-1));
    }

  private:
    static constexpr uint32_t MASKS = 16; /* rows before them */

    uint32_t row_bytes() const { return table.row_bytes(); }
    uint32_t mask_rows() const { return (bytes + row_bytes() - 1) / row_bytes(); }

    /* Tokens of all masks from `at` on; gives where the next would go. Eight at once: v8 is a row for each that is
     * there, v24 where each goes, sums of those before it: of v8, by twos (v4) and by fours (v2). v16 are the tokens,
     * which grow while sums wait. */
    vuint32m1_t store_all(vuint32m1_t at, const uint32_t *masks, uint32_t *to) const {
        const uint32_t *const end = masks + bytes / 4;
        uint32_t x;
        register vuint32m1_t now asm("v1") = at;
        asm volatile("vl8re32.v v8, (%[zeros])\n"
                     "vl8re32.v v16, (%[numbers])\n"
                     "1: vsetvli %[x], zero, e32, m8, ta, mu\n"
                     "vlm.v v0, (%[masks])\n"
                     "add %[masks], %[masks], %[lanes]\n"
                     "vadd.vx v8, v8, %[row], v0.t\n"
                     "vsetvli %[x], zero, e32, m4, ta, ma\n"
                     "vadd.vv v4, v8, v12\n"
                     "vadd.vi v16, v16, 8\n"
                     "vsetvli %[x], zero, e32, m2, ta, ma\n"
                     "vadd.vv v2, v4, v6\n"
                     "vsetvli %[x], zero, e32, m4, ta, ma\n"
                     "vadd.vi v20, v20, 8\n"
                     "vsetvli %[x], zero, e32, m1, ta, ma\n"
                     "vadd.vv v25, %[now], v2\n"
                     "vmv.v.v v24, %[now]\n"
                     "vsetvli %[x], zero, e32, m2, ta, ma\n"
                     "vadd.vv v26, v24, v4\n"
                     "vsetvli %[x], zero, e32, m1, ta, ma\n"
                     "vadd.vv %[now], v25, v3\n"
                     "vsetvli %[x], zero, e32, m4, ta, ma\n"
                     "vadd.vv v28, v24, v8\n"
                     "vl8re32.v v8, (%[zeros])\n"
                     "vsetvli %[x], zero, e32, m8, ta, mu\n"
                     "vsuxei32.v v16, (%[to]), v24, v0.t\n"
                     "bltu %[masks], %[end], 1b\n"
                     : [now] "+&vr"(now), [masks] "+&r"(masks), [x] "=&r"(x)
                     : [zeros] "r"(table.at), [numbers] "r"(table[8]), [lanes] "r"(lanes), [row] "r"(row_bytes()),
                       [to] "r"(to), [end] "r"(end)
                     : "memory", "vtype", "vl", "v0", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
                       "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",
                       "v25", "v26", "v27", "v28", "v29", "v30", "v31");
        return now;
    }
    uint32_t *shared_masks(uint32_t core) const { return gp::shared(core * bytes / 4); }

    /* Integers, of which some that are chosen are the least that there is. */
    void one_by_one(gp::Walk<const uint32_t> in, uint32_t *to) const {
        int32_t key[gp::Tournament::K_MOST];
        uint32_t place[gp::Tournament::K_MOST];
        for (uint32_t p = 0; p < lanes; p++, in.at++) {
            gp::largest<gp::Signed>(in, experts, all.k, key, place);
            for (uint32_t j = 0; j < all.k; j++) to[j * lanes + p] = place[j];
        }
    }

    /* Bits of what these tokens chose. */
    void share(uint32_t first, const uint32_t *chosen) const {
        const size_t vl = gp::length(all.k * lanes);
        const uint32_t wide = lanes, all_experts = experts, left = tokens - first, step = bytes;
        uint8_t *to = reinterpret_cast<uint8_t *>(gp::shared()) + first * wide / 8;
        const vuint32m1_t lane = __riscv_vid_v_u32m1(gp::FULL);
        /* the order of registers: bits 0 and 2 of the number change places */
        vuint32m1_t turned = __riscv_vor(__riscv_vand(__riscv_vsrl(lane, 2, gp::FULL), 1, gp::FULL),
                                         __riscv_vand(__riscv_vsll(lane, 2, gp::FULL), 4, gp::FULL), gp::FULL);
        turned = __riscv_vor(turned, __riscv_vand(lane, uint32_t(-6), gp::FULL), gp::FULL);
        for (uint32_t from = 0; from < all_experts; from += 32) {
            const gp::Vector none = gp::all(0, gp::FULL);
            const gp::Vector expert = __riscv_vsub(gp::fetch(chosen, vl), from, vl);
            const gp::Mask here = __riscv_vmsltu(expert, 32, vl);
            const gp::Vector bits = __riscv_vsll_tumu(here, none, gp::all(1, vl), expert, vl);
            const vuint32m4_t four = __riscv_vor(__riscv_vget_u32m4(bits, 0), __riscv_vget_u32m4(bits, 1), gp::FULL);
            const vuint32m2_t two = __riscv_vor(__riscv_vget_u32m2(four, 0), __riscv_vget_u32m2(four, 1), gp::FULL);
            vuint32m1_t word = __riscv_vor(__riscv_vget_u32m1(two, 0), __riscv_vget_u32m1(two, 1), gp::FULL);
            word = __riscv_vmerge(word, 0, __riscv_vmsgeu(lane, left, gp::FULL), gp::FULL);
            word = __riscv_vrgather(word, turned, gp::FULL);
            for (uint32_t shift = 0; shift < 32 && from + shift < all_experts; shift += wide, to += step) {
                const vuint16mf2_t half = __riscv_vnsrl(word, shift, gp::FULL);
                if (wide == 8) __riscv_vse8(to, __riscv_vnsrl(half, 0, gp::FULL), gp::FULL);
                else
                    __riscv_vse32(reinterpret_cast<uint32_t *>(to),
                                  __riscv_vreinterpret_u32m1(__riscv_vlmul_ext_u16m1(half)), wide / 2);
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
        gp::meet();
        by_masks.collect();
        return 0;
    }
#endif
    uint8_t *chosen = static_cast<uint8_t *>(gp_shared(0));
    if (floats) choose<gp::Float>(chosen, tokens, experts, k);
    else choose<gp::Signed>(chosen, tokens, experts, k);
    gp::meet();
    collect(chosen, tokens, k);
    return 0;
}
