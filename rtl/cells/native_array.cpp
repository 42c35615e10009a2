// Model of the systolic array, cycle by cycle and bit by bit, for plexus_native_array.sv.
//
// Moving beats, stationary beats and swaps all cross the array with the same skew (2 cycles a row, 1 a
// column), so every PE meets them in the order in which they entered: seen from a beat, loads and swaps
// before it have happened everywhere and later ones nowhere. So weights are one plane, a swap copies the
// shadow plane, and only the sums wait, `latency` cycles, before they leave. Sums of up to BATCH beats that
// share weights and rows are computed together, at the latest when the first of them must leave.
//
// Compile with -O3 -ffp-contract=off -fno-fast-math -std=c++17. Needs round to nearest, no flushing of
// subnormals: the host's floating point state is set on entry and restored on leaving.
#include "native_float.h"
#include "native_kernels.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace plexus {

constexpr int QUADRANTS = 4;
constexpr int FP16_CODE = 2;  // rtl.contract.formats; every other dtype code means BF16

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
};

struct Sums {
    uint64_t due;
    uint32_t ticket;
    alignas(64) float data[WIDTH];
};

struct Array {
    int rows, cols, latency;
    int share;  // rows of a quadrant
    Fault fault = NONE;
    Kernels kernels;
    int patience = 0;  // batches still to do with the steady kernel

    alignas(64) float working[WIDTH][WIDTH];
    // A stationary beat shifts a row by one: the row's window moves down by one float instead. The odd
    // length keeps the windows of different rows out of the same cache sets.
    static constexpr int ROOM = 2 * WIDTH + 16;
    alignas(64) float shadow[WIDTH][ROOM];
    int window[WIDTH];
    bool loaded[QUADRANTS];

    std::vector<Sums> ring;
    uint32_t head, tail, computed;  // ring positions: next to leave, next free, next to compute
    uint64_t now;

    // The beats between `computed` and `tail`: same weights, same rows.
    alignas(64) float x[BATCH][WIDTH];
    uint32_t mask[4];
    uint8_t order[WIDTH];
    int count;
    uint32_t late_swap;

    Array(int r, int c, int l)
        : rows(r), cols(c), latency(l), share(r / QUADRANTS), kernels(choose_kernels(getenv("PLEXUS_NATIVE_PATH"))) {
        // Who asks for instructions is told which they are: a host without them gets less.
        if (getenv("PLEXUS_NATIVE_PATH")) fprintf(stderr, "plexus_native_array uses %s\n", kernels.name);
        size_t size = 1;
        while (size < static_cast<size_t>(latency) + 2) size *= 2;
        ring.resize(size);
        reset();
    }

    void reset() {
        memset(working, 0, sizeof working);
        memset(shadow, 0, sizeof shadow);
        memset(x, 0, sizeof x);
        memset(mask, 0, sizeof mask);
        for (int& w : window) w = ROOM - WIDTH;
        for (bool& q : loaded) q = false;
        head = tail = computed = 0;
        now = 0;
        count = 0;
        late_swap = 0;
        patience = 0;
    }

    Sums& at(uint32_t position) { return ring[position & (ring.size() - 1)]; }

    void flush() {
        const int batch = static_cast<int>(tail - computed);
        if (!batch) return;
        float y[BATCH][WIDTH] __attribute__((aligned(64)));
        FloatState state(fault == FLUSH ? DEFAULT_STATE | FLUSHING : DEFAULT_STATE);
        if (fault == UNFUSED) {
            kernel_unfused(working, x, order, count, batch, cols, y);
        } else if (patience && fault != FLUSH) {
            patience--;
            kernels.steady(working, x, order, count, batch, cols, y);
        } else {
            kernels.fast(working, x, order, count, batch, cols, y);
            if (state.met_subnormal()) patience = 15;
        }
        for (int b = 0; b < batch; b++) {
            memcpy(at(computed + b).data, y[b], sizeof(float) * cols);
        }
        computed = tail;
    }

