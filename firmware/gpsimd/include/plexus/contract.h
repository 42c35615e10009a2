/* Numbers that firmware and hardware share, from rtl/contract.
 * Written by `python -m firmware.gpsimd.generated --write`.
 */
#ifndef PLEXUS_CONTRACT_H
#define PLEXUS_CONTRACT_H

#define PLEXUS_CORES_MAX 8u
#define PLEXUS_LANE_BITS 32u
#define PLEXUS_LOCAL_BYTES 65536u
#define PLEXUS_SHARED_BYTES 8192u
#define PLEXUS_STACK_BYTES 4096u
#define PLEXUS_WATCHDOG_CYCLES 4194304u
#define PLEXUS_INSTRUCTION_BYTES 128u
#define PLEXUS_PARTITION_STRIDE_BYTES 262144u
#define PLEXUS_CORE_ID_LSB 44
#define PLEXUS_SPACE_LSB 40

/* First bytes of what a core reaches. Loads, stores and fetches elsewhere trap, so a null pointer does. */
#define PLEXUS_REGION_LOCAL 0x10000000u  /* local memory of this core: stack at the bottom, then text, data and bss */
#define PLEXUS_REGION_LOCAL_TOO 0x80000000u  /* the same bytes: images linked for a memory at 2 GiB, as public test suites are */
#define PLEXUS_REGION_SBUF_ROWS 0x20000000u  /* local partition * 2^18 + byte */
#define PLEXUS_REGION_SBUF_LANES 0x30000000u  /* byte column c of local partition p of L: (c / 4) * 4L + 4p + c mod 4 */
#define PLEXUS_REGION_MAILBOX 0x40000000u  /* registers, see Mailbox */
#define PLEXUS_REGION_SHARED 0x50000000u  /* 8 KiB that all cores of the engine share */

/* Byte offsets in Region.MAILBOX. Registers are 32 bits wide and take whole, aligned words only. */
#define PLEXUS_MAILBOX_ARGUMENT 0x0u  /* r: the 128-byte instruction GP_RUN, 32 words, least significant first */
#define PLEXUS_MAILBOX_CORE 0x80u  /* r: number of this core in the engine */
#define PLEXUS_MAILBOX_CORES 0x84u  /* r: cores of the engine; those of this run are in the instruction, RUN.cores */
#define PLEXUS_MAILBOX_DONE 0x88u  /* w: ends the run of this core, with this exit value, once its stores have committed */
#define PLEXUS_MAILBOX_PUT 0x8cu  /* w: bits 7:0 are printed */
#define PLEXUS_MAILBOX_LANES 0x90u  /* r: partitions that this core serves, L */
#define PLEXUS_MAILBOX_LOCAL_BYTES 0x94u  /* r: size of local memory */
#define PLEXUS_MAILBOX_BARRIER 0x98u  /* w: this core has arrived; r: barriers that all cores of the run have passed */
#define PLEXUS_MAILBOX_MTIME 0xa0u  /* r: CYCLES of the core, in tensor cycles; a load keeps bits 63:32 for MTIMEH */
#define PLEXUS_MAILBOX_MTIMEH 0xa4u  /* r: bits 63:32 as they were at the last load of MTIME */
#define PLEXUS_MAILBOX_MTIMECMP 0xa8u  /* rw: interrupt 7 is pending while MTIME >= MTIMECMP; all ones at the start of a run */
#define PLEXUS_MAILBOX_MTIMECMPH 0xacu  /* rw */
#define PLEXUS_MAILBOX_WAIT_SEMAPHORE 0xb0u  /* rw: bits 7:0: index of the semaphore that WAIT_COMPARE looks at, modulo their number */
#define PLEXUS_MAILBOX_WAIT_VALUE 0xb4u  /* rw: what it is compared with, signed */
#define PLEXUS_MAILBOX_WAIT_COMPARE 0xb8u  /* rw: bits 2:0: WaitFor; interrupt 11 is pending while that holds, and ends a wfi */
#define PLEXUS_MAILBOX_WAIT_STATUS 0xbcu  /* r: 1 while the condition holds */
#define PLEXUS_MAILBOX_DMA_PUSH 0xc0u  /* w: address in local memory of a descriptor, a multiple of 128; waits until it has been read */
#define PLEXUS_MAILBOX_DMA_DONE 0xc4u  /* r: descriptors of this core completed since the start of the run */
#define PLEXUS_MAILBOX_DMA_FREE 0xc8u  /* r: descriptors that this core may push before one of its own must complete, 4 at most */
#define PLEXUS_MAILBOX_TRAP 0xd0u  /* w: ends the run of this core as GP_TRAP, with this mcause */
#define PLEXUS_MAILBOX_TRAP_PC 0xd4u  /* rw: pc of that trap, written first */
#define PLEXUS_MAILBOX_TRAP_VALUE 0xd8u  /* rw: mtval of that trap, written first */
#define PLEXUS_MAILBOX_COUNTERS 0x100u  /* r: + 8 * Counter: bits 31:0; + 4: bits 63:32 of the counter loaded last, as they were then */
#define PLEXUS_MAILBOX_SEMAPHORE_BASE 0x4000u  /* rw: + 4 * index: a load gives the value, a store sets it */
#define PLEXUS_MAILBOX_SEMAPHORE_ADD 0x8000u  /* rw: + 4 * index: a load gives the value, a store adds to it */
#define PLEXUS_MAILBOX_END 0xc000u

