// What Verilator's FST writer wants of zlib, so that it needs no library that a system may lack.
//
// A stream is made of stored blocks, so it is never smaller than what went in, and the writer then keeps that as it is.
// It does so for names' widths, points in time and the first values; changes of values go through LZ4.

#ifndef PLEXUS_ZLIB_H
#define PLEXUS_ZLIB_H

#include <cstdint>
#include <cstring>

typedef unsigned char Bytef;
typedef unsigned long uLong;
typedef unsigned long uLongf;
#define Z_OK 0
#define Z_BUF_ERROR (-5)

inline uLong compressBound(uLong bytes) { return bytes + 5 * (bytes / 65535 + 1) + 6; }

inline int compress2(Bytef* to, uLongf* size, const Bytef* from, uLong bytes, int) {
    if (*size < compressBound(bytes)) return Z_BUF_ERROR;
    Bytef* const begin = to;
    *to++ = 0x78;
    *to++ = 0x01;
    uint32_t a = 1, b = 0;  // Adler-32
    uLong left = bytes;
    do {
        const uLong count = left < 65535 ? left : 65535;
        left -= count;
        *to++ = left == 0;  // the last block
        *to++ = Bytef(count);
        *to++ = Bytef(count >> 8);
        *to++ = Bytef(~count);
        *to++ = Bytef(~count >> 8);
        std::memcpy(to, from, count);
        for (uLong i = 0; i < count; i++) {
            a = (a + from[i]) % 65521;
            b = (b + a) % 65521;
        }
        to += count;
        from += count;
    } while (left);
    for (const uint32_t half : {b, a}) {
        *to++ = Bytef(half >> 8);
        *to++ = Bytef(half);
    }
    *size = uLongf(to - begin);
    return Z_OK;
}

#endif
