// Model of the systolic array, cycle by cycle and bit by bit, for plexus_native_array.sv.
//
// Moving beats, stationary beats and swaps all cross the array with the same skew (2 cycles a row, 1 a
// column), so every PE meets them in the order in which they entered: seen from a beat, loads and swaps
// before it have happened everywhere and later ones nowhere. So weights are planes without time (native_planes.h),
// and only the sums wait before they leave. Sums of up to BATCH beats that leave at the same
// row group and share weights, rows and arithmetic are computed together, at the latest when the first must leave.
//
// Compile with -O3 -ffp-contract=off -fno-fast-math -std=c++17. Needs round to nearest, no flushing of
// subnormals: the host's floating point state is set on entry and restored on leaving.
#include "native_dot_kernels.h"
#include "native_float.h"
#include "native_kernels.h"
#include "native_planes.h"
#include "native_sparse_kernels.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace plexus {

constexpr int QUADRANTS = 4;

enum Fault {
    NONE,
    REVERSED_ROWS,
    RAW_NAN,
    EARLY,
    LATE_SWAP,
    OVERTAKING_SWAP,
    ALL_ROWS_USED,
    ALL_ROWS_LOADED,
    FLUSH,
    UNFUSED,
    SWAP_ACTIVE_ONLY,
    HEAD_IGNORED,
    ALWAYS_A_HEAD,
    LATE_GROUPS,
    TICKET_OF_FIRST,
    SCALE_IGNORED,
    ROUNDED_TWICE,
    NEVER_SPLIT,
    PAIR_OF_FOUR,
    HALVES_EXCHANGED,
    SPLIT_INFINITY,
    SCALE_NUMBER,
    SHIFT_ALONE,
    SHIFT_UNNOTICED,
    CANONICAL_RAW,
    SLOT_IGNORED,
    SLOTS_STAY,
    ALWAYS_RATIO_4,
    WRONG_FOUR,
};

// How the sums of a batch are made: of operands, of elements by a DotMode, or of the numbers of sparse beats.
enum Way { OPERANDS, DOTS, SPARSES };

// A row on its way to the port of a row group: sums, or raw bits.
struct Leaving {
    uint64_t due;
    uint32_t ticket;
    alignas(64) uint32_t data[WIDTH];
};

// Rows on their way, in order.
struct Ring {
    std::vector<Leaving> rows;
    uint32_t head, tail;  // next to leave, next free

    Leaving& at(uint32_t position) { return rows[position & (rows.size() - 1)]; }
};

// Where the chains of a row group leave: rows on their way, and the beats whose sums are not computed yet.
struct Exit {
    int first, end;  // rows of the group
    int latency;     // from a beat to its sums
    Ring sums, raw;
    uint32_t computed;  // of `sums`; beats from here to the tail are those below

    // Beats with the same weights and rows, summed in the same way.
    alignas(64) float x[BATCH][WIDTH];
    alignas(64) Halves elements[BATCH][WIDTH];
    alignas(64) Fours numbers[BATCH];
    Way way;
    DotMode mode;
    uint32_t mask[4];
    uint8_t order[WIDTH];
    int count;

    void reset() {
        sums.head = sums.tail = raw.head = raw.tail = computed = 0;
        memset(x, 0, sizeof x);
        memset(numbers, 0, sizeof numbers);
        memset(mask, 0, sizeof mask);
        way = OPERANDS;
        mode = PLAIN;
        count = 0;
    }
};

// A beat as it came through the port: one bit or byte per quadrant (10 bits of mode), one bit per row, and so on.
struct Beat {
    uint32_t valid;
    uint64_t modes;
    uint32_t head, tail, tickets;
    const uint32_t* active;
    const uint32_t* data;
    const uint32_t* scale;
    const uint32_t* tags;  // of a stationary beat

    uint32_t mode(int q) const { return modes >> 10 * q & 0x3ff; }
    int pattern(int q) const { return static_cast<int>(mode(q) >> 7); }
    uint32_t ticket(int q) const { return tickets >> 8 * q & 0xff; }
    uint64_t code(int r) const { return data[2 * r] | static_cast<uint64_t>(data[2 * r + 1]) << 32; }
    uint32_t beside(int r) const { return scale[r / 4] >> 8 * (r % 4) & 0xff; }
    uint32_t tag(int r) const { return tags[r / 8] >> 4 * (r % 8) & 15; }
};

