// dst[0, i] = sum, max or min over all partitions of src0[p, i], 32-bit integers with sign; sums wrap.
// Each core reduces its own partitions; what they left in shared memory is reduced by all but the one that stores it.
#include "lanes.h"

#define GP_REDUCTION(name, without, scalar, vector) \
    struct name {                                   \
        static constexpr int32_t nothing = without; \
        GP_OF_INTEGERS(scalar)                      \
        GP_OF_VECTORS(vector)                       \
    }
#ifdef __riscv_vector
#define GP_OF_INTEGERS(scalar)
#define GP_OF_VECTORS(vector) \
    static gp::SignedVector of(gp::SignedVector a, gp::SignedVector b, size_t vl) { return vector(a, b, vl); }
#else
#define GP_OF_INTEGERS(scalar) \
    static int32_t of(int32_t a, int32_t b) { return scalar; }
#define GP_OF_VECTORS(vector)
#endif
GP_REDUCTION(Sum, 0, int32_t(uint32_t(a) + uint32_t(b)), __riscv_vadd);
GP_REDUCTION(Max, INT32_MIN, a > b ? a : b, __riscv_vmax);
GP_REDUCTION(Min, INT32_MAX, a < b ? a : b, __riscv_vmin);

#ifdef __riscv_vector
/* `count` neighbours, `step` words apart, of each of `vl` words from `at` on. */
template <typename Op>
[[gnu::noinline]] static void fold(int32_t *to, const int32_t *at, uint32_t count, uint32_t step, size_t vl) {
    gp::SignedVector value = __riscv_vle32_v_i32m8(at, vl);
    while (--count) value = Op::of(value, __riscv_vle32_v_i32m8(at += step, vl), vl);
    __riscv_vse32(to, value, vl);
}

struct Any {
    int32_t nothing;
    void (*fold)(int32_t *to, const int32_t *at, uint32_t count, uint32_t step, size_t vl);
};
template <typename Op>
static constexpr Any any = {Op::nothing, fold<Op>};

/* Blocks of eight columns for each lane, that lie from `in` to `end` or in `table` already, to `vl` words of `to` each:
 * of every column the words of `lanes` partitions, whose first are at `places`. What came of a block (v0) is stored in
 * the next one, while words are looked up, for all cores store at once. */
#define GP_WORDS(operation, then)           \
    "vluxei32.v v24, (%[at]), v8\n"         \
    "addi %[at], %[at], 4\n" operation      \
    ".vv v16, v16, v24\n"                   \
    "bne %[at], %[last], " then "\n"
[[gnu::noinline]] static void across(int32_t nothing, int32_t *to, int32_t *table, const uint32_t *places,
                                     uint32_t lanes, size_t vl, const int32_t *in, const int32_t *end) {
    int32_t *before = to, *at;
    asm volatile("vsetvli zero, %[vl], e32, m8, ta, ma\n"
                 "vle32.v v8, (%[places])\n"
                 "1: beq %[in], %[end], 3f\n"
                 "mv %[at], %[table]\n"
                 "2: vle32.v v24, (%[in])\n"
                 "add %[in], %[in], %[bytes]\n"
                 "vse32.v v24, (%[at])\n"
                 "add %[at], %[at], %[pitch]\n"
                 "bne %[at], %[filled], 2b\n"
                 "3: vluxei32.v v16, (%[table]), v8\n"
                 "addi %[at], %[table], 4\n"
                 "vse32.v v0, (%[before])\n"
                 "bltz %[nothing], 5f\n"
                 "bgtz %[nothing], 6f\n"
                 "4: " GP_WORDS("vadd", "4b") "j 7f\n"
                 "5: " GP_WORDS("vmax", "5b") "j 7f\n"
                 "6: " GP_WORDS("vmin", "6b")
                 "7: vmv.v.v v0, v16\n"
                 "mv %[before], %[to]\n"
                 "add %[to], %[to], %[bytes]\n"
                 "bne %[in], %[end], 1b\n"
                 "vse32.v v0, (%[before])"
                 : [to] "+&r"(to), [before] "+&r"(before), [in] "+&r"(in), [at] "=&r"(at)
                 : [nothing] "r"(nothing), [table] "r"(table), [places] "r"(places), [vl] "r"(vl), [end] "r"(end),
                   [bytes] "r"(4 * vl), [pitch] "r"(4 * vl + 4), [filled] "r"(table + lanes * (vl + 1)),
                   [last] "r"(table + lanes)
                 : "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",
                   "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
                   "v28", "v29", "v30", "v31");
}

