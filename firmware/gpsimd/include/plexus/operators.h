/* Arguments of operators, in imm1 and imm2 of their GP_RUN.
 * Written by `python -m firmware.gpsimd.generated --write`.
 */
#ifndef PLEXUS_OPERATORS_H
#define PLEXUS_OPERATORS_H

#define PLEXUS_K_MAX 64u
#define PLEXUS_BINS_MAX 512u
#define PLEXUS_ROUTED_MAX 8192u

/* What `integer` does to 32-bit integers x and y; results wrap around. */
#define PLEXUS_INTEGER_ADD 0
#define PLEXUS_INTEGER_SUBTRACT 1  /* x - y */
#define PLEXUS_INTEGER_MULTIPLY 2
#define PLEXUS_INTEGER_BIT_AND 3
#define PLEXUS_INTEGER_BIT_OR 4
#define PLEXUS_INTEGER_BIT_XOR 5
#define PLEXUS_INTEGER_SHIFT_LEFT 6  /* by y mod 32, as both others */
#define PLEXUS_INTEGER_SHIFT_RIGHT 7  /* zeros come in */
#define PLEXUS_INTEGER_SHIFT_RIGHT_SIGNED 8  /* the sign comes in */
#define PLEXUS_INTEGER_MAX 9  /* signed, as MIN */
#define PLEXUS_INTEGER_MIN 10

/* How `affine_select` compares a value with 0. */
#define PLEXUS_RELATION_EQ 0
#define PLEXUS_RELATION_NE 1
#define PLEXUS_RELATION_GT 2
#define PLEXUS_RELATION_GE 3
#define PLEXUS_RELATION_LT 4
#define PLEXUS_RELATION_LE 5

/* What `partition_reduce` makes of partitions. */
#define PLEXUS_REDUCTION_SUM 0  /* wraps around */
#define PLEXUS_REDUCTION_MAX 1  /* signed, as MIN */
#define PLEXUS_REDUCTION_MIN 2

/* What an index of `gather` names. */
#define PLEXUS_GATHER_COLUMNS 0  /* a column of its own partition */
#define PLEXUS_GATHER_SHARED 1  /* a column of all partitions of its core: index i is in its partition i mod L, column i / L */
#define PLEXUS_GATHER_PARTITIONS 2  /* a partition, at its own column */

/* Bit fields of iota, 128 bits: position of the least significant bit, width. */
#define PLEXUS_IOTA_OFFSET_LSB 0
#define PLEXUS_IOTA_OFFSET_BITS 32
#define PLEXUS_IOTA_MULTIPLIER_LSB 32
#define PLEXUS_IOTA_MULTIPLIER_BITS 32  /* of a partition's number */
#define PLEXUS_IOTA_STEP0_LSB 64
#define PLEXUS_IOTA_STEP0_BITS 16  /* of axis n, innermost first */
#define PLEXUS_IOTA_STEP1_LSB 80
#define PLEXUS_IOTA_STEP1_BITS 16  /* of axis n, innermost first */
#define PLEXUS_IOTA_STEP2_LSB 96
#define PLEXUS_IOTA_STEP2_BITS 16  /* of axis n, innermost first */
#define PLEXUS_IOTA_STEP3_LSB 112
#define PLEXUS_IOTA_STEP3_BITS 16  /* of axis n, innermost first */

/* Bit fields of affine_select, 128 bits: position of the least significant bit, width. */
#define PLEXUS_AFFINE_SELECT_FILL_LSB 0
#define PLEXUS_AFFINE_SELECT_FILL_BITS 32  /* bits of what is taken where the relation does not hold */
#define PLEXUS_AFFINE_SELECT_OFFSET_LSB 32
#define PLEXUS_AFFINE_SELECT_OFFSET_BITS 24
#define PLEXUS_AFFINE_SELECT_RELATION_LSB 56
#define PLEXUS_AFFINE_SELECT_RELATION_BITS 8  /* Relation */
#define PLEXUS_AFFINE_SELECT_MULTIPLIER_LSB 64
#define PLEXUS_AFFINE_SELECT_MULTIPLIER_BITS 16  /* of a partition's number */
#define PLEXUS_AFFINE_SELECT_STEP0_LSB 80
#define PLEXUS_AFFINE_SELECT_STEP0_BITS 16  /* of axis n, innermost first */
#define PLEXUS_AFFINE_SELECT_STEP1_LSB 96
#define PLEXUS_AFFINE_SELECT_STEP1_BITS 16  /* of axis n, innermost first */
#define PLEXUS_AFFINE_SELECT_STEP2_LSB 112
#define PLEXUS_AFFINE_SELECT_STEP2_BITS 16  /* of axis n, innermost first */

/* Bit fields of gather, 128 bits: position of the least significant bit, width. */
#define PLEXUS_GATHER_MODE_LSB 0
#define PLEXUS_GATHER_MODE_BITS 32  /* Gather */
#define PLEXUS_GATHER_FILL_LSB 32
#define PLEXUS_GATHER_FILL_BITS 32  /* bits, for an index that is outside */

/* Bit fields of topk, 128 bits: position of the least significant bit, width. */
#define PLEXUS_TOPK_K_LSB 0
#define PLEXUS_TOPK_K_BITS 32

/* Bit fields of nonzero, 128 bits: position of the least significant bit, width. */

/* Bit fields of partition_reduce, 128 bits: position of the least significant bit, width. */
#define PLEXUS_PARTITION_REDUCE_OP_LSB 0
#define PLEXUS_PARTITION_REDUCE_OP_BITS 32  /* Reduction */

/* Bit fields of partition_broadcast, 128 bits: position of the least significant bit, width. */

/* Bit fields of integer, 128 bits: position of the least significant bit, width. */
#define PLEXUS_INTEGER_OP_LSB 0
#define PLEXUS_INTEGER_OP_BITS 16  /* Integer */
#define PLEXUS_INTEGER_BY_NUMBER_LSB 16
#define PLEXUS_INTEGER_BY_NUMBER_BITS 16
#define PLEXUS_INTEGER_NUMBER_LSB 32
#define PLEXUS_INTEGER_NUMBER_BITS 32  /* y */

/* Bit fields of prefix_sum, 128 bits: position of the least significant bit, width. */
#define PLEXUS_PREFIX_SUM_EXCLUSIVE_LSB 0
#define PLEXUS_PREFIX_SUM_EXCLUSIVE_BITS 32  /* without the element itself */

/* Bit fields of histogram, 128 bits: position of the least significant bit, width. */

/* Bit fields of route, 128 bits: position of the least significant bit, width. */
#define PLEXUS_ROUTE_TOKENS_LSB 0
#define PLEXUS_ROUTE_TOKENS_BITS 32
#define PLEXUS_ROUTE_EXPERTS_LSB 32
#define PLEXUS_ROUTE_EXPERTS_BITS 16
#define PLEXUS_ROUTE_K_LSB 48
#define PLEXUS_ROUTE_K_BITS 16

#endif
