// Drives GateTop as a native driver does, two evaluations a cycle, beside its equations.
#include <cstdint>

#include "Vtop.h"
#include "verilated.h"

namespace {

struct Registers {
    uint16_t root = 0;
    uint16_t a = 0;
    uint16_t b = 0;
};

void vl_ended() { throw 1; }

}  // namespace

double sc_time_stamp() { return 0; }
void vl_fatal(const char*, int, const char*, const char*) { vl_ended(); }
void vl_stop(const char*, int, const char*) { vl_ended(); }
void vl_finish(const char*, int, const char*) { vl_ended(); }

// Runs `cycles` cycles of random enables; returns the first cycle that differs, or -1.
extern "C" long gate_drive(long cycles, uint64_t seed) {
    VerilatedContext context;
    Vtop top{&context};
    auto cycle = [&] {
        top.clk = 0;
        top.eval();
        top.clk = 1;
        top.eval();
    };
    top.enable = 0;
    top.rst = 1;
    cycle();
    cycle();
    top.rst = 0;
    Registers now;
    for (long n = 0; n < cycles; ++n) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const unsigned enable = (seed >> 40) & 3;
        top.enable = enable;
        cycle();
        Registers next = now;
        next.root = uint16_t(5 * now.root + now.a + 3 * now.b + 1);
        if (enable & 1) next.a = uint16_t(3 * now.a + now.root + now.b);
        if (enable & 2) next.b = uint16_t(7 * now.b + (now.root ^ now.a));
        now = next;
        if (top.root != now.root || top.a != now.a || top.b != now.b) return n;
    }
    return -1;
}
