// CRC and FEC of whole flits for an endpoint: encode, repair, judge (docs/flit-codec.md).
//
// Sums over a flit are cut into pieces that a processor does at the same time, and joined at the end.

#ifndef PLEXUS_FLIT_CODEC_H
#define PLEXUS_FLIT_CODEC_H

#include "../../rtl/cells/native_flit.h"
#include "link_words.h"

namespace plexus {

class FlitCodec {
public:
    void encode(uint8_t* flit) const {
        const uint64_t rest = crc(flit);
        std::memcpy(flit + wire::CRC_AT, &rest, 8);
        fec(flit, flit + wire::FEC_AT);
    }

    // Repairs at most a byte of each group in place. Groups repaired, or -1: the flit is refused.
    int decode(uint8_t* flit) const {
        uint8_t sums[FEC];
        fec(flit, sums);
        if (!std::memcmp(sums, flit + wire::FEC_AT, FEC)) return fits(flit) ? 0 : -1;
        int repaired = 0;
        for (unsigned group = 0; group < wire::FEC_GROUPS; group++) {
            const unsigned at = (group + 2) % 3;  // of its check byte; its parity byte is three on
            const uint8_t check = uint8_t(sums[at] ^ flit[wire::FEC_AT + at]);
            const uint8_t parity = uint8_t(sums[at + 3] ^ flit[wire::FEC_AT + at + 3]);
            if (!check && !parity) continue;
            repaired++;
            if (!parity) {
                flit[wire::FEC_AT + at] ^= check;
            } else if (!check) {
                flit[wire::FEC_AT + at + 3] ^= parity;
            } else {
                const int turns = (t_.fec_field.log[check] - t_.fec_field.log[parity] + 255) % 255;
                const int place = int(wire::FEC_SPAN) - turns;
                if (place < 0 || place >= int(group ? wire::FEC_SPAN - 1 : wire::FEC_SPAN)) return -1;
                flit[3 * place + int(group)] ^= parity;
            }
        }
        return fits(flit) ? repaired : -1;
    }

private:
    static constexpr unsigned FEC = wire::FLIT_BYTES - wire::FEC_AT;
    static constexpr unsigned CUT = 120, FIRST = wire::FLIT_INFO_BYTES - CUT;  // the CRC's second piece and its first
    static constexpr unsigned PLACES = wire::FEC_SPAN / 4;                     // of a piece of the FEC
    static_assert(CUT % 8 == 0 && FIRST == CUT + 2 && wire::FEC_SPAN % 4 == 0);

    uint64_t step(uint64_t rest, const uint8_t* bytes) const {
        uint64_t word;
        std::memcpy(&word, bytes, 8);
        return spread(t_.crc, rest ^ __builtin_bswap64(word));
    }
    static uint64_t spread(const uint64_t (&table)[8][256], uint64_t word) {
        uint64_t sum = 0;
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) sum ^= table[k][word >> (8 * k) & 255];
        return sum;
    }

    // The CRC as the bytes of the flit hold it: rtl.contract.link.CRC_ORDER is high_first.
    uint64_t crc(const uint8_t* flit) const {
        uint64_t a = crc_over(t_, 0, flit, 2), b = 0;
        for (unsigned n = 0; n < CUT; n += 8) {
            a = step(a, flit + 2 + n);
            b = step(b, flit + FIRST + n);
        }
        return __builtin_bswap64(spread(beyond_, a) ^ b);
    }
    bool fits(const uint8_t* flit) const {
        const uint64_t rest = crc(flit);
        return !std::memcmp(&rest, flit + wire::CRC_AT, 8);
    }

    // The FEC bytes of the first 250 bytes.
    void fec(const uint8_t* flit, uint8_t* out) const {
        uint8_t sums[4][3] = {};
        uint8_t parity[24] = {};
        for (unsigned k = 0; k < PLACES; k++) {
#pragma GCC unroll 4
            for (unsigned piece = 0; piece < 4; piece++) {
#pragma GCC unroll 3
                for (unsigned g = 0; g < 3; g++) {
                    const unsigned at = 3 * (piece * PLACES + k) + g;
                    sums[piece][g] = uint8_t(t_.alpha[sums[piece][g]] ^ (at < wire::FEC_AT ? flit[at] : 0));
                }
            }
        }
        uint64_t words[3] = {};
        for (unsigned at = 0; at < 240; at += 24) {
#pragma GCC unroll 3
            for (unsigned w = 0; w < 3; w++) {
                uint64_t word;
                std::memcpy(&word, flit + at + 8 * w, 8);
                words[w] ^= word;
            }
        }
        std::memcpy(parity, words, sizeof words);
        for (unsigned at = 240; at < wire::FEC_AT; at++) parity[at - 240] ^= flit[at];
        for (unsigned g = 0; g < 3; g++) {
            uint8_t check = sums[0][g], all = 0;
            for (unsigned piece = 1; piece < 4; piece++) check = uint8_t(piece_[check] ^ sums[piece][g]);
            for (unsigned n = g; n < 24; n += 3) all ^= parity[n];
            out[(g + 2) % 3] = t_.alpha[check];
            out[(g + 2) % 3 + 3] = all;
        }
    }

    const FlitTables& t_ = flit_tables();
    uint64_t beyond_[8][256];  // [k][b]: remainder of byte k of a remainder, 120 bytes on
    uint8_t piece_[256];       // alpha to the number of places of a piece, times b

public:
    FlitCodec() {
        const uint8_t zero[CUT] = {};
        for (int b = 0; b < 256; b++) {
            for (int k = 0; k < 8; k++) beyond_[k][b] = crc_over(t_, uint64_t(b) << 8 * k, zero, int(CUT));
            piece_[b] = t_.fec_field.times(b, t_.fec_field.power[PLACES]);
        }
    }
};

inline const FlitCodec& flit_codec() {
    static const FlitCodec codec;
    return codec;
}

}  // namespace plexus

#endif