struct Array {
    int rows, cols, groups;
    int share;  // rows of a quadrant
    Fault fault = NONE;
    Kernels kernels;
    DotKernels dot_kernels;
    SparseKernels sparse_kernels;
    int patience = 0;  // batches still to do with the steady kernel
    Planes planes;
    bool loaded[QUADRANTS];
    std::vector<Exit> exits;  // of each row group
    uint64_t now;
    uint32_t late_swap;

    Array(int r, int c, int g, int row_cycles)
        : rows(r),
          cols(c),
          groups(g),
          share(r / QUADRANTS),
          kernels(choose_kernels(getenv("PLEXUS_NATIVE_PATH"))),
          dot_kernels(choose_dot_kernels(kernels)),
          sparse_kernels(choose_sparse_kernels(kernels)),
          exits(g) {
        // Who asks for instructions is told which they are: a host without them gets less.
        if (getenv("PLEXUS_NATIVE_PATH")) fprintf(stderr, "plexus_native_array uses %s\n", kernels.name);
        for (int i = 0; i < groups; i++) {
            exits[i].first = i * (rows / groups);
            exits[i].end = (i + 1) * (rows / groups);
            exits[i].latency = row_cycles * exits[i].end + cols;
            size_t size = 1;
            while (size < static_cast<size_t>(exits[i].latency) + 2) size *= 2;
            exits[i].sums.rows.resize(size);
            exits[i].raw.rows.resize(size);
        }
        reset();
    }

    void reset() {
        planes.reset();
        for (bool& q : loaded) q = false;
        for (Exit& exit : exits) exit.reset();
        now = 0;
        late_swap = 0;
        patience = 0;
    }

    int group_of(int quadrant) const { return quadrant * groups / QUADRANTS; }

    void flush(Exit& exit) {
        const int batch = static_cast<int>(exit.sums.tail - exit.computed);
        if (!batch) return;
        float y[BATCH][WIDTH] __attribute__((aligned(64)));
        FloatState state(fault == FLUSH ? DEFAULT_STATE | FLUSHING : DEFAULT_STATE);
        if (exit.way == DOTS) {
            if (fault == ROUNDED_TWICE)
                dot_rounded_twice(planes.element, exit.elements, exit.order, exit.count, batch, cols, y);
            else
                dot_kernels.of[exit.mode](planes.element, exit.elements, exit.order, exit.count, batch, cols, y);
        } else if (fault == UNFUSED && exit.way == OPERANDS) {
            kernel_unfused(planes.operand, exit.x, exit.order, exit.count, batch, cols, y);
        } else {
            const bool steady = patience && fault != FLUSH;
            if (exit.way == SPARSES)
                (steady ? sparse_kernels.steady : sparse_kernels.fast)(planes.operand, planes.slot, exit.numbers,
                                                                       exit.order, exit.count, batch, cols, y);
            else
                (steady ? kernels.steady : kernels.fast)(planes.operand, exit.x, exit.order, exit.count, batch, cols, y);
            if (steady)
                patience--;
            else if (state.met_subnormal())
                patience = 15;
        }
        for (int b = 0; b < batch; b++) memcpy(exit.sums.at(exit.computed + b).data, y[b], sizeof(float) * cols);
        exit.computed = exit.sums.tail;
        exit.mode = PLAIN;
    }

    void swap(uint32_t quadrants, const uint32_t* active) {
        for (int q = 0; q < QUADRANTS; q++) {
            if (!(quadrants >> q & 1) || !loaded[q]) continue;
            if (fault != OVERTAKING_SWAP)
                for (Exit& exit : exits) flush(exit);
            for (int r = q * share; r < (q + 1) * share; r++) {
                if (fault == SWAP_ACTIVE_ONLY && !(active[r / 32] >> (r % 32) & 1)) continue;
                planes.take(r, cols, fault == SLOTS_STAY);
            }
            loaded[q] = false;
        }
    }

    // Rows that are active in a valid quadrant, 32 a word.
    void rows_of(uint32_t valid, const uint32_t* active, bool everyone, uint32_t* out) const {
        for (int i = 0; i < 4; i++) out[i] = 0;
        for (int q = 0; q < QUADRANTS; q++) {
            if (!(valid >> q & 1)) continue;
            for (int r = q * share; r < (q + 1) * share;) {
                const int bits = share >= 32 ? 32 : share;
                const uint32_t ones = bits == 32 ? ~0u : ((1u << bits) - 1) << (r % 32);
                out[r / 32] |= ones & (everyone ? ~0u : active[r / 32]);
                r += bits;
            }
        }
    }

