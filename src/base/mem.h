/* mem: cleanup by attribute, and handing a resource on. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdio.h>
#include <stdlib.h>
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

static inline int steal_fd(int *fd)
{
    int was = *fd;

    *fd = -1;
    return was;
}

#endif
