// A core under its own clock, with HBM behind its AXI ports and a host on its register port.
//
// A cycle: clock low with this cycle's inputs, everything settles; handshakes are taken and the next
// cycle's answers prepared; clock high; the answers are put on the pins. No input depends on an output
// of the same cycle.

#ifndef PLEXUS_DRIVER_H
#define PLEXUS_DRIVER_H

#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "hbm.h"
#include "model.h"
#include "pins.h"
#include "trace.h"

namespace plexus {

enum Reason : int {
    LIMIT = 0,      // max_cycles passed
    DONE = 1,       // the core says done
    FAULT = 2,      // a queue or ring has halted, and nothing moves any more
    STUCK = 3,      // nothing has moved for quiet_cycles, and no engine has worked
    TIME = 4,       // the time slice is over
    PROTOCOL = 5,   // the core broke the AXI protocol
    FATAL = 6,      // an assertion or $finish in the model
};

struct Retired {
    uint64_t cycle;
    uint32_t sequence;
    uint16_t queue;
    uint16_t cause;
};

constexpr unsigned QUEUES = 5;    // rtl.contract.isa.Queue
constexpr unsigned ENGINES = 5;   // rtl.contract.timing.Engine
constexpr uint32_t BUSY = 0x4000;           // rtl.contract.memmap: Control.ENGINE + EngineRegister.BUSY
constexpr uint32_t ENGINE_STRIDE = 0x100;
constexpr uint32_t SLEEP = 0x4310;          // the same of engine GPSIMD: EngineRegister.STALL, `sleep` is the first

constexpr unsigned GPSIMD_CORES = 8;             // rtl.contract.gpsimd.CORES_MAX
constexpr size_t PRINTED_BYTES = size_t(1) << 20;  // of a core; what it prints behind that is not kept

struct RetirePins {
    const CData* valid;
    const SData* sequence;
    const CData* cause;
};

inline AxiPins axi_pins(Vtop& top, unsigned index, unsigned port_bytes) {
    const std::string name = "axi__" + std::to_string(index) + "__";
    AxiPins p{};
    p.arvalid = pin<CData>(top, name + "arvalid");
    p.arready = pin<CData>(top, name + "arready");
    p.arid = pin<CData>(top, name + "arid");
    p.araddr = pin<QData>(top, name + "araddr");
    p.arlen = pin<CData>(top, name + "arlen");
    p.arsize = pin<CData>(top, name + "arsize");
    p.arburst = pin<CData>(top, name + "arburst");
    p.arqos = pin<CData>(top, name + "arqos");
    p.rvalid = pin<CData>(top, name + "rvalid");
    p.rready = pin<CData>(top, name + "rready");
    p.rid = pin<CData>(top, name + "rid");
    p.rdata = wide_pin(top, name + "rdata", port_bytes);
    p.rresp = pin<CData>(top, name + "rresp");
    p.rlast = pin<CData>(top, name + "rlast");
    p.awvalid = pin<CData>(top, name + "awvalid");
    p.awready = pin<CData>(top, name + "awready");
    p.awid = pin<CData>(top, name + "awid");
    p.awaddr = pin<QData>(top, name + "awaddr");
    p.awlen = pin<CData>(top, name + "awlen");
    p.awsize = pin<CData>(top, name + "awsize");
    p.awburst = pin<CData>(top, name + "awburst");
    p.awqos = pin<CData>(top, name + "awqos");
    p.wvalid = pin<CData>(top, name + "wvalid");
    p.wready = pin<CData>(top, name + "wready");
    p.wdata = wide_pin(top, name + "wdata", port_bytes);
    p.wstrb = wide_pin(top, name + "wstrb", port_bytes / 8);
    p.wlast = pin<CData>(top, name + "wlast");
    p.bvalid = pin<CData>(top, name + "bvalid");
    p.bready = pin<CData>(top, name + "bready");
    p.bid = pin<CData>(top, name + "bid");
    p.bresp = pin<CData>(top, name + "bresp");
    return p;
}

// What else is at a core's pins: its part of a cycle.
class Attached {
public:
    virtual ~Attached() = default;
    // As Hbm::sample and Hbm::drive; `next` is the cycle that begins.
    virtual bool sample(uint64_t now) = 0;
    virtual void drive(uint64_t next) = 0;
};

class Driver {
public:
    Driver(const HbmConfig& config, uint64_t retire_limit) : hbm(config), retire_limit_(retire_limit) {
        Vtop& top = model.top();
        for (unsigned i = 0; i < config.ports; i++) hbm.bind(i, axi_pins(top, i, unsigned(config.port_bytes)));
        for (unsigned q = 0; q < QUEUES; q++) {
            const std::string name = "retire__" + std::to_string(q) + "__";
            retire_[q] = {pin<CData>(top, name + "valid"), pin<SData>(top, name + "sequence"), pin<CData>(top, name + "cause")};
        }
    }

