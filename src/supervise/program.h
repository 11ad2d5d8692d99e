/* program: why a file cannot be run, from its first bytes. Pure. */
#ifndef SUPERVISE_PROGRAM_H
#define SUPERVISE_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#define PROGRAM_HEAD 4096 /* Bytes of the file that are looked at. */

enum program_kind {
    PROGRAM_OTHER,
    PROGRAM_SCRIPT,  /* "#!"; interpreter: its path, as written. */
    PROGRAM_STATIC,  /* ELF without a loader. */
    PROGRAM_DYNAMIC, /* ELF; interpreter: its loader. */
};

struct program {
    enum program_kind kind;
    unsigned machine;   /* ELF: e_machine. */
    char interpreter[256];
};

void program_read(const uint8_t *head, size_t n, struct program *ret);

/* "x86-64", "aarch64", "machine 250". Written to `buf` of 24 bytes. */
const char *program_machine(unsigned machine, char *buf);

/* e_machine of this program itself. */
unsigned program_own_machine(void);

#endif
