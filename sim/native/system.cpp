// The C functions of joined cores (system.h), which sim/native/system.py calls; what belongs to one core is a Driver,
// for those of driver.cpp. px_error() has the sentence here too.

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "guarded.h"
#include "system.h"

using plexus::Driver;
using plexus::System;
using plexus::guarded;

#define PX extern "C" __attribute__((visibility("default")))

PX System* px_system_create(const uint64_t* hbm, const uint32_t* ids, const uint32_t* endpoints, uint64_t cores,
                            uint64_t delay, uint64_t retire_limit) {
    return guarded((System*)nullptr, [&] {
        const std::vector<uint32_t> all(ids, ids + cores), numbers(endpoints, endpoints + cores);
        return new System({hbm[0], hbm[1], hbm[2], hbm[3], hbm[4]}, all, numbers, delay, retire_limit);
    });
}

PX void px_system_destroy(System* s) { delete s; }

PX Driver* px_system_core(System* s, unsigned index) { return &s->core(index); }

PX int px_system_reset(System* s, uint64_t cycles) {
    return guarded(-1, [&] {
        s->reset(cycles);
        return 0;
    });
}

PX int px_system_host_write(System* s, int core, uint32_t address, uint64_t value) {
    return guarded(-1, [&] {
        s->host_write(core, address, value);
        return 0;
    });
}

PX int px_system_host_read(System* s, unsigned core, uint32_t address, uint64_t* value) {
    return guarded(-1, [&] {
        *value = s->host_read(core, address);
        return 0;
    });
}

PX int px_system_run(System* s, uint64_t max_cycles, uint64_t quiet_cycles, uint64_t fault_quiet_cycles,
                     uint64_t milliseconds, unsigned threads) {
    return guarded(int(plexus::FATAL), [&] {
        const int reason = s->run(max_cycles, quiet_cycles, fault_quiet_cycles, milliseconds, threads);
        if (reason == plexus::PROTOCOL || reason == plexus::FATAL) plexus::error = s->message;
        return reason;
    });
}

PX double px_system_seconds(System* s) { return s->seconds; }
PX double px_system_cpu_seconds(System* s) { return s->cpu_seconds; }

// Beats of both kinds that a core has put on its wires.
PX uint64_t px_system_beats(System* s, unsigned core) { return s->link(core).beats; }

// A fault, for tests of tests: "late" (a wire between two threads takes a cycle more) or "lost" (a beat in 50).
PX int px_system_plant(System* s, const char* name) {
    return guarded(-1, [&] {
        const std::string fault = name;
        if (fault == "late") {
            s->plant_late = true;
        } else if (fault == "lost") {
            for (unsigned i = 0; i < s->cores(); i++) s->link(i).lose = 50;
        } else {
            throw std::runtime_error("there is no fault " + fault + " to plant");
        }
        return 0;
    });
}