    // The chains of a beat that begin in quadrant `first` and leave with the last quadrant of row group `group`.
    void enter(const Beat& beat, int group, int first) {
        Exit& exit = exits[group];
        const int bottom = (group + 1) * QUADRANTS / groups - 1;
        uint32_t mask[4];
        rows_of(beat.valid & ((2u << bottom) - (1u << first)), beat.active, fault == ALL_ROWS_USED, mask);
        if (memcmp(mask, exit.mask, sizeof mask)) {
            flush(exit);
            memcpy(exit.mask, mask, sizeof mask);
            exit.count = 0;
            for (int r = first * share; r < exit.end; r++)
                if (mask[r / 32] >> (r % 32) & 1) exit.order[exit.count++] = static_cast<uint8_t>(r);
            if (fault == REVERSED_ROWS) std::reverse(exit.order, exit.order + exit.count);
        }
        if (is_dot(kind_of(beat.mode(bottom))))
            put_elements(exit, beat);
        else if (kind_of(beat.mode(bottom)) == SPARSE)
            put_numbers(exit, beat, first, bottom);
        else
            put_operands(exit, beat, first, bottom);
        Leaving& sums = exit.sums.at(exit.sums.tail);
        const int latency = fault == LATE_GROUPS ? exits.back().latency : exit.latency;
        sums.due = now + latency - (fault == EARLY ? 2 : 1);
        sums.ticket = beat.ticket(fault == TICKET_OF_FIRST ? 0 : bottom);
        exit.sums.tail++;
        if (exit.sums.tail - exit.computed == BATCH) flush(exit);
    }

    void put_operands(Exit& exit, const Beat& beat, int first, int bottom) {
        if (exit.way != OPERANDS) flush(exit);
        exit.way = OPERANDS;
        float* x = exit.x[exit.sums.tail - exit.computed];
        for (int q = first; q <= bottom; q++) {
            const uint32_t dtype = dtype_of(beat.mode(q));
            Kind kind = kind_of(beat.mode(q));
            if (fault == HALVES_EXCHANGED && (kind == HIGH || kind == LOW)) kind = kind == HIGH ? LOW : HIGH;
            const int begin = q * share, end = begin + share;
            if (kind == ONE && (dtype < FP16_CODE || dtype > E5M2_CODE))
                for (int r = begin; r < end; r++) x[r] = decode_bf16(beat.data[2 * r] & 0xffff);
            else if (kind == ONE && dtype == FP16_CODE)
                for (int r = begin; r < end; r++) x[r] = decode_fp16(beat.data[2 * r] & 0xffff);
            else
                for (int r = begin; r < end; r++) x[r] = decode_operand(beat.code(r), kind, dtype);
        }
    }

    // All rows of the quadrants, active or not.
    void put_numbers(Exit& exit, const Beat& beat, int first, int bottom) {
        if (exit.way != SPARSES) flush(exit);
        exit.way = SPARSES;
        float* x = exit.numbers[exit.sums.tail - exit.computed][0];
        uint16_t codes[WIDTH * FOUR];
        memcpy(codes, beat.data, sizeof(uint16_t) * rows * FOUR);
        for (int q = first; q <= bottom; q++) {
            const uint32_t dtype = dtype_of(beat.mode(q));
            const int begin = q * share * FOUR, end = begin + share * FOUR;
            if (dtype == FP16_CODE)
                for (int i = begin; i < end; i++) x[i] = decode_fp16(codes[i]);
            else
                for (int i = begin; i < end; i++) x[i] = decode_bf16(codes[i]);
        }
        if (fault == WRONG_FOUR)
            for (int i = 0; i < rows * FOUR; i += 2 * NUMBERS) std::swap_ranges(x + i, x + i + NUMBERS, x + i + NUMBERS);
    }

