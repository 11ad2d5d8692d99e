/* fuzz: what fuzz targets and their replay share. A target is a file
 * fuzz_<name>.c with LLVMFuzzerTestOneInput(); its inputs are in
 * corpus/<name>/. `make fuzz-<name>` runs it with clang's libFuzzer; `make
 * check` replays the corpus with replay.c. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fuzz_require(what)                                                     \
    do {                                                                       \
        if (!(what)) {                                                         \
            (void)fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #what); \
            abort();                                                           \
        }                                                                      \
    } while (0)

#endif
