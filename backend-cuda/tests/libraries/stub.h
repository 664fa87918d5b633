// What the libraries begin with that stand in for NVIDIA's. The function that STUB_FAILS names, or every
// one if that is `*`, returns a code that no header lists and writes nothing. With `#define name
// hidden_name` before this, the library lacks a function.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef UNLISTED
#define UNLISTED 987654
#endif

static int fails(const char *name) {
    const char *which = getenv("STUB_FAILS");
    return which != NULL && (strcmp(which, "*") == 0 || strcmp(which, name) == 0);
}

#define FUNCTION(name, parameters, body) \
    int name parameters {                \
        if (fails(#name)) {              \
            return UNLISTED;             \
        }                                \
        body;                            \
        return 0;                        \
    }

// A handle that is not null.
#define HANDLE ((void *)8)