/* Conditions of WAIT_COMPARE; those of a semaphore are as in isa.Wait. */
#define PLEXUS_WAIT_NONE 0  /* never holds */
#define PLEXUS_WAIT_SEMAPHORE_GE 1  /* semaphore >= WAIT_VALUE, signed */
#define PLEXUS_WAIT_SEMAPHORE_EQ 2
#define PLEXUS_WAIT_TIMER 3  /* MTIME >= MTIMECMP */
#define PLEXUS_WAIT_DMA 4  /* DMA_DONE >= WAIT_VALUE */
#define PLEXUS_WAIT_BARRIER 5  /* BARRIER >= WAIT_VALUE */

/* Positions in the counters of a core. BUSY to FAULT are GPSIMD cycles and sum to those of the run. */
#define PLEXUS_COUNTER_BUSY 0  /* an instruction retired */
#define PLEXUS_COUNTER_IDLE 1  /* no run */
#define PLEXUS_COUNTER_SLEEP 2  /* wfi, timer or DMA */
#define PLEXUS_COUNTER_SEMAPHORE 3  /* wfi, semaphore or barrier */
#define PLEXUS_COUNTER_FETCH 4
#define PLEXUS_COUNTER_BRANCH 5
#define PLEXUS_COUNTER_LOAD 6
#define PLEXUS_COUNTER_UNIT 7  /* multiply and divide */
#define PLEXUS_COUNTER_MEMORY 8
#define PLEXUS_COUNTER_SBUF 9
#define PLEXUS_COUNTER_VECTOR 10  /* a vector instruction is under way */
#define PLEXUS_COUNTER_DMA 11
#define PLEXUS_COUNTER_CLOCK 12
#define PLEXUS_COUNTER_FAULT 13
#define PLEXUS_COUNTER_INSTRUCTIONS 14  /* retired */
#define PLEXUS_COUNTER_MICRO_OPS 15  /* registers, rows of local memory and elements that vector instructions went through */
#define PLEXUS_COUNTER_BYTES 16  /* loaded from and stored to SBUF */

/* Which memory of a core an address means. */
#define PLEXUS_SPACE_HBM 0
#define PLEXUS_SPACE_SBUF 1
#define PLEXUS_SPACE_PSUM 2
#define PLEXUS_SPACE_SEMAPHORES 3
#define PLEXUS_SPACE_GPSIMD 4
#define PLEXUS_SPACE_CONTROL 5

/* What happens to a semaphore when the last write of an instruction or descriptor has committed. */
#define PLEXUS_UPDATE_NONE 0
#define PLEXUS_UPDATE_ADD 1
#define PLEXUS_UPDATE_SET 2

