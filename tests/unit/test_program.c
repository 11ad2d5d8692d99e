/* program: why a file cannot be run, from its first bytes. */
#include "supervise/program.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_scripts(void **state)
{
    static const struct {
        const char *head, *interpreter;
        enum program_kind kind;
    } cases[] = {
        {"#!/bin/sh\necho\n", "/bin/sh", PROGRAM_SCRIPT},
        {"#! /usr/bin/env python3\n", "/usr/bin/env", PROGRAM_SCRIPT},
        {"#!/bin/sh -e", "/bin/sh", PROGRAM_SCRIPT},
        {"#!/bin/sh\r\n", "/bin/sh?", PROGRAM_SCRIPT},
        {"#!/b\033[1m\n", "/b?[1m", PROGRAM_SCRIPT},
        {"#!\n", "", PROGRAM_SCRIPT},
        {"#!", "", PROGRAM_OTHER},
        {"echo hi\n", "", PROGRAM_OTHER},
        {"\x7f" "ELF", "", PROGRAM_OTHER},
        {"", "", PROGRAM_OTHER},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct program p;

        program_read((const uint8_t *)cases[i].head, strlen(cases[i].head),
                     &p);
        assert_int_equal(p.kind, cases[i].kind);
        assert_string_equal(p.interpreter, cases[i].interpreter);
    }
}

/* A file of `machine` whose one segment names a loader at `at`. */
static size_t make_elf(uint8_t *head, unsigned machine, uint64_t at,
                       uint64_t size)
{
    static const char loader[] = "/lib/ld.so";
    Elf64_Ehdr e = {.e_machine = (Elf64_Half)machine, .e_phoff = sizeof e,
                    .e_phnum = 1, .e_phentsize = sizeof(Elf64_Phdr)};
    Elf64_Phdr ph = {.p_type = PT_INTERP, .p_offset = at, .p_filesz = size};

    memcpy(e.e_ident, ELFMAG, SELFMAG);
    e.e_ident[EI_CLASS] = ELFCLASS64;
    e.e_ident[EI_DATA] = ELFDATA2LSB;
    memset(head, 0, 512);
    memcpy(head, &e, sizeof e);
    memcpy(head + sizeof e, &ph, sizeof ph);
    memcpy(head + 256, loader, sizeof loader);
    return 512;
}

static void test_elf(void **state)
{
    uint8_t head[512];
    struct program p;
    char buf[24];
    size_t n = make_elf(head, EM_AARCH64, 256, 11);

    (void)state;
    program_read(head, n, &p);
    assert_int_equal(p.kind, PROGRAM_DYNAMIC);
    assert_string_equal(p.interpreter, "/lib/ld.so");
    assert_string_equal(program_machine(p.machine, buf), "aarch64");
    assert_string_equal(program_machine(999, buf), "machine 999");
    assert_true(program_own_machine() != EM_NONE);
    for (size_t k = 0; k < n; k++) /* Cut off anywhere. */
        program_read(head, k, &p);
    (void)make_elf(head, EM_X86_64, 600, 11); /* Beyond the head. */
    program_read(head, n, &p);
    assert_int_equal(p.kind, PROGRAM_STATIC);
    (void)make_elf(head, EM_X86_64, 256, UINT64_MAX);
    program_read(head, n, &p);
    assert_int_equal(p.kind, PROGRAM_STATIC);
    (void)make_elf(head, EM_X86_64, UINT64_MAX, 11);
    program_read(head, n, &p);
    assert_int_equal(p.kind, PROGRAM_STATIC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_elf),
    };

    return cmocka_run_group_tests_name("program", tests, NULL, NULL);
}
