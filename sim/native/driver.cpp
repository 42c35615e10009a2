// The C functions of a core (driver.h), which sim/native/library.py calls.

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "driver.h"
#include "guarded.h"
#include "svdpi.h"
#include "verilated_syms.h"

// Exported by rtl/cells/plexus_ram.sv, if the design has one; svSetScope comes with any DPI function.
extern "C" {
svScope svSetScope(const svScope) __attribute__((weak));
int plexus_ram_width() __attribute__((weak));
int plexus_ram_depth() __attribute__((weak));
int plexus_ram_peek(int row, int word) __attribute__((weak));
}

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