/* Codes of an operand's dtype. */
#define PLEXUS_DTYPE_FP32 0
#define PLEXUS_DTYPE_BF16 1
#define PLEXUS_DTYPE_FP16 2
#define PLEXUS_DTYPE_TF32 3
#define PLEXUS_DTYPE_E4M3FN 4
#define PLEXUS_DTYPE_E4M3 5
#define PLEXUS_DTYPE_E5M2 6
#define PLEXUS_DTYPE_E2M1 7
#define PLEXUS_DTYPE_E8M0 8
#define PLEXUS_DTYPE_INT8 9
#define PLEXUS_DTYPE_INT16 10
#define PLEXUS_DTYPE_INT32 11
#define PLEXUS_DTYPE_UINT8 12
#define PLEXUS_DTYPE_UINT16 13
#define PLEXUS_DTYPE_UINT32 14

/* Bit fields of instruction, 1024 bits: position of the least significant bit, width. */
#define PLEXUS_INSTRUCTION_OPCODE_LSB 0
#define PLEXUS_INSTRUCTION_OPCODE_BITS 8  /* Opcode */
#define PLEXUS_INSTRUCTION_ACCUMULATE_LSB 8
#define PLEXUS_INSTRUCTION_ACCUMULATE_BITS 1  /* MULTIPLY_MOVING: add to PSUM instead of overwriting */
#define PLEXUS_INSTRUCTION_OP0_LSB 9
#define PLEXUS_INSTRUCTION_OP0_BITS 6  /* AluOp */
#define PLEXUS_INSTRUCTION_OP1_LSB 15
#define PLEXUS_INSTRUCTION_OP1_BITS 6  /* AluOp */
#define PLEXUS_INSTRUCTION_REVERSE0_LSB 21
#define PLEXUS_INSTRUCTION_REVERSE0_BITS 1  /* a op0 x instead of x op0 a */
#define PLEXUS_INSTRUCTION_REVERSE1_LSB 22
#define PLEXUS_INSTRUCTION_REVERSE1_BITS 1
#define PLEXUS_INSTRUCTION_COLUMN0_LSB 23
#define PLEXUS_INSTRUCTION_COLUMN0_BITS 1  /* a is a column: FP32 in SBUF, at byte imm0[23:0] of src0's partitions */
#define PLEXUS_INSTRUCTION_COLUMN1_LSB 24
#define PLEXUS_INSTRUCTION_COLUMN1_BITS 1  /* b is a column, at byte imm1[23:0] */
#define PLEXUS_INSTRUCTION_REDUCE_LSB 25
#define PLEXUS_INSTRUCTION_REDUCE_BITS 2  /* Reduce */
#define PLEXUS_INSTRUCTION_STORE_LSB 27
#define PLEXUS_INSTRUCTION_STORE_BITS 1  /* the accumulator goes to SBUF as FP32, at byte imm2[23:0] of dst's partitions */
#define PLEXUS_INSTRUCTION_AXES_LSB 28
#define PLEXUS_INSTRUCTION_AXES_BITS 2  /* TENSOR_REDUCE: reduced axes less one */
#define PLEXUS_INSTRUCTION_NEGATE_LSB 30
#define PLEXUS_INSTRUCTION_NEGATE_BITS 1  /* TENSOR_REDUCE: the result's sign is turned */
#define PLEXUS_INSTRUCTION_FLAGS_LSB 31
#define PLEXUS_INSTRUCTION_FLAGS_BITS 1  /* reserved, 0 */
#define PLEXUS_INSTRUCTION_WAIT0_LSB 32
#define PLEXUS_INSTRUCTION_WAIT0_BITS 4  /* Wait */
#define PLEXUS_INSTRUCTION_WAIT0_SEMAPHORE_LSB 36
#define PLEXUS_INSTRUCTION_WAIT0_SEMAPHORE_BITS 12
#define PLEXUS_INSTRUCTION_WAIT1_LSB 48
#define PLEXUS_INSTRUCTION_WAIT1_BITS 4  /* Wait */
#define PLEXUS_INSTRUCTION_WAIT1_SEMAPHORE_LSB 52
#define PLEXUS_INSTRUCTION_WAIT1_SEMAPHORE_BITS 12
#define PLEXUS_INSTRUCTION_WAIT0_VALUE_LSB 64
#define PLEXUS_INSTRUCTION_WAIT0_VALUE_BITS 32
#define PLEXUS_INSTRUCTION_WAIT1_VALUE_LSB 96
#define PLEXUS_INSTRUCTION_WAIT1_VALUE_BITS 32
#define PLEXUS_INSTRUCTION_UPDATE_LSB 128
#define PLEXUS_INSTRUCTION_UPDATE_BITS 4  /* Update */
#define PLEXUS_INSTRUCTION_UPDATE_SEMAPHORE_LSB 132
#define PLEXUS_INSTRUCTION_UPDATE_SEMAPHORE_BITS 12
#define PLEXUS_INSTRUCTION_KIND_LSB 144
#define PLEXUS_INSTRUCTION_KIND_BITS 3  /* Kind: what a row of the array takes in a beat */
#define PLEXUS_INSTRUCTION_TILE_LSB 147
#define PLEXUS_INSTRUCTION_TILE_BITS 2  /* rows of the array are 1, 2 or 4 tiles (0, 1, 2); the one that src0 lies in */
#define PLEXUS_INSTRUCTION_SPARSITY_LSB 149
#define PLEXUS_INSTRUCTION_SPARSITY_BITS 3  /* kind SPARSE: Sparsity.code, else 0 */
#define PLEXUS_INSTRUCTION_ROUNDING_LSB 152
#define PLEXUS_INSTRUCTION_ROUNDING_BITS 2  /* MULTIPLY_MOVING: Rounding */
#define PLEXUS_INSTRUCTION_HEADER_RESERVED_LSB 154
#define PLEXUS_INSTRUCTION_HEADER_RESERVED_BITS 6
#define PLEXUS_INSTRUCTION_UPDATE_VALUE_LSB 160
#define PLEXUS_INSTRUCTION_UPDATE_VALUE_BITS 32
#define PLEXUS_INSTRUCTION_HEADER_PAD_LSB 192
#define PLEXUS_INSTRUCTION_HEADER_PAD_BITS 64
#define PLEXUS_INSTRUCTION_SRC0_OFFSET_LSB 256
#define PLEXUS_INSTRUCTION_SRC0_OFFSET_BITS 24  /* byte in the partition of the first element */
#define PLEXUS_INSTRUCTION_SRC0_PARTITION_START_LSB 280
#define PLEXUS_INSTRUCTION_SRC0_PARTITION_START_BITS 8
#define PLEXUS_INSTRUCTION_SRC0_PARTITION_COUNT_LSB 288
#define PLEXUS_INSTRUCTION_SRC0_PARTITION_COUNT_BITS 8  /* 1 to P */
#define PLEXUS_INSTRUCTION_SRC0_SPACE_LSB 296
#define PLEXUS_INSTRUCTION_SRC0_SPACE_BITS 4  /* memmap.Space: SBUF or PSUM */
#define PLEXUS_INSTRUCTION_SRC0_DTYPE_LSB 300
#define PLEXUS_INSTRUCTION_SRC0_DTYPE_BITS 4  /* formats.Format.code */
#define PLEXUS_INSTRUCTION_SRC0_STEP0_LSB 304
#define PLEXUS_INSTRUCTION_SRC0_STEP0_BITS 16  /* elements between neighbours, innermost */
#define PLEXUS_INSTRUCTION_SRC0_COUNT0_LSB 320
#define PLEXUS_INSTRUCTION_SRC0_COUNT0_BITS 16
#define PLEXUS_INSTRUCTION_SRC0_STEP1_LSB 336
#define PLEXUS_INSTRUCTION_SRC0_STEP1_BITS 16
#define PLEXUS_INSTRUCTION_SRC0_COUNT1_LSB 352
#define PLEXUS_INSTRUCTION_SRC0_COUNT1_BITS 16
#define PLEXUS_INSTRUCTION_SRC0_STEP2_LSB 368
#define PLEXUS_INSTRUCTION_SRC0_STEP2_BITS 16
#define PLEXUS_INSTRUCTION_SRC0_COUNT2_LSB 384
#define PLEXUS_INSTRUCTION_SRC0_COUNT2_BITS 16
#define PLEXUS_INSTRUCTION_SRC0_STEP3_LSB 400
#define PLEXUS_INSTRUCTION_SRC0_STEP3_BITS 16  /* outermost */
#define PLEXUS_INSTRUCTION_SRC0_COUNT3_LSB 416
#define PLEXUS_INSTRUCTION_SRC0_COUNT3_BITS 16
#define PLEXUS_INSTRUCTION_SRC0_RESERVED_LSB 432
#define PLEXUS_INSTRUCTION_SRC0_RESERVED_BITS 16
#define PLEXUS_INSTRUCTION_SRC1_OFFSET_LSB 448
#define PLEXUS_INSTRUCTION_SRC1_OFFSET_BITS 24  /* byte in the partition of the first element */
#define PLEXUS_INSTRUCTION_SRC1_PARTITION_START_LSB 472
#define PLEXUS_INSTRUCTION_SRC1_PARTITION_START_BITS 8
#define PLEXUS_INSTRUCTION_SRC1_PARTITION_COUNT_LSB 480
#define PLEXUS_INSTRUCTION_SRC1_PARTITION_COUNT_BITS 8  /* 1 to P */
#define PLEXUS_INSTRUCTION_SRC1_SPACE_LSB 488
#define PLEXUS_INSTRUCTION_SRC1_SPACE_BITS 4  /* memmap.Space: SBUF or PSUM */
#define PLEXUS_INSTRUCTION_SRC1_DTYPE_LSB 492
#define PLEXUS_INSTRUCTION_SRC1_DTYPE_BITS 4  /* formats.Format.code */
#define PLEXUS_INSTRUCTION_SRC1_STEP0_LSB 496
#define PLEXUS_INSTRUCTION_SRC1_STEP0_BITS 16  /* elements between neighbours, innermost */
#define PLEXUS_INSTRUCTION_SRC1_COUNT0_LSB 512
#define PLEXUS_INSTRUCTION_SRC1_COUNT0_BITS 16
#define PLEXUS_INSTRUCTION_SRC1_STEP1_LSB 528
#define PLEXUS_INSTRUCTION_SRC1_STEP1_BITS 16
#define PLEXUS_INSTRUCTION_SRC1_COUNT1_LSB 544
#define PLEXUS_INSTRUCTION_SRC1_COUNT1_BITS 16
#define PLEXUS_INSTRUCTION_SRC1_STEP2_LSB 560
#define PLEXUS_INSTRUCTION_SRC1_STEP2_BITS 16
#define PLEXUS_INSTRUCTION_SRC1_COUNT2_LSB 576
#define PLEXUS_INSTRUCTION_SRC1_COUNT2_BITS 16
#define PLEXUS_INSTRUCTION_SRC1_STEP3_LSB 592
#define PLEXUS_INSTRUCTION_SRC1_STEP3_BITS 16  /* outermost */
#define PLEXUS_INSTRUCTION_SRC1_COUNT3_LSB 608
#define PLEXUS_INSTRUCTION_SRC1_COUNT3_BITS 16
#define PLEXUS_INSTRUCTION_SRC1_RESERVED_LSB 624
#define PLEXUS_INSTRUCTION_SRC1_RESERVED_BITS 16
#define PLEXUS_INSTRUCTION_DST_OFFSET_LSB 640
#define PLEXUS_INSTRUCTION_DST_OFFSET_BITS 24  /* byte in the partition of the first element */
#define PLEXUS_INSTRUCTION_DST_PARTITION_START_LSB 664
#define PLEXUS_INSTRUCTION_DST_PARTITION_START_BITS 8
#define PLEXUS_INSTRUCTION_DST_PARTITION_COUNT_LSB 672
#define PLEXUS_INSTRUCTION_DST_PARTITION_COUNT_BITS 8  /* 1 to P */
#define PLEXUS_INSTRUCTION_DST_SPACE_LSB 680
#define PLEXUS_INSTRUCTION_DST_SPACE_BITS 4  /* memmap.Space: SBUF or PSUM */
#define PLEXUS_INSTRUCTION_DST_DTYPE_LSB 684
#define PLEXUS_INSTRUCTION_DST_DTYPE_BITS 4  /* formats.Format.code */
#define PLEXUS_INSTRUCTION_DST_STEP0_LSB 688
#define PLEXUS_INSTRUCTION_DST_STEP0_BITS 16  /* elements between neighbours, innermost */
#define PLEXUS_INSTRUCTION_DST_COUNT0_LSB 704
#define PLEXUS_INSTRUCTION_DST_COUNT0_BITS 16
#define PLEXUS_INSTRUCTION_DST_STEP1_LSB 720
#define PLEXUS_INSTRUCTION_DST_STEP1_BITS 16
#define PLEXUS_INSTRUCTION_DST_COUNT1_LSB 736
#define PLEXUS_INSTRUCTION_DST_COUNT1_BITS 16
#define PLEXUS_INSTRUCTION_DST_STEP2_LSB 752
#define PLEXUS_INSTRUCTION_DST_STEP2_BITS 16
#define PLEXUS_INSTRUCTION_DST_COUNT2_LSB 768
#define PLEXUS_INSTRUCTION_DST_COUNT2_BITS 16
#define PLEXUS_INSTRUCTION_DST_STEP3_LSB 784
#define PLEXUS_INSTRUCTION_DST_STEP3_BITS 16  /* outermost */
#define PLEXUS_INSTRUCTION_DST_COUNT3_LSB 800
#define PLEXUS_INSTRUCTION_DST_COUNT3_BITS 16
#define PLEXUS_INSTRUCTION_DST_RESERVED_LSB 816
#define PLEXUS_INSTRUCTION_DST_RESERVED_BITS 16
#define PLEXUS_INSTRUCTION_IMM0_LSB 832
#define PLEXUS_INSTRUCTION_IMM0_BITS 64  /* bits 31:0 a: FP32, for bit operators an integer; ACTIVATION: bits 63:32 slope; QUANTIZE_MX: scales; e2m1: map */
#define PLEXUS_INSTRUCTION_IMM1_LSB 896
#define PLEXUS_INSTRUCTION_IMM1_BITS 64  /* bits 31:0 b; RANGE_SELECT: bits 63:32 start, an FP32 value */
#define PLEXUS_INSTRUCTION_IMM2_LSB 960
#define PLEXUS_INSTRUCTION_IMM2_BITS 64  /* bits 23:0 place of the accumulator; ACTIVATION: 39:32 Function, 45:40 AluOp that reduces; MULTIPLY_MOVING: 31:0 seed */

