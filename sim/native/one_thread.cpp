// For the models of benches, which fork (sim/run/bench_inside.py): a fork has no thread but the one that forked, and
// Verilator's pool of threads, which it makes for every model and these never use, waits for its own at the end.
#include "verilated.h"

static const bool one_thread = (Verilated::threadContextp()->threads(1), true);
