#include "hbm.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace plexus {

namespace {

constexpr unsigned OUTSTANDING = 256;    // bursts a port may have accepted in one direction
constexpr unsigned BUFFER_BEATS = 16;    // W beats a port may be ahead of the bandwidth
constexpr uint8_t URGENT_QOS = 8;        // and above
constexpr uint8_t OKAY = 0;
constexpr uint8_t DECERR = 3;
constexpr uint8_t INCR = 1;
constexpr uint64_t PAGE = 4096;

}  // namespace

Hbm::Hbm(const HbmConfig& config) : config_(config), ports_(config.ports) {
    if (config.port_bytes < 8 || config.port_bytes > MAX_PORT_BYTES) {
        throw std::runtime_error("an HBM port has 8 to 128 bytes, not " + std::to_string(config.port_bytes));
    }
    void* at = mmap(nullptr, config.capacity_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        throw std::runtime_error("the host has no address space for " + std::to_string(config.capacity_bytes) +
                                 " bytes of HBM");
    }
    memory_ = static_cast<uint8_t*>(at);
    for (Port& port : ports_) port.buffer.resize(BUFFER_BEATS);
}

Hbm::~Hbm() {
    if (memory_) munmap(memory_, config_.capacity_bytes);
}

void Hbm::bind(unsigned port, const AxiPins& pins) { ports_.at(port).pins = pins; }

bool Hbm::idle() const {
    for (const Port& port : ports_) {
        if (!port.reads[0].empty() || !port.reads[1].empty() || !port.writes.empty() || !port.responses.empty() || port.buffer_used ||
            port.read_valid || port.response_valid) {
            return false;
        }
    }
    return true;
}

void Hbm::violate(unsigned index, const std::string& what) {
    if (violation_.empty()) violation_ = "AXI port " + std::to_string(index) + ": " + what;
}

void Hbm::check_address(unsigned index, bool write, uint64_t address, unsigned beats, unsigned size, unsigned burst) {
    const char* channel = write ? "AW" : "AR";
    const uint64_t bytes = config_.port_bytes;
    const uint64_t first = address & ~(bytes - 1);
    if (burst != INCR) violate(index, std::string(channel) + " burst is not INCR");
    if ((uint64_t(1) << size) != bytes) violate(index, std::string(channel) + " size is not the width of the port");
    if (first / PAGE != (first + beats * bytes - 1) / PAGE) {
        violate(index, std::string(channel) + " burst crosses a 4 KiB boundary at " + std::to_string(address));
    }
}

void Hbm::check_held(Port& port, unsigned index, bool write, bool valid, bool ready, uint64_t address, uint32_t rest) {
    if (port.address_waits[write]) {
        const char* channel = write ? "AW" : "AR";
        if (!valid) {
            violate(index, std::string(channel) + " valid fell before ready");
        } else if (address != port.address_was[write]) {
            violate(index, std::string(channel) + " address changed before ready");
        } else if (rest != port.rest_was[write]) {
            violate(index, std::string(channel) + " id, length or QoS changed before ready");
        }
    }
    port.address_waits[write] = valid && !ready;
    port.address_was[write] = address;
    port.rest_was[write] = rest;
}

bool Hbm::accept(Port& port, unsigned index, uint64_t now) {
    const AxiPins& pins = port.pins;
    const uint64_t mask = ~(config_.port_bytes - 1);
    bool moved = false;

    if (*pins.arvalid || port.address_waits[0]) {
        check_held(port, index, false, *pins.arvalid, *pins.arready, *pins.araddr,
                   *pins.arid | *pins.arlen << 8 | *pins.arqos << 16);
        if (*pins.arvalid && *pins.arready) {
            const unsigned beats = unsigned(*pins.arlen) + 1;
            check_address(index, false, *pins.araddr, beats, *pins.arsize, *pins.arburst);
            const uint8_t id = *pins.arid;
            bool urgent = *pins.arqos >= URGENT_QOS;
            // what is of one id stays in order
            for (const Burst& before : port.reads[!urgent]) {
                if (before.id == id) {
                    urgent = !urgent;
                    break;
                }
            }
            urgent_ += urgent;
            port.reads[urgent].push_back(
                {*pins.araddr & mask, now + config_.latency_cycles, beats, id, false, urgent});
            counters_.read_bursts++;
            moved = true;
        }
    }
    if (*pins.awvalid || port.address_waits[1]) {
        check_held(port, index, true, *pins.awvalid, *pins.awready, *pins.awaddr,
                   *pins.awid | *pins.awlen << 8 | *pins.awqos << 16);
        if (*pins.awvalid && *pins.awready) {
            const unsigned beats = unsigned(*pins.awlen) + 1;
            check_address(index, true, *pins.awaddr, beats, *pins.awsize, *pins.awburst);
            const bool urgent = *pins.awqos >= URGENT_QOS;
            urgent_ += urgent;
            port.writes.push_back({*pins.awaddr & mask, 0, beats, *pins.awid, false, urgent});
            counters_.write_bursts++;
            moved = true;
        }
    }
    if (*pins.wvalid || port.write_waits) {
        if (!*pins.wvalid) violate(index, "W valid fell before ready");
        port.write_waits = *pins.wvalid && !*pins.wready;
        if (*pins.wvalid && *pins.wready) {
            WriteBeat& beat = port.buffer[(port.buffer_head + port.buffer_used) % BUFFER_BEATS];
            std::memcpy(beat.data, pins.wdata, config_.port_bytes);
            std::memcpy(beat.strobe, pins.wstrb, config_.port_bytes / 8);
            beat.last = *pins.wlast;
            port.buffer_used++;
            moved = true;
        }
    }
    if (port.read_valid && *pins.rready) {
        port.read_valid = false;
        moved = true;
    }
    if (port.response_valid && *pins.bready) {
        port.response_valid = false;
        moved = true;
    }
    return moved;
}