    void reset(uint64_t cycles) {
        Vtop& top = model.top();
        top.host_valid = 0;
        top.host_write = 0;
        top.core_id = core_id;
        top.rst = 1;
        for (uint64_t i = 0; i < cycles; i++) {
            model.low();
            model.high();
        }
        top.rst = 0;
        hbm.drive();
        if (attached) attached->drive(now);
    }

    // One cycle. Returns whether anything moved.
    bool cycle() {
        model.low();
        if (trace) trace->sample(now, hbm.counters());
        bool moved = hbm.sample(now);
        for (unsigned q = 0; q < QUEUES; q++) {
            if (*retire_[q].valid) {
                if (retired.size() < retire_limit_) {
                    retired.push_back({now, *retire_[q].sequence, uint16_t(q), *retire_[q].cause});
                }
                retired_total++;
                moved = true;
            }
        }
#ifdef PLEXUS_HAS_debug_valid
        const Vtop& top = model.top();
        if (top.debug_valid) {
            std::string& text = printed[top.debug_core % GPSIMD_CORES];
            if (text.size() < PRINTED_BYTES) text.push_back(char(top.debug_byte));
        }
#endif
        if (attached) moved |= attached->sample(now);
        model.high();
        hbm.drive();
        if (attached) attached->drive(now + 1);
        if (moved) last_moved = now;
        now++;
        return moved;
    }

    Reason run(uint64_t max_cycles, uint64_t quiet_cycles, uint64_t fault_quiet_cycles, uint64_t milliseconds) {
        using clock = std::chrono::steady_clock;
        const auto begin = clock::now();
        const auto until = begin + std::chrono::milliseconds(milliseconds);
        const uint64_t last = now + max_cycles;
        const Vtop& top = model.top();
        Reason reason = LIMIT;
        while (now < last) {
            cycle();
            if (top.done) {
                reason = DONE;
                break;
            }
            if (top.fault && hbm.idle() && quiet_for(fault_quiet_cycles)) {
                reason = FAULT;
                break;
            }
            if (quiet_for(quiet_cycles)) {
                reason = STUCK;
                break;
            }
            if ((now & 63) == 0) {
                if (!hbm.violation().empty()) {
                    reason = PROTOCOL;
                    break;
                }
                if (model.context().gotFinish()) {
                    reason = FATAL;
                    break;
                }
                if (clock::now() >= until) {
                    reason = TIME;
                    break;
                }
            }
        }
        if (!hbm.violation().empty()) reason = PROTOCOL;
        seconds += std::chrono::duration<double>(clock::now() - begin).count();
        return reason;
    }

    // An input that stands still from reset on.
    void limit(const std::string& name, uint64_t value) {
        const Pin found = find_pin(model.top(), name);
        if (!found.at || pin_bytes(found.width) > 4) throw std::runtime_error("the top has no port " + name);
        std::memcpy(found.at, &value, pin_bytes(found.width));    // of a machine with the low byte first
    }

    // The host's pins for the next cycle.
    void host_pins(bool valid, bool write = false, uint32_t address = 0, uint64_t value = 0) {
        Vtop& top = model.top();
        top.host_valid = valid;
        top.host_write = write;
        top.host_address = uint16_t(address);
        top.host_wdata = value;
    }

    // What was asked for two cycles ago.
    uint64_t host_answer() {
        model.settle();
        return model.top().host_rdata;
    }

    void host_write(uint32_t address, uint64_t value) {
        host_pins(true, true, address, value);
        cycle();
        host_pins(false);
    }

    uint64_t host_read(uint32_t address) {
        host_pins(true, false, address);
        cycle();
        host_pins(false);
        cycle();
        return host_answer();
    }

    Model model;
    Hbm hbm;
    std::vector<Retired> retired;
    std::string printed[GPSIMD_CORES];    // by programs, if the model has cores that print
    std::unique_ptr<Trace> trace;
    uint64_t retired_total = 0;
    uint64_t now = 0;
    uint32_t core_id = 0;    // from the next reset on
    Attached* attached = nullptr;
    uint64_t last_moved = 0;
    double seconds = 0;

private:
    // Whether nothing has moved for `cycles`. A long copy inside the core shows on no port, so silence
    // counts only if no engine's count of busy cycles has grown since the last time it was asked.
    bool quiet_for(uint64_t cycles) {
        if (now - last_moved <= cycles) return false;
        uint64_t busy = 0;
        for (unsigned e = 0; e < ENGINES; e++) busy += host_read(BUSY + e * ENGINE_STRIDE);
        busy += host_read(SLEEP);    // a program that waits for a time; a watchdog ends it
        if (busy != busy_) last_moved = now;
        busy_ = busy;
        return now - last_moved > cycles;
    }

    uint64_t retire_limit_;
    uint64_t busy_ = 0;
    RetirePins retire_[QUEUES];
};

}  // namespace plexus

#endif
