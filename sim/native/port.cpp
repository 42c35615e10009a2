// One port, a flit time a call: what sim/native/ports.py calls.

#include "port_model.h"

namespace {

thread_local std::string error;

class FlitPort : public plexus::PortModel {
public:
    explicit FlitPort(uint16_t session)
        : PortModel(session),
          beat_(plexus::find_pin(top(), "tx_data").width / 8),
          tx_(static_cast<const uint8_t*>(plexus::wide_pin(top(), "tx_data", beat_))),
          rx_(static_cast<uint8_t*>(plexus::wide_pin(top(), "rx_data", beat_))) {
        // The first flit's beats come when the pipeline has filled; from then on there is one in every flit time.
        for (int i = 0; i < 64; i++) {
            model_.low();
            if (top().tx_valid && top().tx_first) return;
            model_.high();
        }
        throw std::runtime_error("the port sends no flit");
    }

    // A flit time. rx: 256 bytes, or null for a flit that the receiver must refuse.
    void step(const uint8_t* rx, uint8_t* tx) {
        const unsigned beats = plexus::FLIT / beat_;
        for (unsigned n = 0; n < beats; n++) {
            // A hot reset lasts one cycle, or it would end the session that it begins; in DOWN nobody would hear it.
            top().restart = restart && top().state != DOWN;
            if (top().restart) restart = false;
            top().rx_valid = 1;
            top().rx_first = n == 0;
            top().rx_last = n == beats - 1;
            top().rx_refuse = rx == nullptr;
            if (rx) std::memcpy(rx_, rx + n * beat_, beat_);
            low();
            std::memcpy(tx + n * beat_, tx_, beat_);
            high();
        }
        top().restart = 0;
    }

    bool restart = false;  // asked for and not done

private:
    static constexpr unsigned DOWN = 0;
    unsigned beat_;
    const uint8_t* tx_;
    uint8_t* rx_;
};

}  // namespace

void vl_fatal(const char*, int line, const char* scope, const char* message) {
    throw std::runtime_error(std::string("the model stopped in ") + (scope ? scope : "") + ", line " +
                             std::to_string(line) + ": " + message);
}
void vl_stop(const char* file, int line, const char* scope) { vl_fatal(file, line, scope, "$stop"); }
void vl_finish(const char* file, int line, const char* scope) { vl_fatal(file, line, scope, "$finish"); }

#define PX extern "C" __attribute__((visibility("default")))
using Port = FlitPort;

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

// Hot reset in the next cycle in which the port is not in DOWN.
PX void px_port_restart(void* port) { static_cast<Port*>(port)->restart = true; }

// Input pins of one bit or more, by name: disabled, take.
PX int px_port_set(void* port, const char* name, uint64_t value) {
    const plexus::Pin pin = plexus::find_pin(static_cast<Port*>(port)->top(), name);
    if (!pin.at || pin.width > 64) {
        error = std::string("the port has no input of at most 64 bits that is called ") + name;
        return -1;
    }
    std::memcpy(pin.at, &value, plexus::pin_bytes(pin.width));
    return 0;
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