    void put_elements(Exit& exit, const Beat& beat) {
        alignas(64) double out[WIDTH][ELEMENTS], factor[WIDTH];
        bool split = false, wild = false;
        for (int i = 0; i < exit.count; i++) {
            const int r = exit.order[i], q = r / share;
            const uint32_t mode = beat.mode(q);
            Kind kind = kind_of(mode);
            if (fault == PAIR_OF_FOUR && kind == PAIR) kind = QUAD;
            uint32_t scale = kind_of(mode) == PAIR ? 127 : beat.beside(r);
            if (fault == SCALE_IGNORED) scale = kind == QUAD ? 127 : 0x38;
            if (fault == SCALE_NUMBER && scale == 0xff) scale = 0xfe;
            factor[i] = decode_scale(scale, kind);
            decode_elements(beat.code(r), factor[i], kind, dtype_of(mode), out[i]);
            split |= dtype_of(mode) == E5M2_CODE && planes.five[r];
            wild |= planes.special[r];
            for (int k = 0; k < ELEMENTS; k++) wild |= !std::isfinite(out[i][k]);
        }
        if (fault == NEVER_SPLIT) split = false;
        const DotMode mode = !split ? PLAIN : wild && fault != SPLIT_INFINITY ? CAREFUL : SPLIT;
        if (exit.way != DOTS || (mode == PLAIN) != (exit.mode == PLAIN)) flush(exit);
        exit.way = DOTS;
        exit.mode = std::max(exit.mode, mode);
        Halves* x = exit.elements[exit.sums.tail - exit.computed];
        for (int i = 0; i < exit.count; i++) {
            double* m = x[exit.order[i]];
            const double one = std::fabs(factor[i]);
            for (int k = 0; k < ELEMENTS; k++) {
                const bool low = split && std::fabs(out[i][k]) < one;
                m[k] = low ? 0 : out[i][k];
                m[ELEMENTS + k] = low ? out[i][k] : 0;
            }
        }
    }

    void load(const Beat& beat, uint32_t shifting) {
        uint32_t mask[4];
        rows_of(beat.valid, beat.active, fault == ALL_ROWS_LOADED, mask);
        for (int q = 0; q < QUADRANTS; q++) {
            if (!(beat.valid >> q & 1) || (shifting >> group_of(q) & 1)) continue;
            loaded[q] = true;
            const uint32_t mode = beat.mode(q);
            const uint16_t plain = Planes::about_of(mode, 0);
            const bool scaled = plain != Planes::about_of(mode, 0xff);
            for (int r = q * share; r < (q + 1) * share; r++)
                if (mask[r / 32] >> (r % 32) & 1)
                    planes.push(r, beat.data[2 * r], scaled ? Planes::about_of(mode, beside(beat, q, r)) : plain);
        }
    }

    // What stands beside the code of row r: its scale, or its slot.
    uint32_t beside(const Beat& beat, int q, int r) const {
        if (kind_of(beat.mode(q)) != SPARSE) return beat.beside(r);
        if (fault == SLOT_IGNORED) return 0;
        return slot_of(r, beat.tag(r), fault == ALWAYS_RATIO_4 ? 0 : beat.pattern(q));
    }

    // Row groups `shifting` move their shadow weights one row south; from below, so that a row that goes from one
    // to the next is still there.
    void shift(const Beat& beat, uint32_t shifting) {
        const int each = QUADRANTS / groups;
        for (int group = groups - 1; group >= 0; group--) {
            if (!(shifting >> group & 1)) continue;
            Exit& exit = exits[group];
            const int top = group * each, bottom = top + each - 1;
            const bool chained = group && (shifting >> (group - 1) & 1) && !(beat.head >> top & 1);
            alignas(64) uint32_t out[WIDTH];
            planes.shift(exit.first, exit.end, chained && fault != SHIFT_ALONE ? exit.first - 1 : -1, cols, out);
            for (int q = top; q <= bottom; q++) loaded[q] |= fault != SHIFT_UNNOTICED;
            if (!(beat.valid & beat.tail & 1u << bottom)) continue;
            Leaving& row = exit.raw.at(exit.raw.tail++);
            row.due = now + exit.latency - 1;
            row.ticket = beat.ticket(bottom);
            for (int c = 0; c < cols; c++)
                row.data[c] = fault == CANONICAL_RAW && is_nan(out[c]) ? CANONICAL_NAN : out[c];
        }
    }

    // Whether a row leaves in this cycle.
    bool leaves(Ring& ring) {
        if (ring.head == ring.tail || ring.at(ring.head).due > now) return false;
        ring.head++;
        return true;
    }

    // The row that leaves, all columns, the rest of the 128 zero; its ticket.
    int give(Ring& ring, bool floats, uint32_t* out) {
        const Leaving& row = ring.at(ring.head - 1);
        for (int c = 0; c < cols; c++)
            out[c] = floats && is_nan(row.data[c]) && fault != RAW_NAN ? CANONICAL_NAN : row.data[c];
        for (int c = cols; c < WIDTH; c++) out[c] = 0;
        return static_cast<int>(row.ticket);
    }
};

}  // namespace plexus