/* Bit fields of descriptor, 1024 bits: position of the least significant bit, width. */
#define PLEXUS_DESCRIPTOR_SOURCE_LSB 0
#define PLEXUS_DESCRIPTOR_SOURCE_BITS 64  /* memmap.ADDRESS of the first byte */
#define PLEXUS_DESCRIPTOR_DESTINATION_LSB 64
#define PLEXUS_DESCRIPTOR_DESTINATION_BITS 64
#define PLEXUS_DESCRIPTOR_ROW_BYTES_LSB 128
#define PLEXUS_DESCRIPTOR_ROW_BYTES_BITS 32  /* contiguous bytes on both sides, 1 to 2^18 */
#define PLEXUS_DESCRIPTOR_CLASS_LSB 160
#define PLEXUS_DESCRIPTOR_CLASS_BITS 3  /* traffic class, 0 to 3 */
#define PLEXUS_DESCRIPTOR_ADD_LSB 163
#define PLEXUS_DESCRIPTOR_ADD_BITS 2  /* DmaAdd: to what is at the destination, in SBUF */
#define PLEXUS_DESCRIPTOR_INDIRECT_LSB 165
#define PLEXUS_DESCRIPTOR_INDIRECT_BITS 2  /* Indirect; if NONE all fields of indices and `table_rows` are 0 */
#define PLEXUS_DESCRIPTOR_INDEX_SKIPS_LSB 167
#define PLEXUS_DESCRIPTOR_INDEX_SKIPS_BITS 1  /* a row whose index is none of the table is left out; else a fault, BAD_INDEX */
#define PLEXUS_DESCRIPTOR_INDEX_DOWN_LSB 168
#define PLEXUS_DESCRIPTOR_INDEX_DOWN_BITS 1  /* indices of dimension 0 lie in successive partitions, those of 1 in successive words */
#define PLEXUS_DESCRIPTOR_INDEX_LSB 169
#define PLEXUS_DESCRIPTOR_INDEX_BITS 23  /* place of the first index in SBUF: partition * 2^16 + byte / 4 */
#define PLEXUS_DESCRIPTOR_COUNT0_LSB 192
#define PLEXUS_DESCRIPTOR_COUNT0_BITS 32  /* rows along the innermost outer dimension, at least 1 */
#define PLEXUS_DESCRIPTOR_SOURCE_STEP0_LSB 224
#define PLEXUS_DESCRIPTOR_SOURCE_STEP0_BITS 48  /* bytes; 0 broadcasts; of a table from one of its rows to the next */
#define PLEXUS_DESCRIPTOR_DESTINATION_STEP0_LSB 272
#define PLEXUS_DESCRIPTOR_DESTINATION_STEP0_BITS 48
#define PLEXUS_DESCRIPTOR_COUNT1_LSB 320
#define PLEXUS_DESCRIPTOR_COUNT1_BITS 32
#define PLEXUS_DESCRIPTOR_SOURCE_STEP1_LSB 352
#define PLEXUS_DESCRIPTOR_SOURCE_STEP1_BITS 48
#define PLEXUS_DESCRIPTOR_DESTINATION_STEP1_LSB 400
#define PLEXUS_DESCRIPTOR_DESTINATION_STEP1_BITS 48
#define PLEXUS_DESCRIPTOR_COUNT2_LSB 448
#define PLEXUS_DESCRIPTOR_COUNT2_BITS 32  /* 1 if there are indices */
#define PLEXUS_DESCRIPTOR_SOURCE_STEP2_LSB 480
#define PLEXUS_DESCRIPTOR_SOURCE_STEP2_BITS 48
#define PLEXUS_DESCRIPTOR_DESTINATION_STEP2_LSB 528
#define PLEXUS_DESCRIPTOR_DESTINATION_STEP2_BITS 48
#define PLEXUS_DESCRIPTOR_SIGNAL_ADDRESS_LSB 576
#define PLEXUS_DESCRIPTOR_SIGNAL_ADDRESS_BITS 64  /* address in a semaphore space: index * 4 */
#define PLEXUS_DESCRIPTOR_SIGNAL_UPDATE_LSB 640
#define PLEXUS_DESCRIPTOR_SIGNAL_UPDATE_BITS 4  /* Update */
#define PLEXUS_DESCRIPTOR_TABLE_ROWS_LSB 644
#define PLEXUS_DESCRIPTOR_TABLE_ROWS_BITS 28  /* rows of the table: an index is less */
#define PLEXUS_DESCRIPTOR_SIGNAL_VALUE_LSB 672
#define PLEXUS_DESCRIPTOR_SIGNAL_VALUE_BITS 32

/* Bit fields of gp_run, 64 bits: position of the least significant bit, width. */
#define PLEXUS_GP_RUN_ENTRY_LSB 0
#define PLEXUS_GP_RUN_ENTRY_BITS 32  /* address of the first instruction */
#define PLEXUS_GP_RUN_CORES_LSB 32
#define PLEXUS_GP_RUN_CORES_BITS 8  /* a bit for each core that runs */
#define PLEXUS_GP_RUN_WATCHDOG_LSB 40
#define PLEXUS_GP_RUN_WATCHDOG_BITS 24  /* GPSIMD cycles, 0 for 2^22 */

#endif
