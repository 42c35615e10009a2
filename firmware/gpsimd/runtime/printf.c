/* gp_printf: characters to PUT, one at a time, no buffer. */
#include <plexus/gp.h>
#include <stdbool.h>
#include <string.h>

enum { DIGITS_MAX = 20 };

static int put_padded(const char *sign, const char *text, int length, int width, bool zeros, bool left) {
    int signs = (int)strlen(sign), count = signs + length, blanks = width > count ? width - count : 0;
    if (!left && !zeros)
        for (int i = 0; i < blanks; i++) gp_put(' ');
    for (int i = 0; i < signs; i++) gp_put(sign[i]);
    if (!left && zeros)
        for (int i = 0; i < blanks; i++) gp_put('0');
    for (int i = 0; i < length; i++) gp_put(text[i]);
    if (left)
        for (int i = 0; i < blanks; i++) gp_put(' ');
    return count + blanks;
}

static int digits_of(uint64_t value, uint32_t base, const char *digits, char *end) {
    int length = 0;
    uint32_t low;
    for (; value >> 32; value /= base) end[-++length] = digits[value % base];
    for (low = (uint32_t)value; low || !length; low /= base) end[-++length] = digits[low % base];
    return length;
}

int gp_vprintf(const char *format, va_list arguments) {
    int count = 0;
    for (; *format; format++) {
        if (*format != '%') {
            gp_put(*format);
            count++;
            continue;
        }
        bool left = false, zeros = false, wide = false;
        int width = 0;
        for (format++; *format == '-' || *format == '0'; format++) *format == '-' ? (left = true) : (zeros = true);
        for (; *format >= '0' && *format <= '9'; format++) width = width * 10 + (*format - '0');
        for (; *format == 'l' || *format == 'z' || *format == 'h'; format++)
            if (format[0] == 'l' && format[1] == 'l') wide = true;
        char buffer[DIGITS_MAX], *end = buffer + DIGITS_MAX;
        const char *sign = "", *digits = "0123456789abcdef";
        switch (*format) {
        case 'd':
        case 'i': {
            int64_t value = wide ? va_arg(arguments, int64_t) : va_arg(arguments, int32_t);
            int length = digits_of(value < 0 ? -(uint64_t)value : (uint64_t)value, 10, digits, end);
            count += put_padded(value < 0 ? "-" : "", end - length, length, width, zeros, left);
            break;
        }
        case 'p':
            sign = "0x";
            __attribute__((fallthrough));
        case 'X':
        case 'x':
        case 'u': {
            if (*format == 'X') digits = "0123456789ABCDEF";
            uint64_t value = wide ? va_arg(arguments, uint64_t) : va_arg(arguments, uint32_t);
            int length = digits_of(value, *format == 'u' ? 10 : 16, digits, end);
            count += put_padded(sign, end - length, length, width, zeros, left);
            break;
        }
        case 's': {
            const char *text = va_arg(arguments, const char *);
            if (!text) text = "(null)";
            count += put_padded("", text, (int)strlen(text), width, false, left);
            break;
        }
        case 'c': {
            char c = (char)va_arg(arguments, int);
            count += put_padded("", &c, 1, width, false, left);
            break;
        }
        case '%':
            gp_put('%');
            count++;
            break;
        case '\0':
            return count;
        default: /* as it stands, so that it is seen */
            gp_put('%');
            gp_put(*format);
            count += 2;
        }
    }
    return count;
}

int gp_printf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int count = gp_vprintf(format, arguments);
    va_end(arguments);
    return count;
}
