/* program: see program.h. */
#include "supervise/program.h"

#include "base/text.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

/* A path that may go to a terminal, of s[0..n). */
static void set_interpreter(struct program *p, const uint8_t *s, size_t n)
{
    if (n > sizeof p->interpreter - 1)
        n = sizeof p->interpreter - 1;
    memcpy(p->interpreter, s, n);
    p->interpreter[n] = '\0';
    (void)text_make_utf8(p->interpreter, sizeof p->interpreter - 1);
}

static void read_script(const uint8_t *head, size_t n, struct program *ret)
{
    size_t start = 2, end;

    ret->kind = PROGRAM_SCRIPT;
    while (start < n && (head[start] == ' ' || head[start] == '\t'))
        start++;
    for (end = start; end < n && !memchr(" \t\n", head[end], 4); end++)
        ;
    set_interpreter(ret, head + start, end - start);
}

/* The segment that names the loader, where it lies within the head. */
static void read_elf(const uint8_t *head, size_t n, struct program *ret)
{
    Elf64_Ehdr e;
    Elf64_Phdr ph;

    memcpy(&e, head, sizeof e);
    ret->kind = PROGRAM_STATIC;
    ret->machine = e.e_machine; /* At the same place in 32 bits. */
    if (e.e_ident[EI_CLASS] != ELFCLASS64 ||
        e.e_ident[EI_DATA] != ELFDATA2LSB || e.e_phentsize != sizeof ph)
        return;
    for (unsigned i = 0; i < e.e_phnum; i++) {
        uint64_t at = e.e_phoff + i * sizeof ph;

        if (e.e_phoff > n || at + sizeof ph > n)
            return;
        memcpy(&ph, head + at, sizeof ph);
        if (ph.p_type != PT_INTERP || ph.p_offset > n ||
            ph.p_filesz > n - ph.p_offset || ph.p_filesz == 0)
            continue;
        ret->kind = PROGRAM_DYNAMIC;
        set_interpreter(ret, head + ph.p_offset,
                        strnlen((const char *)head + ph.p_offset,
                                (size_t)ph.p_filesz));
        return;
    }
}

void program_read(const uint8_t *head, size_t n, struct program *ret)
{
    memset(ret, 0, sizeof *ret);
    if (n > 2 && head[0] == '#' && head[1] == '!')
        read_script(head, n, ret);
    else if (n >= sizeof(Elf64_Ehdr) && memcmp(head, ELFMAG, SELFMAG) == 0)
        read_elf(head, n, ret);
}

const char *program_machine(unsigned machine, char *buf)
{
    static const struct {
        unsigned machine;
        const char *name;
    } names[] = {
        {EM_X86_64, "x86-64"},   {EM_AARCH64, "aarch64"}, {EM_386, "i386"},
        {EM_ARM, "arm"},         {EM_PPC64, "ppc64"},     {EM_S390, "s390x"},
        {EM_RISCV, "riscv"},
    };

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].machine == machine)
            return names[i].name;
    (void)snprintf(buf, 24, "machine %u", machine % 100000);
    return buf;
}

unsigned program_own_machine(void)
{
#if defined(__x86_64__)
    return EM_X86_64;
#elif defined(__aarch64__)
    return EM_AARCH64;
#elif defined(__powerpc64__)
    return EM_PPC64;
#elif defined(__s390x__)
    return EM_S390;
#elif defined(__riscv)
    return EM_RISCV;
#else
    return EM_NONE;
#endif
}
