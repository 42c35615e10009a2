// Where a model spends the processor's time: the program counter, noted at a steady rate of processor time.
//
// One sampler a process. A signal's handler does nothing but note the address, so the code that runs is the code that is
// looked at: no counters in it, no calls.
#include <csignal>
#include <cstdint>
#include <dlfcn.h>
#include <sys/time.h>
#include <ucontext.h>

#define PX extern "C" __attribute__((visibility("default")))

namespace {
uint64_t* g_places = nullptr;
uint64_t g_room = 0;
volatile uint64_t g_count = 0;
uint64_t g_base = 0;

void note(int, siginfo_t*, void* context) {
    if (g_count >= g_room) return;
    const ucontext_t* const there = static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
    const uint64_t place = there->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    const uint64_t place = there->uc_mcontext.pc;
#else
#error "the sampler does not know where this processor keeps its program counter"
#endif
    g_places[g_count] = place - g_base;
    g_count = g_count + 1;
}

void every(uint64_t microseconds) {
    itimerval interval{};
    interval.it_interval.tv_usec = microseconds;
    interval.it_value.tv_usec = microseconds;
    setitimer(ITIMER_PROF, &interval, nullptr);
}
}  // namespace

// From now on, every so many microseconds of the process's time, the distance from this library's start goes to
// places[n], n = 0 ... room - 1. Returns 0, or 1 if the library does not find itself.
PX int px_sample(uint64_t* places, uint64_t room, uint64_t microseconds) {
    Dl_info self;
    if (!dladdr(reinterpret_cast<void*>(&note), &self)) return 1;
    g_base = reinterpret_cast<uint64_t>(self.dli_fbase);
    g_places = places;
    g_room = room;
    g_count = 0;
    struct sigaction action {};
    action.sa_sigaction = note;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGPROF, &action, nullptr);
    every(microseconds);
    return 0;
}

// Stop. Returns how many places were noted.
PX uint64_t px_sampled() {
    every(0);
    return g_count;
}
