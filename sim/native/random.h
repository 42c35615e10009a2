// Random numbers that are the same on every machine.

#ifndef PLEXUS_RANDOM_H
#define PLEXUS_RANDOM_H

#include <cstdint>

namespace plexus {

// A number into one that looks random: the step of splitmix64.
inline uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

struct Random {
    uint64_t state;
    uint64_t next() { return mixed(state += 0x9e3779b97f4a7c15ull); }
    double unit() { return double(next() >> 11) * 0x1.0p-53; }
    unsigned below(unsigned n) { return unsigned(next() % n); }
};

}  // namespace plexus

#endif
