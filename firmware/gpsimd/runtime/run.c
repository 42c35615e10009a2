/* From the start code to main, the end of a run, and what is too long for a header. */
#include <plexus/gp.h>

int main(int count, char **arguments);

/* What _start calls; a program may have its own. */
__attribute__((weak)) int gp_main(void) { return main(0, NULL); }

/* A program of entries alone has no main. */
__attribute__((weak)) int main(int count, char **arguments) {
    (void)count, (void)arguments;
    return 0;
}

extern void _gp_exit(int value) __attribute__((noreturn));

void gp_exit(int value) { _gp_exit(value); }

void gp_descriptor_copy(gp_descriptor *d, uint64_t destination, uint64_t source, uint32_t row_bytes, uint32_t rows,
                        int64_t destination_step, int64_t source_step) {
    for (int i = 0; i < 32; i++) d->word[i] = 0;
    GP_DESCRIPTOR(d, SOURCE, source);
    GP_DESCRIPTOR(d, DESTINATION, destination);
    GP_DESCRIPTOR(d, ROW_BYTES, row_bytes);
    GP_DESCRIPTOR(d, COUNT0, rows);
    GP_DESCRIPTOR(d, SOURCE_STEP0, source_step);
    GP_DESCRIPTOR(d, DESTINATION_STEP0, destination_step);
    GP_DESCRIPTOR(d, COUNT1, 1);
    GP_DESCRIPTOR(d, COUNT2, 1);
}

/* A field of a pattern: none crosses a word, and an operand begins with one, so a load, a shift and a mask will do. */
#define AT(field) (PLEXUS_INSTRUCTION_SRC0_##field##_LSB - PLEXUS_INSTRUCTION_SRC0_OFFSET_LSB)
#define BITS(field) PLEXUS_INSTRUCTION_SRC0_##field##_BITS
#define FIELD(field) (gp_argument_word(operand / 32 + AT(field) / 32) >> AT(field) % 32 & ((1u << BITS(field)) - 1))
#define WHOLE(field) _Static_assert(AT(field) % 32 + BITS(field) <= 32, "a field of a pattern crosses a word")
_Static_assert(GP_SRC0 % 32 == 0 && GP_SRC1 % 32 == 0 && GP_DST % 32 == 0, "an operand begins within a word");
WHOLE(OFFSET); WHOLE(PARTITION_START); WHOLE(PARTITION_COUNT); WHOLE(SPACE); WHOLE(DTYPE);
WHOLE(STEP0); WHOLE(COUNT0); WHOLE(STEP1); WHOLE(COUNT1); WHOLE(STEP2); WHOLE(COUNT2); WHOLE(STEP3); WHOLE(COUNT3);

gp_pattern gp_pattern_of(uint32_t operand) {
    return (gp_pattern){
        .offset = FIELD(OFFSET),
        .partition_start = FIELD(PARTITION_START),
        .partition_count = FIELD(PARTITION_COUNT),
        .space = FIELD(SPACE),
        .dtype = FIELD(DTYPE),
        .step = {(int16_t)FIELD(STEP0), (int16_t)FIELD(STEP1), (int16_t)FIELD(STEP2), (int16_t)FIELD(STEP3)},
        .count = {FIELD(COUNT0), FIELD(COUNT1), FIELD(COUNT2), FIELD(COUNT3)},
    };
}
