/* Executes vector instructions that it is given, one by one, and tells what each left: a program of RV32 for QEMU.
 *
 * executor IN OUT MEMORY: IN begins with how many records there are, bytes of a vector register and what is in memory;
 * then come the instruction words, then the records. OUT gets a result for each, MEMORY what is in memory after each
 * that asks for it. All are words of 32 bits.
 */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { MEMORY = 0x20000000, MEMORY_BYTES = 4096, REGISTERS = 32, VLENB_MAX = 64, SLOT_WORDS = 8, BUFFER = 1 << 20 };

struct given {
    uint32_t word, vtype, vl, vxrm, vxsat, vstart, memory, x[REGISTERS];
    uint8_t v[REGISTERS * VLENB_MAX];
};

struct left {
    uint32_t signal, vl, vtype, vxsat, vxrm, vstart, x[REGISTERS];
    uint8_t v[REGISTERS * VLENB_MAX];
};

/* x4 points here while an instruction is executed; offsets are used below. */
static struct {
    uint32_t x[REGISTERS];     /* 0 */
    uint32_t saved[REGISTERS]; /* 128 */
    uint32_t target, vtype, vl, vxrm, vxsat, vstart; /* 256 ... 276 */
    void *v, *back;                                  /* 280, 284 */
} context;

static volatile uint32_t caught;

void execute(void *context);
extern char executed[];

__asm__(
    ".text\n.option push\n.option norvc\n.option arch, +zve32x\n.globl execute\n.globl executed\n"
    "execute:\n"
    "sw x1, 132(a0)\nsw x2, 136(a0)\nsw x3, 140(a0)\nsw x4, 144(a0)\nsw x8, 160(a0)\nsw x9, 164(a0)\n"
    "sw x18, 200(a0)\nsw x19, 204(a0)\nsw x20, 208(a0)\nsw x21, 212(a0)\nsw x22, 216(a0)\nsw x23, 220(a0)\n"
    "sw x24, 224(a0)\nsw x25, 228(a0)\nsw x26, 232(a0)\nsw x27, 236(a0)\n"
    "mv x4, a0\n"
    "lw t0, 280(x4)\n"
    "csrr t1, vlenb\nslli t1, t1, 3\n"
    "vl8re8.v v0, (t0)\nadd t0, t0, t1\nvl8re8.v v8, (t0)\nadd t0, t0, t1\n"
    "vl8re8.v v16, (t0)\nadd t0, t0, t1\nvl8re8.v v24, (t0)\n"
    "lw t0, 268(x4)\ncsrw vxrm, t0\nlw t0, 272(x4)\ncsrw vxsat, t0\n"
    "lw t0, 264(x4)\nlw t1, 260(x4)\nvsetvl x0, t0, t1\nlw t0, 276(x4)\ncsrw vstart, t0\n"
    "lw x31, 256(x4)\n"
    "lw x1, 4(x4)\nlw x2, 8(x4)\nlw x3, 12(x4)\nlw x5, 20(x4)\nlw x6, 24(x4)\nlw x7, 28(x4)\nlw x8, 32(x4)\n"
    "lw x9, 36(x4)\nlw x10, 40(x4)\nlw x11, 44(x4)\nlw x12, 48(x4)\nlw x13, 52(x4)\nlw x14, 56(x4)\nlw x15, 60(x4)\n"
    "lw x16, 64(x4)\nlw x17, 68(x4)\nlw x18, 72(x4)\nlw x19, 76(x4)\nlw x20, 80(x4)\nlw x21, 84(x4)\nlw x22, 88(x4)\n"
    "lw x23, 92(x4)\nlw x24, 96(x4)\nlw x25, 100(x4)\nlw x26, 104(x4)\nlw x27, 108(x4)\nlw x28, 112(x4)\n"
    "lw x29, 116(x4)\nlw x30, 120(x4)\n"
    "jr x31\n" /* to the slot, which loads x31, and stores it behind the instruction */
    "executed:\n"
    "sw x1, 4(x4)\nsw x2, 8(x4)\nsw x3, 12(x4)\nsw x5, 20(x4)\nsw x6, 24(x4)\nsw x7, 28(x4)\nsw x8, 32(x4)\n"
    "sw x9, 36(x4)\nsw x10, 40(x4)\nsw x11, 44(x4)\nsw x12, 48(x4)\nsw x13, 52(x4)\nsw x14, 56(x4)\nsw x15, 60(x4)\n"
    "sw x16, 64(x4)\nsw x17, 68(x4)\nsw x18, 72(x4)\nsw x19, 76(x4)\nsw x20, 80(x4)\nsw x21, 84(x4)\nsw x22, 88(x4)\n"
    "sw x23, 92(x4)\nsw x24, 96(x4)\nsw x25, 100(x4)\nsw x26, 104(x4)\nsw x27, 108(x4)\nsw x28, 112(x4)\n"
    "sw x29, 116(x4)\nsw x30, 120(x4)\n"
    "csrr t0, vl\nsw t0, 264(x4)\ncsrr t0, vtype\nsw t0, 260(x4)\ncsrr t0, vxsat\nsw t0, 272(x4)\n"
    "csrr t0, vxrm\nsw t0, 268(x4)\ncsrr t0, vstart\nsw t0, 276(x4)\ncsrw vstart, x0\n"
    "lw t0, 280(x4)\n"
    "csrr t1, vlenb\nslli t1, t1, 3\n"
    "vs8r.v v0, (t0)\nadd t0, t0, t1\nvs8r.v v8, (t0)\nadd t0, t0, t1\n"
    "vs8r.v v16, (t0)\nadd t0, t0, t1\nvs8r.v v24, (t0)\n"
    "mv a0, x4\n"
    "lw x1, 132(a0)\nlw x2, 136(a0)\nlw x3, 140(a0)\nlw x4, 144(a0)\nlw x8, 160(a0)\nlw x9, 164(a0)\n"
    "lw x18, 200(a0)\nlw x19, 204(a0)\nlw x20, 208(a0)\nlw x21, 212(a0)\nlw x22, 216(a0)\nlw x23, 220(a0)\n"
    "lw x24, 224(a0)\nlw x25, 228(a0)\nlw x26, 232(a0)\nlw x27, 236(a0)\n"
    "ret\n.option pop\n");

