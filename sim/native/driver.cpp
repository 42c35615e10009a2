// A core under its own clock, with HBM behind its AXI ports and a host on its register port.
//
// A cycle: clock low with this cycle's inputs, everything settles; handshakes are taken and the next
// cycle's answers prepared; clock high; the answers are put on the pins. No input depends on an output
// of the same cycle. The C functions at the end are what sim/native/library.py calls.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "hbm.h"
#include "model.h"
#include "pins.h"
#include "trace.h"
#include "svdpi.h"
#include "verilated_syms.h"

// Exported by rtl/cells/plexus_ram.sv, if the design has one; svSetScope comes with any DPI function.
extern "C" {
svScope svSetScope(const svScope) __attribute__((weak));
int plexus_ram_width() __attribute__((weak));
int plexus_ram_depth() __attribute__((weak));
int plexus_ram_peek(int row, int word) __attribute__((weak));
}

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

AxiPins axi_pins(Vtop& top, unsigned index, unsigned port_bytes) {
    const std::string name = "axi__" + std::to_string(index) + "__";
    AxiPins p{};
    p.arvalid = pin<CData>(top, name + "arvalid");
    p.arready = pin<CData>(top, name + "arready");
    p.arid = pin<CData>(top, name + "arid");
    p.araddr = pin<QData>(top, name + "araddr");
    p.arlen = pin<CData>(top, name + "arlen");
    p.arsize = pin<CData>(top, name + "arsize");
    p.arburst = pin<CData>(top, name + "arburst");
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
        top.core_id = 0;
        top.rst = 1;
        for (uint64_t i = 0; i < cycles; i++) {
            model.low();
            model.high();
        }
        top.rst = 0;
        hbm.drive();
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
        model.high();
        hbm.drive();
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

    void host_write(uint32_t address, uint64_t value) {
        Vtop& top = model.top();
        top.host_valid = 1;
        top.host_write = 1;
        top.host_address = uint16_t(address);
        top.host_wdata = value;
        cycle();
        top.host_valid = 0;
        top.host_write = 0;
    }

    uint64_t host_read(uint32_t address) {
        Vtop& top = model.top();
        top.host_valid = 1;
        top.host_write = 0;
        top.host_address = uint16_t(address);
        cycle();
        top.host_valid = 0;
        cycle();
        model.settle();    // two cycles after the request
        return top.host_rdata;
    }

    Model model;
    Hbm hbm;
    std::vector<Retired> retired;
    std::string printed[GPSIMD_CORES];    // by programs, if the model has cores that print
    std::unique_ptr<Trace> trace;
    uint64_t retired_total = 0;
    uint64_t now = 0;
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

namespace {

thread_local std::string error;

// Runs `body`; an exception becomes `failed` and a sentence for px_error().
template <typename Body, typename Value>
Value guarded(Value failed, Body body) {
    try {
        return body();
    } catch (const std::exception& e) {
        error = e.what();
    } catch (...) {
        error = "an unknown failure in the model";
    }
    return failed;
}

}  // namespace

}  // namespace plexus

// An assertion or error in the model must not end the process that holds it.
void vl_fatal(const char* file, int line, const char* scope, const char* message) {
    (void)file;
    throw std::runtime_error(std::string("the model stopped in ") + (scope ? scope : "") + ", line " +
                             std::to_string(line) + ": " + message);
}
void vl_stop(const char* file, int line, const char* scope) { vl_fatal(file, line, scope, "$stop"); }
void vl_finish(const char*, int, const char*) { Verilated::threadContextp()->gotFinish(true); }

using plexus::Driver;
using plexus::guarded;

#define PX extern "C" __attribute__((visibility("default")))

PX const char* px_error() { return plexus::error.c_str(); }

PX Driver* px_create(const uint64_t* hbm, uint64_t retire_limit) {
    return guarded((Driver*)nullptr, [&] { return new Driver({hbm[0], hbm[1], hbm[2], hbm[3], hbm[4]}, retire_limit); });
}

// Waves from this cycle on, which is number 0 for `from` and `until`.
PX int px_waves(Driver* d, const char* path, const char* scope, uint64_t from, uint64_t until) {
    return guarded(-1, [&] {
        d->model.open_waves(path, scope, from, until);
        return 0;
    });
}

PX void px_destroy(Driver* d) { delete d; }

PX int px_reset(Driver* d, uint64_t cycles) {
    return guarded(-1, [&] {
        d->reset(cycles);
        return 0;
    });
}

PX int px_limit(Driver* d, const char* name, uint64_t value) {
    return guarded(-1, [&] {
        d->limit(name, value);
        return 0;
    });
}

PX int px_load(Driver* d, uint64_t offset, const void* data, uint64_t bytes) {
    if (offset > d->hbm.capacity() || bytes > d->hbm.capacity() - offset) return -1;
    std::memcpy(d->hbm.memory() + offset, data, bytes);
    return 0;
}

PX int px_read(Driver* d, uint64_t offset, void* data, uint64_t bytes) {
    if (offset > d->hbm.capacity() || bytes > d->hbm.capacity() - offset) return -1;
    std::memcpy(data, d->hbm.memory() + offset, bytes);
    return 0;
}

