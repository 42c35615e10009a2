// Arrays through a unit of fixed latency: element i enters in cycle i, its result leaves LATENCY later.

#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "model.h"
#include "pins.h"

namespace {

thread_local std::string error;

struct Channel {
    void* pin;
    uint8_t* data;
    uint64_t bytes;     // of an element
    bool broadcast;
};

Channel channel(Vtop& top, const char* name, void* data, uint64_t bytes, uint64_t count) {
    const plexus::Pin pin = plexus::find_pin(top, name);
    if (!pin.at) throw std::runtime_error(std::string("the unit has no port ") + name);
    if (bytes > plexus::pin_bytes(pin.width)) {
        throw std::runtime_error(std::string("an element of ") + std::to_string(bytes) + " bytes is wider than port " +
                                 name + " (" + std::to_string(pin.width) + " bits)");
    }
    return {pin.at, static_cast<uint8_t*>(data), bytes, count == 1};
}

}  // namespace

void vl_fatal(const char*, int line, const char* scope, const char* message) {
    throw std::runtime_error(std::string("the model stopped in ") + (scope ? scope : "") + ", line " +
                             std::to_string(line) + ": " + message);
}
void vl_stop(const char* file, int line, const char* scope) { vl_fatal(file, line, scope, "$stop"); }
void vl_finish(const char* file, int line, const char* scope) { vl_fatal(file, line, scope, "$finish"); }

#define PX extern "C" __attribute__((visibility("default")))

PX const char* px_error() { return error.c_str(); }

// `names`, `data`, `bytes`, `counts`: the inputs, then the outputs. An input of one element holds.
PX int px_stream(uint64_t elements, uint64_t latency, uint64_t inputs, uint64_t outputs, const char* const* names,
                 void* const* data, const uint64_t* bytes, const uint64_t* counts) {
    try {
        plexus::Model model;
        Vtop& top = model.top();
        std::vector<Channel> in;
        std::vector<Channel> out;
        for (uint64_t k = 0; k < inputs + outputs; k++) {
            (k < inputs ? in : out).push_back(channel(top, names[k], data[k], bytes[k], counts[k]));
        }
#ifdef PLEXUS_HAS_clk
        top.rst = 1;
        for (int i = 0; i < 4; i++) {
            model.low();
            model.high();
        }
        top.rst = 0;
#endif
        for (Channel& c : in) {
            if (c.broadcast) std::memcpy(c.pin, c.data, c.bytes);
        }
        for (uint64_t cycle = 0; cycle < elements + latency; cycle++) {
            if (cycle < elements) {
                for (Channel& c : in) {
                    if (!c.broadcast) std::memcpy(c.pin, c.data + cycle * c.bytes, c.bytes);
                }
            }
            model.low();
            if (cycle >= latency) {
                for (Channel& c : out) std::memcpy(c.data + (cycle - latency) * c.bytes, c.pin, c.bytes);
            }
            model.high();
        }
        return 0;
    } catch (const std::exception& e) {
        error = e.what();
        return -1;
    }
}
