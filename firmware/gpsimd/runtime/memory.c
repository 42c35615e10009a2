/* What compilers call by themselves, and the rest of <string.h>. Built with -fno-builtin, or each would call itself. */
#include <stdint.h>
#include <string.h>

void *memcpy(void *__restrict destination, const void *__restrict source, size_t bytes) {
    uint8_t *d = destination;
    const uint8_t *s = source;
    for (size_t i = 0; i < bytes; i++) d[i] = s[i];
    return destination;
}

void *memmove(void *destination, const void *source, size_t bytes) {
    uint8_t *d = destination;
    const uint8_t *s = source;
    if ((uintptr_t)d - (uintptr_t)s >= bytes) { /* also if the destination lies in front */
        for (size_t i = 0; i < bytes; i++) d[i] = s[i];
    } else {
        while (bytes--) d[bytes] = s[bytes];
    }
    return destination;
}

void *memset(void *destination, int value, size_t bytes) {
    uint8_t *d = destination;
    for (size_t i = 0; i < bytes; i++) d[i] = (uint8_t)value;
    return destination;
}

int memcmp(const void *a, const void *b, size_t bytes) {
    const uint8_t *x = a, *y = b;
    for (size_t i = 0; i < bytes; i++)
        if (x[i] != y[i]) return x[i] - y[i];
    return 0;
}

size_t strlen(const char *text) {
    size_t count = 0;
    while (text[count]) count++;
    return count;
}

int strcmp(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return (uint8_t)*a - (uint8_t)*b;
}
