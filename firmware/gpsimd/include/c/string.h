/* The functions of <string.h> that runtime/memory.c has. */
#ifndef PLEXUS_STRING_H
#define PLEXUS_STRING_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void *memcpy(void *__restrict destination, const void *__restrict source, size_t bytes);
void *memmove(void *destination, const void *source, size_t bytes);
void *memset(void *destination, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);
size_t strlen(const char *text);
int strcmp(const char *a, const char *b);

#ifdef __cplusplus
}
#endif

#endif
