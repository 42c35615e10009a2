// LZ4 blocks for Verilator's FST writer, so that it needs no library that a system may lack.
//
// Greedy, with one table of the last place of each hash of four bytes: about what the library does at its
// fastest. Block format: lz4_Block_format.md of the LZ4 project.

#ifndef PLEXUS_LZ4_H
#define PLEXUS_LZ4_H

#include <cstdint>
#include <cstring>
#include <vector>

inline int LZ4_compressBound(int bytes) { return bytes + bytes / 255 + 16; }

namespace plexus_lz4 {

// A length beyond the 15 that a token holds.
inline uint8_t* more(uint8_t* to, size_t left) {
    for (; left >= 255; left -= 255) *to++ = 255;
    *to++ = uint8_t(left);
    return to;
}

// Literals and, if `match` is not 0, a copy of `match` bytes from `back` bytes before.
inline uint8_t* sequence(uint8_t* to, const uint8_t* literals, size_t count, size_t back, size_t match) {
    uint8_t* token = to++;
    *token = uint8_t((count < 15 ? count : 15) << 4);
    if (count >= 15) to = more(to, count - 15);
    std::memcpy(to, literals, count);
    to += count;
    if (match) {
        *to++ = uint8_t(back);
        *to++ = uint8_t(back >> 8);
        const size_t length = match - 4;
        *token |= uint8_t(length < 15 ? length : 15);
        if (length >= 15) to = more(to, length - 15);
    }
    return to;
}

inline uint32_t four(const uint8_t* at) {
    uint32_t value;
    std::memcpy(&value, at, 4);
    return value;
}

}  // namespace plexus_lz4

// Bytes written, or 0 if `capacity` is less than LZ4_compressBound.
inline int LZ4_compress_default(const char* source, char* target, int bytes, int capacity) {
    using namespace plexus_lz4;
    if (capacity < LZ4_compressBound(bytes)) return 0;
    const uint8_t* const in = reinterpret_cast<const uint8_t*>(source);
    uint8_t* to = reinterpret_cast<uint8_t*>(target);
    constexpr int BITS = 12;
    thread_local std::vector<int32_t> last;
    last.assign(size_t(1) << BITS, -1);
    int from = 0;                        // literals that wait
    const int matches_end = bytes - 5;   // the last five bytes are literals
    for (int at = 0; at + 12 <= bytes;) {  // and no match begins in the last twelve
        int32_t& slot = last[(four(in + at) * 2654435761u) >> (32 - BITS)];
        const int before = slot;
        slot = at;
        if (before < 0 || at - before > 65535 || four(in + before) != four(in + at)) {
            at++;
            continue;
        }
        int end = at + 4;
        while (end < matches_end && in[end] == in[end - at + before]) end++;
        to = sequence(to, in + from, size_t(at - from), size_t(at - before), size_t(end - at));
        from = at = end;
    }
    to = sequence(to, in + from, size_t(bytes - from), 0, 0);
    return int(to - reinterpret_cast<uint8_t*>(target));
}

#endif
