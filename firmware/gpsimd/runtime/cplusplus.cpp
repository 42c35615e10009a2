// What C++ needs without exceptions, heap and a process that ends: destructors of static objects never run.
#include <plexus/gp.h>

extern "C" {
void *__dso_handle = nullptr;

int __cxa_atexit(void (*)(void *), void *, void *) { return 0; }

[[noreturn]] void __cxa_pure_virtual() {
    gp::printf("a pure virtual function was called\n");
    gp::exit(1);
}
}

// Virtual destructors name it. There is no heap, so nothing can be deleted.
void operator delete(void *) noexcept { __builtin_trap(); }
void operator delete(void *, size_t) noexcept { __builtin_trap(); }