PX int px_host_write(Driver* d, uint32_t address, uint64_t value) {
    return guarded(-1, [&] {
        d->host_write(address, value);
        return 0;
    });
}

PX int px_host_read(Driver* d, uint32_t address, uint64_t* value) {
    return guarded(-1, [&] {
        *value = d->host_read(address);
        return 0;
    });
}

PX int px_run(Driver* d, uint64_t max_cycles, uint64_t quiet_cycles, uint64_t fault_quiet_cycles,
              uint64_t milliseconds) {
    return guarded(int(plexus::FATAL), [&] {
        plexus::error = "the model called $finish";
        const int reason = d->run(max_cycles, quiet_cycles, fault_quiet_cycles, milliseconds);
        if (reason == plexus::PROTOCOL) plexus::error = d->hbm.violation();
        return reason;
    });
}

PX uint64_t px_cycle(Driver* d) { return d->now; }
PX double px_seconds(Driver* d) { return d->seconds; }
PX uint64_t px_retired(Driver* d) { return d->retired_total; }

PX uint64_t px_retire_log(Driver* d, plexus::Retired* out, uint64_t from, uint64_t limit) {
    uint64_t n = 0;
    for (; n < limit && from + n < d->retired.size(); n++) out[n] = d->retired[from + n];
    return n;
}

// What a core has printed, into `out` if it has room for `limit` bytes. Returns how many there are.
PX uint64_t px_printed(Driver* d, unsigned core, void* out, uint64_t limit) {
    if (core >= plexus::GPSIMD_CORES) return 0;
    const std::string& text = d->printed[core];
    if (out && limit >= text.size()) std::memcpy(out, text.data(), text.size());
    return text.size();
}

// A trace from now on, of at most `limit` records.
PX int px_trace(Driver* d, uint64_t limit) {
    return guarded(-1, [&] {
        d->trace.reset(new plexus::Trace(d->model.top(), limit));
        return 0;
    });
}

// The trace is over. Numbers: first cycle, cycles, cycle from which it is in buckets (or cycles), events that were lost,
// records, buckets of beats, coarse buckets; records of GPSIMD cores, cycle from which there are none (or cycles), GPSIMD
// cycles before it.
PX int px_trace_end(Driver* d, uint64_t* numbers) {
    if (!d->trace) return -1;
    plexus::Trace& t = *d->trace;
    t.finish(d->hbm.counters());
    const uint64_t all[] = {t.first, t.cycles, std::min(t.coarse_from, t.cycles), t.lost,
                            t.records.size(), t.beats.size() / 2, t.coarse.size(),
                            t.cores.records.size(), std::min(t.cores.summed_from, t.cycles), t.cores.recorded};
    std::copy(std::begin(all), std::end(all), numbers);
    return 0;
}

PX void px_trace_data(Driver* d, plexus::TraceRecord* records, uint32_t* beats, uint32_t* coarse,
                      plexus::CoreRecord* cores, uint64_t* core_sums) {
    const plexus::Trace& t = *d->trace;
    std::copy(t.records.begin(), t.records.end(), records);
    std::copy(t.beats.begin(), t.beats.end(), beats);
    for (const auto& sums : t.coarse) coarse = std::copy(sums.begin(), sums.end(), coarse);
    std::copy(t.cores.records.begin(), t.cores.records.end(), cores);
    std::copy(t.cores.sums.begin(), t.cores.sums.end(), core_sums);
}

PX void px_hbm_counters(Driver* d, plexus::HbmCounters* out) { *out = d->hbm.counters(); }

// Memory cells of the design (rtl/cells/plexus_ram.sv), for a look from outside.

namespace {

bool is_ram(const VerilatedScope* scope) {
    return plexus_ram_peek && scope->defname() && std::string(scope->defname()).rfind("plexus_ram", 0) == 0;
}

bool enter(Driver* d, const char* name) {
    const VerilatedScope* scope = d->model.context().scopeFind(name);
    if (!scope || !is_ram(scope)) return false;
    svSetScope(const_cast<VerilatedScope*>(scope));
    return true;
}

}  // namespace

// Their names, one a line, into `out`. Returns the length of the text without its end.
PX uint64_t px_rams(Driver* d, char* out, uint64_t limit) {
    std::string text;
    for (const auto& entry : *d->model.context().scopeNameMap()) {
        if (is_ram(entry.second)) text += std::string(entry.first) + "\n";
    }
    if (out && limit > text.size()) std::memcpy(out, text.c_str(), text.size() + 1);
    return text.size();
}

PX int px_ram_shape(Driver* d, const char* name, uint64_t* width_bits, uint64_t* depth) {
    if (enter(d, name)) {
        *width_bits = uint64_t(plexus_ram_width());
        *depth = uint64_t(plexus_ram_depth());
        return 0;
    }
    return -1;
}

// Rows `first` and up, each in whole 32-bit words.
PX int px_ram_read(Driver* d, const char* name, uint64_t first, uint64_t rows, uint32_t* out) {
    if (enter(d, name)) {
        const int words = (plexus_ram_width() + 31) / 32;
        for (uint64_t row = 0; row < rows; row++) {
            for (int word = 0; word < words; word++) *out++ = uint32_t(plexus_ram_peek(int(first + row), word));
        }
        return 0;
    }
    return -1;
}
