// One port, a flit time a call: what sim/native/ports.py calls.

#include "port_model.h"

namespace {

thread_local std::string error;

}  // namespace

void vl_fatal(const char*, int line, const char* scope, const char* message) {
    throw std::runtime_error(std::string("the model stopped in ") + (scope ? scope : "") + ", line " +
                             std::to_string(line) + ": " + message);
}
void vl_stop(const char* file, int line, const char* scope) { vl_fatal(file, line, scope, "$stop"); }
void vl_finish(const char* file, int line, const char* scope) { vl_fatal(file, line, scope, "$finish"); }

#define PX extern "C" __attribute__((visibility("default")))
using Port = plexus::PortModel;

PX const char* px_error() { return error.c_str(); }

PX void* px_port_create(uint64_t session, const char* waves) {
    try {
        auto* port = new Port(uint16_t(session));
        if (waves && *waves) port->open_waves(waves);
        return port;
    } catch (const std::exception& e) {
        error = e.what();
        return nullptr;
    }
}

PX void px_port_destroy(void* port) { delete static_cast<Port*>(port); }

PX int px_port_step(void* port, const uint8_t* rx, uint8_t* tx) {
    try {
        static_cast<Port*>(port)->step(rx, tx);
        return 0;
    } catch (const std::exception& e) {
        error = e.what();
        return -1;
    }
}

PX int px_port_send(void* port, uint64_t cls, const uint8_t* bytes, uint64_t count) {
    return static_cast<Port*>(port)->send(uint8_t(cls), bytes, count);
}

// The oldest packet delivered: its length, or -1 if there is none.
PX int px_port_take(void* port, uint8_t* cls, uint8_t* bytes) {
    auto& taken = static_cast<Port*>(port)->taken;
    if (taken.empty()) return -1;
    const int count = int(taken.front().bytes.size());
    *cls = taken.front().cls;
    std::memcpy(bytes, taken.front().bytes.data(), size_t(count));
    taken.pop_front();
    return count;
}

// Input pins of one bit or more, by name: restart, disable, take.
PX int px_port_set(void* port, const char* name, uint64_t value) {
    try {
        *plexus::pin<CData>(static_cast<Port*>(port)->top(), name) = CData(value);
        return 0;
    } catch (const std::exception& e) {
        error = e.what();
        return -1;
    }
}

// A pin's value, as it was in the last cycle.
PX int px_port_get(void* port, const char* name, uint64_t* value) {
    const plexus::Pin pin = plexus::find_pin(static_cast<Port*>(port)->top(), name);
    if (!pin.at) {
        error = std::string("the port has no pin ") + name;
        return -1;
    }
    *value = 0;
    std::memcpy(value, pin.at, plexus::pin_bytes(pin.width));
    return 0;
}

PX uint64_t px_port_cycles(void* port) { return static_cast<Port*>(port)->cycles; }