using plexus::Array;
using plexus::Beat;
using plexus::QUADRANTS;

extern "C" {

void* plexus_array_new(int rows, int cols, int groups, int row_cycles) {
    return new Array(rows, cols, groups, row_cycles);
}

void plexus_array_free(void* handle) { delete static_cast<Array*>(handle); }

void plexus_array_reset(void* handle) { static_cast<Array*>(handle)->reset(); }

void plexus_array_plant(void* handle, int fault) {
    static_cast<Array*>(handle)->fault = static_cast<plexus::Fault>(fault);
}

// A moving beat: `valid`, `swap`, `head` and `tail` one bit per quadrant, `mode` 10 bits and `ticket` one byte per quadrant,
// `active` one bit per row, `data` 64 bits per row, `scale` one byte per row.
void plexus_array_moving(void* handle, int valid, long long mode, int swap, int head, int tail, int ticket,
                         const uint32_t* active, const uint32_t* data, const uint32_t* scale) {
    Array& a = *static_cast<Array*>(handle);
    const Beat beat{static_cast<uint32_t>(valid), static_cast<uint64_t>(mode),   static_cast<uint32_t>(head),
                    static_cast<uint32_t>(tail),  static_cast<uint32_t>(ticket), active, data, scale, nullptr};
    if (a.fault == plexus::LATE_SWAP) {
        const uint32_t earlier = a.late_swap;
        a.late_swap = static_cast<uint32_t>(swap & valid);
        a.swap(earlier, active);
    } else {
        a.swap(static_cast<uint32_t>(swap & valid), active);
    }
    const int each = QUADRANTS / a.groups;
    int first = 0;
    for (int group = 0; group < a.groups; group++) {
        const int top = group * each, bottom = top + each - 1;
        const bool begins = (a.fault == plexus::ALWAYS_A_HEAD ? valid : valid & head) >> top & 1;
        if (begins && a.fault != plexus::HEAD_IGNORED) first = top;
        if ((valid & tail) >> bottom & 1) a.enter(beat, group, first);
    }
}

// A stationary beat: as a moving one, `tags` 4 bits a row; a row group shifts if its first quadrant says so.
void plexus_array_stationary(void* handle, int valid, long long mode, int shift, int head, int tail, int ticket,
                             const uint32_t* active, const uint32_t* data, const uint32_t* scale,
                             const uint32_t* tags) {
    Array& a = *static_cast<Array*>(handle);
    const Beat beat{static_cast<uint32_t>(valid), static_cast<uint64_t>(mode),   static_cast<uint32_t>(head),
                    static_cast<uint32_t>(tail),  static_cast<uint32_t>(ticket), active, data, scale, tags};
    uint32_t shifting = 0;
    for (int group = 0; group < a.groups; group++)
        shifting |= (static_cast<uint32_t>(valid & shift) >> group * (QUADRANTS / a.groups) & 1) << group;
    a.load(beat, shifting);
    if (shifting) a.shift(beat, shifting);
}

// One cycle. Returns bit g: sums leave at row group g; bit 4 + g: raw bits do; bit 8: more are on their way.
int plexus_array_step(void* handle) {
    Array& a = *static_cast<Array*>(handle);
    int flags = 0;
    for (int group = 0; group < a.groups; group++) {
        plexus::Exit& exit = a.exits[group];
        if (a.leaves(exit.sums)) {
            if (exit.sums.head - 1 == exit.computed) a.flush(exit);
            flags |= 1 << group;
        }
        if (a.leaves(exit.raw)) flags |= 16 << group;
        if (exit.sums.head != exit.sums.tail || exit.raw.head != exit.raw.tail) flags |= 256;
    }
    a.now++;
    return flags;
}

// The row that leaves at the lowest 1 of such `flags` in this cycle; the result is its ticket.
int plexus_array_row(void* handle, int flags, uint32_t* out) {
    Array& a = *static_cast<Array*>(handle);
    int port = 0;
    while (!(flags >> port & 1)) port++;
    plexus::Exit& exit = a.exits[port & 3];
    return port < 4 ? a.give(exit.sums, true, out) : a.give(exit.raw, false, out);
}
}
