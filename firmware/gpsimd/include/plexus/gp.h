/* What a program on a GPSIMD core asks of its engine, for C and C++17: who am I, which operands, print, wait, DMA, traps.
 *
 * Everything is a load or a store of the mailbox (docs/firmware.md has its table); nothing allocates. Views of operands,
 * for C++, are in plexus/view.h.
 */
#ifndef PLEXUS_GP_H
#define PLEXUS_GP_H

#include <plexus/contract.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define GP_EXTERN_C extern "C"
extern "C" {
#else
#define GP_EXTERN_C
#endif

/* A register of the mailbox by its name, as in GP_REGISTER(CORE). */
#define GP_REGISTER(name) (*(volatile uint32_t *)(PLEXUS_REGION_MAILBOX + PLEXUS_MAILBOX_##name))

/* A function that GP_RUN may start, by its name, beside main:
 *     GP_ENTRY(add_one) { ...; return 0; }
 * Its return value is the exit value of the run: 0, or the run has failed.
 */
#define GP_ENTRY(name)                                                                        \
    GP_EXTERN_C int gp_body_##name(void);                                                     \
    __asm__(".pushsection .text.gp_entry." #name ",\"ax\",@progbits\n"                        \
            ".balign 4\n.globl " #name "\n.type " #name ",@function\n"                        \
            #name ": lla t0, gp_body_" #name "\n\ttail _gp_start\n"                           \
            ".size " #name ", . - " #name "\n.popsection\n");                                 \
    GP_EXTERN_C int gp_body_##name(void)

/* A variable that a run leaves to the next: neither loaded with the image nor cleared at the start of a run. */
#define GP_KEEP __attribute__((section(".noinit")))

/* ---- who and where ---- */

static inline uint32_t gp_core(void) { return GP_REGISTER(CORE); }
static inline uint32_t gp_cores(void) { return GP_REGISTER(CORES); }
/* Partitions that this core serves. */
static inline uint32_t gp_lanes(void) { return GP_REGISTER(LANES); }

/* ---- the instruction that started this run, a 128-byte word ---- */

static inline uint32_t gp_argument_word(uint32_t index) { return (&GP_REGISTER(ARGUMENT))[index]; }

/* `width` bits, at most 32, from bit `lsb` on. */
static inline uint32_t gp_argument_bits(uint32_t lsb, uint32_t width) {
    uint64_t two = gp_argument_word(lsb / 32);
    if (lsb % 32 + width > 32) two |= (uint64_t)gp_argument_word(lsb / 32 + 1) << 32;
    return (uint32_t)(two >> lsb % 32) & (uint32_t)(((uint64_t)1 << width) - 1);
}

/* A field of at most 32 bits by its name, as in GP_ARGUMENT(SRC0_OFFSET). */
#define GP_ARGUMENT(field) gp_argument_bits(PLEXUS_INSTRUCTION_##field##_LSB, PLEXUS_INSTRUCTION_##field##_BITS)

/* The operator's own immediates, imm1 and imm2; imm0 names the run. */
static inline uint64_t gp_imm1(void) {
    return gp_argument_bits(PLEXUS_INSTRUCTION_IMM1_LSB, 32) |
           (uint64_t)gp_argument_bits(PLEXUS_INSTRUCTION_IMM1_LSB + 32, 32) << 32;
}
static inline uint64_t gp_imm2(void) {
    return gp_argument_bits(PLEXUS_INSTRUCTION_IMM2_LSB, 32) |
           (uint64_t)gp_argument_bits(PLEXUS_INSTRUCTION_IMM2_LSB + 32, 32) << 32;
}

/* A bit for each core of this run, how many they are, and which of them this core is, counted from 0. */
static inline uint32_t gp_run_mask(void) {
    return gp_argument_bits(PLEXUS_INSTRUCTION_IMM0_LSB + PLEXUS_GP_RUN_CORES_LSB, PLEXUS_GP_RUN_CORES_BITS);
}
static inline uint32_t gp_bits_set(uint32_t mask) {
    uint32_t count = 0;
    for (; mask; mask &= mask - 1) count++;
    return count;
}
static inline uint32_t gp_run_cores(void) { return gp_bits_set(gp_run_mask()); }
static inline uint32_t gp_run_rank(void) { return gp_bits_set(gp_run_mask() & ((1u << gp_core()) - 1)); }

/* An operand's access pattern, as rtl/contract/access_pattern.py describes it. Steps are in elements, innermost first. */
typedef struct {
    uint32_t offset, partition_start, partition_count, space, dtype;
    int32_t step[4];
    uint32_t count[4];
} gp_pattern;

enum { GP_SRC0 = PLEXUS_INSTRUCTION_SRC0_OFFSET_LSB, GP_SRC1 = PLEXUS_INSTRUCTION_SRC1_OFFSET_LSB,
       GP_DST = PLEXUS_INSTRUCTION_DST_OFFSET_LSB };

gp_pattern gp_pattern_of(uint32_t operand);

/* Byte `byte` of partition `partition` of those this core serves, counted from 0. */
static inline void *gp_row(uint32_t partition, uint32_t byte) {
    return (void *)(PLEXUS_REGION_SBUF_ROWS + partition * PLEXUS_PARTITION_STRIDE_BYTES + byte);
}
/* The 32 bits at byte `byte`, a multiple of 4, of all partitions of this core, one after the other. */
static inline void *gp_lane_row(uint32_t byte) {
    return (void *)(PLEXUS_REGION_SBUF_LANES + byte * gp_lanes());
}
/* 8 KiB that all cores of the engine share. */
static inline void *gp_shared(uint32_t byte) { return (void *)(PLEXUS_REGION_SHARED + byte); }

/* ---- print, end ---- */

static inline void gp_put(char c) { GP_REGISTER(PUT) = (uint8_t)c; }

/* Prints %d %i %u %x %X %p %s %c %%, with -, 0, a width, and ll for 64 bits. Gives the number of characters. */
int gp_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int gp_vprintf(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* Ends the run of this core with an exit value; 0 is success. */
void gp_exit(int value) __attribute__((noreturn));

/* ---- time and counters ---- */

static inline uint64_t gp_time(void) {
    uint32_t low = GP_REGISTER(MTIME);
    return low | (uint64_t)GP_REGISTER(MTIMEH) << 32;
}
/* A counter by its number, as in gp_counter(PLEXUS_COUNTER_BUSY). */
static inline uint64_t gp_counter(uint32_t number) {
    volatile uint32_t *at = &GP_REGISTER(COUNTERS) + 2 * number;
    uint32_t low = at[0];
    return low | (uint64_t)at[1] << 32;
}
static inline void gp_set_timer(uint64_t at) {
    GP_REGISTER(MTIMECMPH) = 0xffffffffu; /* so that no half of a time rings */
    GP_REGISTER(MTIMECMP) = (uint32_t)at;
    GP_REGISTER(MTIMECMPH) = (uint32_t)(at >> 32);
}

/* ---- waiting: the clock of the core stops ---- */

static inline void gp_wait(uint32_t condition, uint32_t value) {
    __asm__ volatile("fence" ::: "memory");
    GP_REGISTER(WAIT_VALUE) = value;
    GP_REGISTER(WAIT_COMPARE) = condition;
    while (!GP_REGISTER(WAIT_STATUS)) __asm__ volatile("wfi");
    GP_REGISTER(WAIT_COMPARE) = PLEXUS_WAIT_NONE;
    __asm__ volatile("fence" ::: "memory");
}
static inline void gp_wait_semaphore_ge(uint32_t semaphore, int32_t value) {
    GP_REGISTER(WAIT_SEMAPHORE) = semaphore;
    gp_wait(PLEXUS_WAIT_SEMAPHORE_GE, (uint32_t)value);
}
static inline void gp_wait_semaphore_eq(uint32_t semaphore, int32_t value) {
    GP_REGISTER(WAIT_SEMAPHORE) = semaphore;
    gp_wait(PLEXUS_WAIT_SEMAPHORE_EQ, (uint32_t)value);
}
static inline void gp_wait_time(uint64_t at) {
    gp_set_timer(at);
    gp_wait(PLEXUS_WAIT_TIMER, 0);
}
/* All cores of the run meet here. */
static inline void gp_barrier(void) {
    uint32_t passed = GP_REGISTER(BARRIER);
    __asm__ volatile("fence" ::: "memory");
    GP_REGISTER(BARRIER) = 1;
    gp_wait(PLEXUS_WAIT_BARRIER, passed + 1);
}

/* ---- semaphores ---- */

static inline int32_t gp_semaphore(uint32_t index) { return (int32_t)(&GP_REGISTER(SEMAPHORE_BASE))[index]; }
static inline void gp_semaphore_set(uint32_t index, int32_t value) {
    __asm__ volatile("fence" ::: "memory");
    (&GP_REGISTER(SEMAPHORE_BASE))[index] = (uint32_t)value;
}
static inline void gp_semaphore_add(uint32_t index, int32_t value) {
    __asm__ volatile("fence" ::: "memory");
    (&GP_REGISTER(SEMAPHORE_ADD))[index] = (uint32_t)value;
}

/* ---- DMA ---- */

/* A descriptor as it lies in local memory. Fields by GP_DESCRIPTOR, as in GP_DESCRIPTOR(&d, ROW_BYTES, 64). */
typedef struct {
    uint32_t word[32];
} __attribute__((aligned(128))) gp_descriptor;

static inline void gp_descriptor_set(gp_descriptor *d, uint32_t lsb, uint32_t width, uint64_t value) {
    for (uint32_t done = 0; done < width;) { /* a word at a time */
        uint32_t at = lsb + done, room = 32 - at % 32, bits = width - done < room ? width - done : room;
        uint32_t mask = bits == 32 ? 0xffffffffu : ((1u << bits) - 1) << at % 32;
        d->word[at / 32] = (d->word[at / 32] & ~mask) | ((uint32_t)(value >> done) << at % 32 & mask);
        done += bits;
    }
}
#define GP_DESCRIPTOR(d, field, value) \
    gp_descriptor_set(d, PLEXUS_DESCRIPTOR_##field##_LSB, PLEXUS_DESCRIPTOR_##field##_BITS, (uint64_t)(value))

/* An address of DMA: PLEXUS_SPACE_HBM, or PLEXUS_SPACE_SBUF with partition * 2^18 + byte, in core `core_id`. */
static inline uint64_t gp_address(uint32_t space, uint64_t offset, uint32_t core_id) {
    return offset | (uint64_t)space << PLEXUS_SPACE_LSB | (uint64_t)core_id << PLEXUS_CORE_ID_LSB;
}

/* A copy of `rows` rows of `row_bytes`; steps from row to row in bytes. */
void gp_descriptor_copy(gp_descriptor *d, uint64_t destination, uint64_t source, uint32_t row_bytes, uint32_t rows,
                        int64_t destination_step, int64_t source_step);

/* Starts a descriptor, behind all that this core has stored. It has been read when this returns, and may change then. */
static inline void gp_dma_push(const gp_descriptor *d) {
    __asm__ volatile("fence" ::: "memory");
    GP_REGISTER(DMA_PUSH) = (uint32_t)(uintptr_t)d;
    __asm__ volatile("fence" ::: "memory");
}
/* Waits until `count` descriptors of this core have completed since the start of the run; they complete in order. */
static inline void gp_dma_wait(uint32_t count) { gp_wait(PLEXUS_WAIT_DMA, count); }

/* ---- traps ---- */

/* A handler of traps:  GP_TRAP_HANDLER on_trap(void) { ... }  then gp_set_trap_handler(on_trap). */
#define GP_TRAP_HANDLER __attribute__((interrupt("machine"), aligned(4))) void

static inline void gp_set_trap_handler(void (*handler)(void)) {
    __asm__ volatile("csrw mtvec, %0" ::"r"(handler) : "memory");
}
#define GP_CSR_READ(name)                                      \
    (__extension__({                                           \
        uint32_t gp_value_;                                    \
        __asm__ volatile("csrr %0, " #name : "=r"(gp_value_)); \
        gp_value_;                                             \
    }))
#define GP_CSR_WRITE(name, value) __asm__ volatile("csrw " #name ", %0" ::"r"((uint32_t)(value)) : "memory")

#ifdef __cplusplus
} /* extern "C" */

namespace gp {
inline uint32_t core() { return gp_core(); }
inline uint32_t cores() { return gp_cores(); }
inline uint32_t lanes() { return gp_lanes(); }
inline uint32_t run_cores() { return gp_run_cores(); }
inline uint32_t run_rank() { return gp_run_rank(); }
int printf(const char *format, ...) __asm__("gp_printf") __attribute__((format(printf, 1, 2)));
[[noreturn]] inline void exit(int value) { gp_exit(value); }
inline void barrier() { gp_barrier(); }
inline uint64_t time() { return gp_time(); }
inline uint64_t counter(uint32_t number) { return gp_counter(number); }
inline void wait_ge(uint32_t semaphore, int32_t value) { gp_wait_semaphore_ge(semaphore, value); }
inline void wait_eq(uint32_t semaphore, int32_t value) { gp_wait_semaphore_eq(semaphore, value); }
inline void wait_time(uint64_t at) { gp_wait_time(at); }
inline void dma_push(const gp_descriptor &d) { gp_dma_push(&d); }
inline void dma_wait(uint32_t count) { gp_dma_wait(count); }
} // namespace gp
#endif

#endif
