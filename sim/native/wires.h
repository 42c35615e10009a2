// What the wires between two ports carry, and faults aimed at the markers on them.

#ifndef PLEXUS_WIRES_H
#define PLEXUS_WIRES_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace plexus {

constexpr unsigned WORD = 8;  // bytes of a lane in a link cycle
constexpr unsigned LANES_MAX = 18;

struct Random {
    uint64_t state;
    uint64_t next() {  // splitmix64
        uint64_t z = (state += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    double unit() { return double(next() >> 11) * 0x1.0p-53; }
    unsigned below(unsigned n) { return unsigned(next() % n); }
};

struct Words {
    bool valid = false;
    std::array<uint8_t, WORD * LANES_MAX> bytes{};
};

// What has passed over the lanes of one end; damages the flits and markers that it was told to.
class Aim {
public:
    explicit Aim(unsigned physical) : physical_(physical) {}

    void flits_from(uint64_t first, uint64_t count) { wanted_.emplace_back(first, first + count); }
    void next_markers(uint64_t lanes, uint64_t times) { marker_lanes_ = lanes, marker_times_ = times; }

    // The words of a link cycle; `width`: lanes in use. True if they are a marker.
    bool pass(Words& words, unsigned width, Random& random) {
        if (!words.valid) return false;
        if (is_marker(words)) {
            markers++;
            since = cycles_ = 0;
            if (marker_times_) {
                marker_times_--;
                spoil(words, marker_lanes_, random);
            }
            return true;
        }
        if (cycles_ == 0) begin();
        if (hit_) spoil(words, ~0ull, random);
        if (++cycles_ >= 256 / (WORD * width)) cycles_ = 0;
        return false;
    }

    uint64_t flits = 0, since = 0, markers = 0, refused = 0;  // begun; after the last marker; and refused ones

private:
    bool is_marker(const Words& words) const {  // in clear on all lanes: MARKER_SYNC
        for (unsigned lane = 0; lane < physical_; lane++) {
            if (words.bytes[lane * WORD] != 0xcf || words.bytes[lane * WORD + 1] != 0x1a) return false;
        }
        return true;
    }

    void begin() {
        hit_ = false;
        for (const auto& [first, end] : wanted_) hit_ |= first <= flits && flits < end;
        const auto over = [this](const auto& range) { return range.second <= flits; };
        wanted_.erase(std::remove_if(wanted_.begin(), wanted_.end(), over), wanted_.end());
        refused += hit_;
        flits++;
        since++;
    }

    void spoil(Words& words, uint64_t lanes, Random& random) const {
        for (unsigned lane = 0; lane < physical_; lane++) {
            if (lanes >> lane & 1) words.bytes[lane * WORD + random.below(WORD)] ^= uint8_t(1 + random.below(255));
        }
    }

    unsigned physical_;
    std::vector<std::pair<uint64_t, uint64_t>> wanted_;  // flits by number, from and to
    uint64_t marker_lanes_ = 0, marker_times_ = 0;
    unsigned cycles_ = 0;  // of the flit under way
    bool hit_ = false;
};

}  // namespace plexus

#endif