/* Columns of the partitions of a core to blocks of results. A block has a group of eight columns for each of L lanes;
 * what comes of column 8 g + k of it is word L k + g, so that a row of lanes can be stored from any word on. In a table
 * in local memory its groups lie one behind the other with a word between, so that the words of one partition of all
 * groups are in different banks. What is done once for a piece is as small as can be, for the image has little room. */
struct Blocks {
    static constexpr uint32_t GROUP = 8;

    [[clang::minsize]] Blocks(const Any &op_, uint32_t rows_, int32_t step_)
        : op(op_), lanes(gp_lanes()), rows(rows_), step(step_), words(GROUP * lanes) {
        const gp::Table all;
        const uint32_t pitch = words + 1;
        uint32_t clears = lanes * pitch;
        const bool roomy = words + clears <= all.rows * lanes;
        at_once = roomy ? GROUP : 1;
        if (!roomy) clears = lanes;
        places = roomy ? all.at : gp::scratch;
        uint32_t *const first = places + (roomy ? words : lanes);
        table = reinterpret_cast<int32_t *>(first);
        whole = roomy && rows == lanes && uint32_t(step) == lanes;
        if (!whole) gp::clear(first, clears, uint32_t(op.nothing));
        const size_t vl = gp::length(roomy ? words : 1);
        const gp::Vector byte = __riscv_vsll(__riscv_vid_v_u32m8(vl), 2, vl);
        const gp::Vector column = __riscv_vand(byte, -4 * lanes, vl), group = __riscv_vsub(byte, column, vl);
        gp::put(places, __riscv_vmacc(column, pitch, group, vl), vl);
    }

    [[clang::minsize]] void reduce(const int32_t *in, uint32_t columns, int32_t *to) const {
        if (whole && columns >= words) {
            const uint32_t some = columns & -words;
            const int32_t *const end = in + some * lanes;
            across(op.nothing, to, table, places, lanes, words, in, end);
            in = end, to += some, columns -= some;
        }
        for (uint32_t left; columns; columns -= left, to += words) {
            left = columns < words ? columns : words;
            int32_t *at = table;
            for (uint32_t i = 0, some; i < left; i += some, in += int32_t(some) * step) {
                some = left - i < at_once ? left - i : at_once;
                gp::copy({reinterpret_cast<uint32_t *>(at), int32_t(lanes)},
                         {reinterpret_cast<const uint32_t *>(in), step}, some, rows);
                if (at_once == GROUP) at += words + 1;
                else across(op.nothing, to + i % GROUP * lanes + i / GROUP, table, places, lanes, 1, nullptr, nullptr);
            }
            if (at_once == GROUP) across(op.nothing, to, table, places, lanes, words, nullptr, nullptr);
        }
    }

    const Any &op;
    uint32_t lanes, rows;
    int32_t step;
    uint32_t words;   /* of a block, and of its results */
    uint32_t at_once; /* columns: a group, or one if there is no room for a table */
    bool whole;       /* blocks lie side by side in SBUF */
    int32_t *table;
    uint32_t *places; /* of first words in the table, for each word of the results */
};

/* What came of columns, to a partition: eight rows of all lanes, of which its own is stored. Gives where to go on. */
[[clang::minsize]] static int32_t *place(int32_t *out, int32_t step, const int32_t *from, uint32_t columns) {
    constexpr uint32_t GROUP = Blocks::GROUP;
    const gp::OneLane one(reinterpret_cast<const uint32_t *>(out));
    const gp::Mask mine = one.mask();
    const uint32_t lanes = one.lanes;
    if (uint32_t(step) == lanes)
        while (columns >= GROUP) {
            const uint32_t some = columns / GROUP < lanes ? columns / GROUP : lanes;
            out -= one.lane;
            for (const int32_t *const end = from + some; from != end; from++, out += one.most)
                __riscv_vse32(mine, out, __riscv_vle32_v_i32m8_m(mine, from - one.lane, one.most), one.most);
            out += one.lane;
            columns -= some * GROUP;
            if (some == lanes) from += (GROUP - 1) * lanes;
        }
    for (uint32_t group = 0, some; columns; columns -= some, out += int32_t(some) * step) {
        some = columns < GROUP ? columns : GROUP;
        const gp::SignedVector values = __riscv_vlse32_v_i32m8(from++, int32_t(4 * lanes), some);
        __riscv_vsse32(out, step * int32_t(sizeof *out), values, some);
        if (++group == lanes) group = 0, from += (GROUP - 1) * lanes;
    }
    return out;
}

