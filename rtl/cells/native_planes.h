// The two planes of weights of the array: shadow as codes, working as numbers.
//
// What a stationary beat brings stays a code until a swap, so that it can also leave as raw bits (a transpose); a
// swap turns the codes of a row into numbers, each into those of its class: operands or elements of dot products.
// Beats meet weights of their own class only (docs/tensor-array.md), so the other class keeps what it had.
#pragma once
#include "native_codes.h"
#include "native_kernels.h"

namespace plexus {

struct Planes {
    alignas(64) float operand[WIDTH][WIDTH];
    alignas(64) double element[WIDTH][ELEMENTS][WIDTH];
    uint8_t slot[WIDTH][WIDTH];  // number that a sparse weight meets, of those of its four rows
    bool five[WIDTH];            // an element of the row is E5M2
    bool special[WIDTH];         // an element of the row is not finite

    // A weight's code, and what it is: its mode in bits 6:0, its scale or slot above.
    static constexpr uint16_t BLANK = 0xffff;  // +0 of every kind, as after reset
    // A stationary beat shifts a row by one: the row's window moves down by one instead. The odd
    // length keeps the windows of different rows out of the same cache sets.
    static constexpr int ROOM = 2 * WIDTH + 16;
    alignas(64) uint32_t data[WIDTH][ROOM];
    alignas(64) uint16_t about[WIDTH][ROOM];
    uint16_t common[WIDTH];  // of all codes of a row, and then `about` is not kept
    bool mixed[WIDTH];       // they differ: `about` is kept
    int window[WIDTH];
    uint8_t place[WIDTH];  // of a row in all these: a shift moves rows without moving data

    void reset() {
        memset(operand, 0, sizeof operand);
        memset(element, 0, sizeof element);
        memset(slot, 0, sizeof slot);
        memset(five, 0, sizeof five);
        memset(special, 0, sizeof special);
        for (int r = 0; r < WIDTH; r++) {
            place[r] = static_cast<uint8_t>(r);
            blank(r);
        }
    }

    void blank(int row) {
        const int p = place[row];
        memset(data[p], 0, sizeof data[p]);
        common[p] = BLANK;
        mixed[p] = false;
        window[p] = ROOM - WIDTH;
    }

    // What `about` says of a code: `beside` is its scale or slot.
    static uint16_t about_of(uint32_t mode, uint32_t beside) {
        const Kind kind = kind_of(mode);
        const bool scaled = kind == QUAD || kind == QUAD_E4M3 || kind == SPARSE;
        return static_cast<uint16_t>(kind == RAW ? RAW << 4 : (mode & 0x7f) | (scaled ? beside << 8 : 0));
    }

    // A stationary beat in one row.
    void push(int row, uint32_t code, uint16_t what) {
        const int p = place[row];
        if (window[p] == 0) {
            memmove(data[p] + ROOM - WIDTH, data[p], sizeof(uint32_t) * WIDTH);
            if (mixed[p]) memmove(about[p] + ROOM - WIDTH, about[p], sizeof(uint16_t) * WIDTH);
            window[p] = ROOM - WIDTH;
        }
        const int at = --window[p];
        data[p][at] = code;
        if (what != common[p] && !mixed[p]) {
            mixed[p] = true;
            for (int c = 0; c < WIDTH; c++) about[p][at + c] = common[p];
        }
        if (mixed[p]) about[p][at] = what;
    }

    // The shadow weights of a row become its working weights; with `keep_slots` (a planted fault) without their slots.
    void take(int row, int cols, bool keep_slots) {
        const int p = place[row];
        const uint32_t* codes = data[p] + window[p];
        uint16_t* what = about[p] + window[p];
        if (mixed[p]) {
            uint32_t differ = 0;
            for (int c = 0; c < WIDTH; c++) differ |= what[c] ^ what[0];
            mixed[p] = differ != 0;
            common[p] = what[0];
        }
        const Kind kind = kind_of(common[p]);
        const uint32_t dtype = dtype_of(common[p]);
        if (!mixed[p] && kind == ONE && (dtype < FP16_CODE || dtype > E5M2_CODE)) {
            uint32_t bits[WIDTH];
            for (int c = 0; c < cols; c++) bits[c] = codes[c] << 16;
            memcpy(operand[row], bits, sizeof(float) * cols);
            return;
        }
        if (!mixed[p])
            for (int c = 0; c < cols; c++) what[c] = common[p];
        bool fives = false, wild = false;
        for (int c = 0; c < cols; c++) {
            const uint32_t mode = what[c] & 0xff;
            const Kind k = kind_of(mode);
            if (what[c] == BLANK) {
                operand[row][c] = 0;
                for (int i = 0; i < ELEMENTS; i++) element[row][i][c] = 0;
                slot[row][c] = 0;
            } else if (is_dot(k)) {
                double out[ELEMENTS];
                decode_elements(codes[c], decode_scale(what[c] >> 8, k), k, dtype_of(mode), out);
                fives |= dtype_of(mode) == E5M2_CODE;
                for (int i = 0; i < ELEMENTS; i++) {
                    element[row][i][c] = out[i];
                    wild |= !std::isfinite(out[i]);
                }
            } else if (k != RAW) {
                operand[row][c] = decode_operand(codes[c], k, dtype_of(mode));
                if (!keep_slots) slot[row][c] = static_cast<uint8_t>(k == SPARSE ? what[c] >> 8 : 0);
            }
        }
        five[row] = fives;
        special[row] = wild;
    }

    // Rows `first` to `end` - 1 move one south; `above` or nothing enters at the top. The last row's raw bits go to
    // `out`: what is not raw is 0.
    void shift(int first, int end, int above, int cols, uint32_t* out) {
        const int last = place[end - 1];
        for (int c = 0; c < cols; c++) {
            const int at = window[last] + c;
            out[c] = (mixed[last] ? about[last][at] : common[last]) == RAW << 4 ? data[last][at] : 0;
        }
        memmove(place + first + 1, place + first, static_cast<size_t>(end - 1 - first));
        place[first] = static_cast<uint8_t>(last);
        if (above < 0) {
            blank(first);
        } else {
            const int p = place[above];
            memcpy(data[last], data[p], sizeof data[p]);
            memcpy(about[last], about[p], sizeof about[p]);
            window[last] = window[p];
            common[last] = common[p];
            mixed[last] = mixed[p];
        }
    }
};

}  // namespace plexus