bool Hbm::wants(const Port& port, bool write, bool urgent, uint64_t now) const {
    if (write) return port.buffer_used && !port.writes.empty() && port.writes.front().urgent == urgent;
    const std::deque<Burst>& reads = port.reads[urgent];
    return !port.read_valid && !reads.empty() && reads.front().due <= now + 1;
}

void Hbm::serve_read(Port& port, bool urgent) {
    Burst& burst = port.reads[urgent].front();
    const uint64_t bytes = config_.port_bytes;
    const bool inside = burst.address + bytes <= config_.capacity_bytes;
    if (inside) {
        std::memcpy(port.read_data, memory_ + burst.address, bytes);
    } else {
        std::memset(port.read_data, 0, bytes);
    }
    port.read_valid = true;
    port.read_changed = true;
    port.read_id = burst.id;
    port.read_code = inside ? OKAY : DECERR;
    port.read_last = burst.beats == 1;
    burst.address += bytes;
    counters_.read_beats++;
    if (--burst.beats == 0) {
        port.reads[urgent].pop_front();
        urgent_ -= urgent;
    }
}

void Hbm::serve_write(Port& port, unsigned index, uint64_t now) {
    Burst& burst = port.writes.front();
    const WriteBeat& beat = port.buffer[port.buffer_head];
    const uint64_t bytes = config_.port_bytes;
    if (burst.address + bytes <= config_.capacity_bytes) {
        uint8_t* at = memory_ + burst.address;
        for (unsigned group = 0; group < bytes / 8; group++) {
            const unsigned strobe = beat.strobe[group];
            if (strobe == 0xff) {
                std::memcpy(at + 8 * group, beat.data + 8 * group, 8);
            } else {
                for (unsigned b = 0; b < 8; b++) {
                    if (strobe >> b & 1) at[8 * group + b] = beat.data[8 * group + b];
                }
            }
            counters_.written_bytes += unsigned(__builtin_popcount(strobe));
        }
    } else {
        burst.error = true;
    }
    if (beat.last != (burst.beats == 1)) violate(index, "W last is not on the last beat of its burst");
    burst.address += bytes;
    counters_.write_beats++;
    port.buffer_head = (port.buffer_head + 1) % BUFFER_BEATS;
    port.buffer_used--;
    if (--burst.beats == 0) {
        port.responses.push_back({now + config_.latency_cycles, burst.id, burst.error ? DECERR : OKAY});
        urgent_ -= burst.urgent;
        port.writes.pop_front();
    }
}

bool Hbm::sample(uint64_t now) {
    bool moved = false;
    for (unsigned i = 0; i < ports_.size(); i++) moved |= accept(ports_[i], i, now);

    const uint64_t bytes = config_.port_bytes;
    tokens_ = std::min(tokens_ + config_.bytes_per_cycle, config_.bytes_per_cycle + bytes - 1);
    const unsigned requesters = 2 * unsigned(ports_.size());
    unsigned next_turn[2] = {turn_[0], turn_[1]};
    bool refused = false;
    uint64_t served = 0;    // a beat each way a port
    const bool some_urgent = urgent_ != 0;
    for (unsigned k = some_urgent ? 0 : requesters; k < 2 * requesters; k++) {
        const bool urgent = k < requesters;
        const unsigned who = (turn_[urgent] + k) % requesters;
        Port& port = ports_[who / 2];
        const bool write = who & 1;
        if ((served >> who & 1) || !wants(port, write, urgent, now)) continue;
        if (tokens_ < bytes) {
            refused = true;
            break;
        }
        tokens_ -= bytes;
        if (write) {
            serve_write(port, who / 2, now);
        } else {
            serve_read(port, urgent);
        }
        served |= uint64_t(1) << who;
        next_turn[urgent] = (who + 1) % requesters;
        moved = true;
    }
    std::copy(next_turn, next_turn + 2, turn_);
    counters_.refused_cycles += refused;

    for (Port& port : ports_) {
        if (!port.response_valid && !port.responses.empty() && port.responses.front().due <= now + 1) {
            port.response_valid = true;
            port.response_id = port.responses.front().id;
            port.response_code = port.responses.front().code;
            port.responses.pop_front();
        }
    }
    return moved;
}

void Hbm::drive() {
    for (Port& port : ports_) {
        const AxiPins& pins = port.pins;
        *pins.arready = port.reads[0].size() + port.reads[1].size() < OUTSTANDING;
        *pins.awready = port.writes.size() < OUTSTANDING;
        *pins.wready = port.buffer_used < BUFFER_BEATS;
        *pins.rvalid = port.read_valid;
        if (port.read_changed) {
            std::memcpy(pins.rdata, port.read_data, config_.port_bytes);
            *pins.rid = port.read_id;
            *pins.rresp = port.read_code;
            *pins.rlast = port.read_last;
            port.read_changed = false;
        }
        *pins.bvalid = port.response_valid;
        *pins.bid = port.response_id;
        *pins.bresp = port.response_code;
    }
}

}  // namespace plexus