static void on_signal(int number, siginfo_t *info, void *at) {
    ucontext_t *state = at;
    (void)info;
    caught = (uint32_t)number;
    /* behind the instruction */
    state->uc_mcontext.__gregs[0] = (state->uc_mcontext.__gregs[0] & ~31ul) + 8;
}

static void whole(int file, void *to, size_t bytes, int writes) {
    uint8_t *at = to;
    while (bytes) {
        ssize_t moved = writes ? write(file, at, bytes) : read(file, at, bytes);
        if (moved <= 0) {
            exit(2);
        }
        at += moved;
        bytes -= (size_t)moved;
    }
}

static uint8_t in_bytes[BUFFER], out_bytes[BUFFER];
static size_t in_at, in_end, out_end;

static void take(int file, void *to, size_t bytes) {
    uint8_t *at = to;
    while (bytes) {
        if (in_at == in_end) {
            ssize_t got = read(file, in_bytes, BUFFER);
            if (got <= 0) {
                exit(2);
            }
            in_at = 0;
            in_end = (size_t)got;
        }
        size_t part = in_end - in_at < bytes ? in_end - in_at : bytes;
        memcpy(at, in_bytes + in_at, part);
        at += part;
        in_at += part;
        bytes -= part;
    }
}

static void give(int file, const void *from, size_t bytes) {
    if (out_end + bytes > BUFFER) {
        whole(file, out_bytes, out_end, 1);
        out_end = 0;
    }
    memcpy(out_bytes + out_end, from, bytes);
    out_end += bytes;
}

int main(int count, char **names) {
    static uint8_t stack[1 << 16], before[MEMORY_BYTES];
    static struct given given;
    static struct left left;
    if (count != 4) {
        return 1;
    }
    int in = open(names[1], O_RDONLY), out = open(names[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    int memory_file = open(names[3], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    uint32_t head[2], vlenb;
    take(in, head, sizeof head);
    take(in, before, sizeof before);
    __asm__ volatile(".option push\n.option arch, +zve32x\ncsrr %0, vlenb\n.option pop" : "=r"(vlenb));
    if (vlenb != head[1]) {
        return 3;
    }
    uint8_t *memory = mmap((void *)MEMORY, MEMORY_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    uint32_t *slots = mmap(0, head[0] * 4 * SLOT_WORDS, PROT_READ | PROT_WRITE | PROT_EXEC,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != (void *)MEMORY || slots == MAP_FAILED) {
        return 4;
    }
    for (uint32_t i = 0; i < head[0]; i++) {
        uint32_t *slot = slots + SLOT_WORDS * i;
        slot[0] = 0x07c22f83; /* lw x31, 124(x4) */
        take(in, &slot[1], 4);
        slot[2] = 0x07f22e23; /* sw x31, 124(x4) */
        slot[3] = 0x11c22f83; /* lw x31, 284(x4) */
        slot[4] = 0x000f8067; /* jr x31 */
    }
    __builtin___clear_cache((char *)slots, (char *)(slots + SLOT_WORDS * head[0]));
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternative, 0);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigaction(SIGILL, &action, 0);
    sigaction(SIGSEGV, &action, 0);
    sigaction(SIGBUS, &action, 0);
    context.v = given.v;
    context.back = executed;
    size_t bytes = REGISTERS * vlenb;
    for (uint32_t i = 0; i < head[0]; i++) {
        take(in, &given, offsetof(struct given, v) + bytes);
        if (given.memory) {
            memcpy(memory, before, MEMORY_BYTES);
        }
        memcpy(context.x, given.x, sizeof context.x);
        context.target = (uint32_t)(uintptr_t)(slots + SLOT_WORDS * i);
        context.vtype = given.vtype;
        context.vl = given.vl;
        context.vxrm = given.vxrm;
        context.vxsat = given.vxsat;
        context.vstart = given.vstart;
        caught = 0;
        execute(&context);
        left.signal = caught;
        left.vl = context.vl;
        left.vtype = context.vtype;
        left.vxsat = context.vxsat;
        left.vxrm = context.vxrm;
        left.vstart = context.vstart;
        memcpy(left.x, context.x, sizeof left.x);
        memcpy(left.v, given.v, bytes);
        give(out, &left, offsetof(struct left, v) + bytes);
        if (given.memory) {
            whole(memory_file, memory, MEMORY_BYTES, 1);
        }
    }
    whole(out, out_bytes, out_end, 1);
    return 0;
}
