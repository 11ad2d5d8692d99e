/* mem: cleanup by attribute, and handing a resource on. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static inline void mem_free_at(void *p)
{
    free(*(void **)p);
}

static inline void mem_close_at(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

static inline void mem_fclose_at(FILE **f)
{
    if (*f)
        (void)fclose(*f);
}

/* Freed or closed at the end of the scope. Initialise to NULL or -1. */
#define autofree __attribute__((cleanup(mem_free_at)))
#define autoclose __attribute__((cleanup(mem_close_at)))
#define autofclose __attribute__((cleanup(mem_fclose_at)))

/* Take the resource out of an auto variable, so that it outlives the scope. */
static inline void *mem_steal_at(void *p)
{
    void *was = *(void **)p;

    *(void **)p = NULL;
    return was;
}
#define steal(p) ((__typeof__(*(p)))mem_steal_at(p))

/* Zeroed memory for as long as the process lives; NULL: there is none. Only
 * pages that are touched cost something: calloc() clears what it takes from the
 * heap, large or not. */
static inline void *mem_pages(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

static inline int steal_fd(int *fd)
{
    int was = *fd;

    *fd = -1;
    return was;
}

#endif
