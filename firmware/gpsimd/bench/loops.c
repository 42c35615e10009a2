/* Scalar loops as operators have them, each with its instructions and cycles: "name instructions cycles checksum". */
#include <plexus/gp.h>
#include <stdint.h>

enum { COUNT = 256 };
static int32_t a[COUNT], b[COUNT];
static uint8_t bytes[COUNT];
static uint32_t bins[64];

static inline uint32_t cycles(void) {
    uint32_t value;
    __asm__ volatile("csrr %0, mcycle" : "=r"(value));
    return value;
}

static inline uint32_t instructions(void) {
    uint32_t value;
    __asm__ volatile("csrr %0, minstret" : "=r"(value));
    return value;
}

__attribute__((noinline)) static uint32_t sum(void) {
    uint32_t total = 0;
    for (int i = 0; i < COUNT; i++) total += a[i];
    return total;
}

__attribute__((noinline)) static uint32_t add(void) {
    for (int i = 0; i < COUNT; i++) b[i] = a[i] + b[i];
    return b[COUNT - 1];
}

__attribute__((noinline)) static uint32_t dot(void) {
    uint32_t total = 0;
    for (int i = 0; i < COUNT; i++) total += a[i] * b[i];
    return total;
}

__attribute__((noinline)) static uint32_t prefix(void) {
    uint32_t total = 0;
    for (int i = 0; i < COUNT; i++) b[i] = total += a[i];
    return total;
}

__attribute__((noinline)) static uint32_t histogram(void) {
    for (int i = 0; i < COUNT; i++) bins[bytes[i] & 63]++;
    return bins[5];
}

__attribute__((noinline)) static uint32_t largest(void) {
    int best = 0;
    for (int i = 1; i < COUNT; i++)
        if (a[i] > a[best]) best = i;
    return best;
}

__attribute__((noinline)) static uint32_t nonzero(void) {
    uint32_t count = 0;
    for (int i = 0; i < COUNT; i++)
        if (bytes[i] & 3) b[count++] = i;
    return count;
}

__attribute__((noinline)) static uint32_t gather(void) {
    uint32_t total = 0;
    for (int i = 0; i < COUNT; i++) total ^= a[bytes[i]];
    return total;
}

static const struct { const char *name; uint32_t (*run)(void); } LOOPS[] = {
    {"sum", sum}, {"add", add}, {"dot", dot}, {"prefix", prefix},
    {"histogram", histogram}, {"largest", largest}, {"nonzero", nonzero}, {"gather", gather},
};

int main(void) {
    uint32_t x = 1;
    for (int i = 0; i < COUNT; i++) {
        x = x * 1664525 + 1013904223;
        a[i] = (int32_t)x >> 8;
        b[i] = x >> 20;
        bytes[i] = x >> 24;
    }
    for (unsigned n = 0; n < sizeof LOOPS / sizeof LOOPS[0]; n++) {
        uint32_t before = instructions(), from = cycles();
        uint32_t result = LOOPS[n].run();
        uint32_t to = cycles(), after = instructions();
        gp_printf("%s %u %u %u\n", LOOPS[n].name, after - before, to - from, result);
    }
    return 42;
}