/* Cores of this run before a core. */
[[gnu::noinline]] static uint32_t below(uint32_t core) { return gp_bits_set(gp_run_mask() & ((1u << core) - 1)); }

/* A piece of columns at a time: all cores leave theirs in a half of shared memory, then those that have not to store
 * results put them together, while the other one stores what came of the piece before. */
[[clang::minsize]] static void reduce(const Any &op) {
    const gp::Columns<const int32_t> from(GP_SRC0);
    const gp::Columns<int32_t> to(GP_DST);
    const Blocks blocks(op, from.rows, from.step[0]);
    const uint32_t cores = below(PLEXUS_CORES_MAX), rank = below(gp_core()), lanes = blocks.lanes;
    const uint32_t storing = below(to.start / lanes);
    const uint32_t piece = gp::SHARED_WORDS / 2 / cores & -blocks.words; /* columns, and words of a core */
    const uint32_t result = cores > 1 ? piece : 0, helpers = cores > 1 ? cores - 1 : 1;
    const uint32_t each = (piece / lanes + helpers - 1) / helpers * lanes, begin = (rank - (rank > storing)) * each;
    const uint32_t behind = to.rows && cores > 1 ? 0 : begin + each;
    const int32_t *in = from[0];
    int32_t *out = to[0];
    const int32_t step = to.step[0];
    int32_t *half = reinterpret_cast<int32_t *>(gp::shared()), *other = half + gp::SHARED_WORDS / 2;
    uint32_t left = from.count[0], before = 0;
    do {
        const uint32_t columns = left < piece ? left : piece;
        blocks.reduce(in, columns, half + rank * piece);
        in += int32_t(columns) * from.step[0];
        gp::meet();
        if (to.rows && before) out = place(out, step, other + result, before);
        const uint32_t last = (columns + blocks.words - 1) & -blocks.words, end = behind < last ? behind : last;
        for (uint32_t i = begin, vl; i < end; i += vl) {
            vl = gp::length(end - i);
            op.fold(half + result + i, half + i, cores, piece, vl);
        }
        gp::meet();
        left -= columns, before = columns;
        int32_t *const now = half;
        half = other, other = now;
    } while (left);
    if (to.rows) place(out, step, other + result, before);
}
#else

template <typename Op>
static void reduce(const Op op) {
    const gp::Columns<const uint32_t> from(GP_SRC0);
    const gp::Columns<int32_t> to(GP_DST);
    const uint32_t cores = gp_run_cores(), rank = gp_run_rank(), piece = gp::SHARED_WORDS / 2 / cores;
    const uint32_t rows = from.rows;
    auto in = from.walk();
    auto out = to.walk();
    for (uint32_t first = 0, half = 0; first < from.count[0]; first += piece, half ^= gp::SHARED_WORDS / 2) {
        const uint32_t left = from.count[0] - first, columns = left < piece ? left : piece;
        int32_t *all = reinterpret_cast<int32_t *>(gp::shared(half)), *mine = all + rank * piece;
        for (uint32_t i = 0; i < columns; i++, in.next()) {
            int32_t value = op.nothing;
            for (uint32_t p = 0; p < rows; p++) value = op.of(value, int32_t(in[p]));
            mine[i] = value;
        }
        gp::meet();
        const uint32_t each = (columns + cores - 1) / cores, begin = rank * each, behind = begin + each;
        const uint32_t end = behind < columns ? behind : columns;
        for (uint32_t i = begin; i < end; i++) {
            int32_t value = all[i];
            for (uint32_t core = 1; core < cores; core++) value = op.of(value, all[core * piece + i]);
            all[i] = value;
        }
        gp::meet();
        if (!to.rows) continue;
        for (uint32_t i = 0; i < columns; i++, out.next()) out[0] = all[i];
    }
}
#endif

GP_ENTRY(partition_reduce) {
#ifdef __riscv_vector
#define GP_AS(Op) reduce(any<Op>)
#else
#define GP_AS(Op) reduce(Op())
#endif
    switch (GP_OPERATOR(PARTITION_REDUCE_OP)) {
        case PLEXUS_REDUCTION_SUM: GP_AS(Sum); break;
        case PLEXUS_REDUCTION_MAX: GP_AS(Max); break;
        default: GP_AS(Min);
    }
    return 0;
}
