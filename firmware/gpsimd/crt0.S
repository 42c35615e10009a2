/* Start of a run on a GPSIMD core, its end, and what happens to a trap that nobody handles.
 *
 * A core starts at _start, or at an entry that GP_ENTRY of plexus/gp.h has made: that puts its function into t0 and comes
 * to _gp_start. No register has a value before. Neither the stack nor memory is used by the handler of traps: either
 * may be what went wrong.
 */
#include <plexus/contract.h>

#define MSTATUS_MIE 0x8
#define MIE_EXTERNAL 0x800
#define MSTATUS_VS_INITIAL 0x200

    .section .text.gp_start, "ax", @progbits
    .balign 4
    .globl _start
    .type _start, @function
_start:
    lla t0, gp_main

    .globl _gp_start
_gp_start:
    csrci mstatus, MSTATUS_MIE
    li t1, MIE_EXTERNAL /* not taken, but it ends the wfi of gp_wait */
    csrw mie, t1
    lla t1, gp_default_trap
    csrw mtvec, t1
#ifdef __riscv_vector
    li t1, MSTATUS_VS_INITIAL
    csrs mstatus, t1
#endif
    lla sp, __stack_top
    mv s0, t0

    lla t0, __bss_start
    lla t1, __bss_end
    j 2f
1:  sw zero, 0(t0)
    addi t0, t0, 4
2:  bltu t0, t1, 1b

    lla s1, __init_array_start /* constructors of C++ objects */
    lla s2, __init_array_end
    j 4f
3:  lw t0, 0(s1)
    addi s1, s1, 4
    jalr t0
4:  bltu s1, s2, 3b

    li a0, 0
    li a1, 0
    jalr s0

    .globl _gp_exit /* a0: exit value */
_gp_exit:
    fence
    li t0, PLEXUS_REGION_MAILBOX
    sw a0, PLEXUS_MAILBOX_DONE(t0)
5:  wfi
    j 5b
    .size _start, . - _start

    .balign 4
    .globl gp_default_trap
    .type gp_default_trap, @function
gp_default_trap:
    li t0, PLEXUS_REGION_MAILBOX
    csrr t1, mepc
    sw t1, PLEXUS_MAILBOX_TRAP_PC(t0)
    csrr t1, mtval
    sw t1, PLEXUS_MAILBOX_TRAP_VALUE(t0)
    csrr t1, mcause
    sw t1, PLEXUS_MAILBOX_TRAP(t0)
6:  wfi
    j 6b
    .size gp_default_trap, . - gp_default_trap
