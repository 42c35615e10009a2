// Ports of the model by name, from the list that the build writes (ports.h).

#ifndef PLEXUS_PINS_H
#define PLEXUS_PINS_H

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "Vtop.h"
#include "ports.h"

namespace plexus {

struct Pin {
    void* at = nullptr;
    unsigned width = 0;    // bits
};

// Bytes in which Verilator keeps a port: 1, 2, 4, 8, or words of 4.
constexpr unsigned pin_bytes(unsigned width) {
    return width <= 8 ? 1 : width <= 16 ? 2 : width <= 32 ? 4 : width <= 64 ? 8 : (width + 31) / 32 * 4;
}

inline Pin find_pin(Vtop& top, const std::string& name) {
#define PLEXUS_FIND(port, member, direction, bits) \
    if (name == #port) return {static_cast<void*>(&top.member), bits};
    PLEXUS_PORTS(PLEXUS_FIND)
#undef PLEXUS_FIND
    return {};
}

// A port that must be there and be kept as a T.
template <typename T>
T* pin(Vtop& top, const std::string& name) {
    const Pin found = find_pin(top, name);
    if (!found.at) throw std::runtime_error("the top has no port " + name);
    if (pin_bytes(found.width) != sizeof(T)) {
        throw std::runtime_error("port " + name + " has " + std::to_string(found.width) + " bits, not what the driver expects");
    }
    return static_cast<T*>(found.at);
}

// A wide port of exactly `bytes` bytes.
inline void* wide_pin(Vtop& top, const std::string& name, unsigned bytes) {
    const Pin found = find_pin(top, name);
    if (!found.at || found.width != 8 * bytes) {
        throw std::runtime_error("port " + name + " must have " + std::to_string(8 * bytes) + " bits");
    }
    return found.at;
}

}  // namespace plexus

#endif
