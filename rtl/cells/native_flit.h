// Codes of a flit by tables, for native_encoder.cpp and native_decoder.cpp.
//
// CRC: 8 bytes of a Reed-Solomon code over GF(2^8) mod 12Bh, generator (x + alpha) ... (x + alpha^8). FEC:
// check and parity byte of each of three interleaved groups, over GF(2^8) mod 11Dh. See rtl/contract/link.py.
#ifndef PLEXUS_NATIVE_FLIT_H
#define PLEXUS_NATIVE_FLIT_H

#include <cstdint>
#include <cstring>

namespace plexus {

constexpr int FLIT_BYTES = 256, INFO_BYTES = 242, FEC_AT = 250, DLP_AT = 236, DLP_BYTES = 6;
constexpr int SPAN = 84;  // places of a group

struct Field {
    uint8_t power[510];
    int log[256];

    explicit Field(int polynomial) {
        int value = 1;
        log[0] = 0;
        for (int n = 0; n < 255; n++) {
            power[n] = power[n + 255] = static_cast<uint8_t>(value);
            log[value] = n;
            value <<= 1;
            if (value > 255) value ^= polynomial;
        }
    }
    uint8_t times(int a, int b) const { return a && b ? power[log[a] + log[b]] : 0; }
};

struct FlitTables {
    Field crc_field{0x12B}, fec_field{0x11D};
    uint64_t crc[8][256];  // [k][b]: b * x^(8 + k) mod g, coefficient of x^7 in the top byte
    uint8_t alpha[256];    // alpha * b in the field of the FEC

    FlitTables() {
        uint8_t g[9] = {1};  // from x^0 on
        for (int root = 1; root <= 8; root++)
            for (int k = root; k >= 0; k--) {
                const uint8_t by = crc_field.times(g[k], crc_field.power[root]);
                g[k] = static_cast<uint8_t>((k ? g[k - 1] : 0) ^ by);
            }
        for (int b = 0; b < 256; b++) {
            uint64_t word = 0;
            for (int k = 7; k >= 0; k--) word = word << 8 | crc_field.times(g[k], b);
            crc[0][b] = word;
            alpha[b] = fec_field.times(b, 2);
        }
        for (int k = 1; k < 8; k++)
            for (int b = 0; b < 256; b++) crc[k][b] = crc[k - 1][b] << 8 ^ crc[0][crc[k - 1][b] >> 56];
    }
};

inline const FlitTables& flit_tables() {
    static const FlitTables tables;
    return tables;
}

// The remainder after `count` more bytes.
inline uint64_t crc_over(const FlitTables& t, uint64_t rest, const uint8_t* bytes, int count) {
    for (; count >= 8; count -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        rest ^= __builtin_bswap64(word);
        uint64_t sum = 0;
        for (int k = 0; k < 8; k++) sum ^= t.crc[k][rest >> (8 * k) & 255];
        rest = sum;
    }
    for (; count; count--) rest = rest << 8 ^ t.crc[0][rest >> 56 ^ *bytes++];
    return rest;
}

// The bytes of a remainder in a flit.
inline void put_crc(uint64_t rest, bool low_first, uint8_t* out) {
    if (!low_first) rest = __builtin_bswap64(rest);
    memcpy(out, &rest, 8);
}

// Check and parity of three groups, turned so that the next byte belongs to [0].
struct Groups {
    uint8_t check[3] = {}, parity[3] = {};

    // `count` more bytes.
    void over(const FlitTables& t, const uint8_t* bytes, int count) {
        uint8_t c[3], p[3];
        memcpy(c, check, 3);
        memcpy(p, parity, 3);
        int n = 0;
        for (; n + 3 <= count; n += 3)
            for (int g = 0; g < 3; g++) {
                c[g] = t.alpha[c[g]] ^ bytes[n + g];
                p[g] ^= bytes[n + g];
            }
        const int left = count - n;
        for (int g = 0; g < left; g++) {
            c[g] = t.alpha[c[g]] ^ bytes[n + g];
            p[g] ^= bytes[n + g];
        }
        for (int g = 0; g < 3; g++) {
            check[g] = c[(g + left) % 3];
            parity[g] = p[(g + left) % 3];
        }
    }

    // The six bytes of the FEC, when the last byte of a flit, taken as 0, is among those before.
    void put(uint8_t* out) const {
        out[0] = check[0];
        out[1] = check[1];
        out[2] = static_cast<uint8_t>(check[2] >> 1 ^ (check[2] & 1 ? 0x11D >> 1 : 0));  // divided by alpha
        memcpy(out + 3, parity, 3);
    }
};

}  // namespace plexus

#endif