    void swap(uint32_t quadrants, const uint32_t* active) {
        for (int q = 0; q < QUADRANTS; q++) {
            if (!(quadrants >> q & 1) || !loaded[q]) continue;
            if (fault != OVERTAKING_SWAP) flush();
            for (int r = q * share; r < (q + 1) * share; r++) {
                if (fault == SWAP_ACTIVE_ONLY && !(active[r / 32] >> (r % 32) & 1)) continue;
                memcpy(working[r], shadow[r] + window[r], sizeof(float) * cols);
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
};

inline float decode(uint32_t code, bool half) {
    uint32_t bits;
    if (!half) {
        bits = code << 16;
    } else {
        const uint32_t sign = (code & 0x8000) << 16, rest = code & 0x7fff;
        if (rest < 0x0400) {  // zero and subnormal
            const float value = static_cast<float>(rest) * 0x1p-24f;
            memcpy(&bits, &value, sizeof bits);
        } else {
            bits = (rest << 13) + (rest >= 0x7c00 ? (255u - 31) << 23 : (127u - 15) << 23);
        }
        bits |= sign;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace plexus

using plexus::Array;

extern "C" {

void* plexus_array_new(int rows, int cols, int latency) { return new Array(rows, cols, latency); }

void plexus_array_free(void* handle) { delete static_cast<Array*>(handle); }

void plexus_array_reset(void* handle) { static_cast<Array*>(handle)->reset(); }

void plexus_array_plant(void* handle, int fault) {
    static_cast<Array*>(handle)->fault = static_cast<plexus::Fault>(fault);
}

// A moving beat: `valid` and `swap` a bit a quadrant, `mode` a byte a quadrant, `active` a bit a row,
// `data` 64 bits a row.
void plexus_array_moving(void* handle, int valid, int mode, int swap, int ticket, const uint32_t* active,
                         const uint32_t* data) {
    Array& a = *static_cast<Array*>(handle);
    if (a.fault == plexus::LATE_SWAP) {
        const uint32_t earlier = a.late_swap;
        a.late_swap = swap & valid;
        a.swap(earlier, active);
    } else {
        a.swap(swap & valid, active);
    }
    if (!(valid & 1)) return;  // sums belong to quadrant 0's beat

    uint32_t mask[4];
    a.rows_of(valid, active, a.fault == plexus::ALL_ROWS_USED, mask);
    if (memcmp(mask, a.mask, sizeof mask)) {
        a.flush();
        memcpy(a.mask, mask, sizeof mask);
        a.count = 0;
        for (int r = 0; r < a.rows; r++)
            if (mask[r / 32] >> (r % 32) & 1) a.order[a.count++] = static_cast<uint8_t>(r);
        if (a.fault == plexus::REVERSED_ROWS)
            for (int i = 0; i < a.count / 2; i++) {
                const uint8_t other = a.order[i];
                a.order[i] = a.order[a.count - 1 - i];
                a.order[a.count - 1 - i] = other;
            }
    }
    float* x = a.x[a.tail - a.computed];
    for (int q = 0; q < plexus::QUADRANTS; q++) {
        const bool half = (mode >> (8 * q) & 15) == plexus::FP16_CODE;
        const int begin = q * a.share, end = begin + a.share;
        if (half)
            for (int r = begin; r < end; r++) x[r] = plexus::decode(data[2 * r] & 0xffff, true);
        else
            for (int r = begin; r < end; r++) x[r] = plexus::decode(data[2 * r] & 0xffff, false);
    }
    plexus::Sums& sums = a.at(a.tail);
    sums.due = a.now + a.latency - (a.fault == plexus::EARLY ? 2 : 1);
    sums.ticket = static_cast<uint32_t>(ticket) & 0xff;
    a.tail++;
    if (a.tail - a.computed == plexus::BATCH) a.flush();
}

void plexus_array_stationary(void* handle, int valid, int mode, const uint32_t* active, const uint32_t* data) {
    Array& a = *static_cast<Array*>(handle);
    uint32_t mask[4];
    a.rows_of(valid, active, a.fault == plexus::ALL_ROWS_LOADED, mask);
    for (int q = 0; q < plexus::QUADRANTS; q++) {
        if (!(valid >> q & 1)) continue;
        a.loaded[q] = true;
        const bool half = (mode >> (8 * q) & 15) == plexus::FP16_CODE;
        for (int r = q * a.share; r < (q + 1) * a.share; r++) {
            if (!(mask[r / 32] >> (r % 32) & 1)) continue;
            if (a.window[r] == 0) {
                memmove(a.shadow[r] + Array::ROOM - plexus::WIDTH, a.shadow[r], sizeof(float) * plexus::WIDTH);
                a.window[r] = Array::ROOM - plexus::WIDTH;
            }
            a.shadow[r][--a.window[r]] = plexus::decode(data[2 * r] & 0xffff, half);
        }
    }
}

// One cycle. Returns bit 0: sums leave; bit 1: more are on their way; bits 15:8: ticket of those that leave.
int plexus_array_step(void* handle) {
    Array& a = *static_cast<Array*>(handle);
    int flags = 0;
    if (a.head != a.tail && a.at(a.head).due <= a.now) {
        if (a.head == a.computed) a.flush();
        flags = 1 | static_cast<int>(a.at(a.head).ticket << 8);
        a.head++;
    }
    a.now++;
    return flags | (a.head != a.tail ? 2 : 0);
}

// The sums that leave in this cycle: all columns, the rest of the 128 zero.
void plexus_array_sums(void* handle, uint32_t* out) {
    Array& a = *static_cast<Array*>(handle);
    const float* data = a.at(a.head - 1).data;
    for (int c = 0; c < a.cols; c++) {
        uint32_t bits;
        memcpy(&bits, &data[c], sizeof bits);
        out[c] = plexus::is_nan(bits) && a.fault != plexus::RAW_NAN ? plexus::CANONICAL_NAN : bits;
    }
    for (int c = a.cols; c < plexus::WIDTH; c++) out[c] = 0;
}
}
