/* clone_static: threads by clone(2). Linked into build/agent alone, before
 * libc, whose function of this name it is in place of.
 *
 * glibc starts a thread by clone3(2), and goes back to clone(2) only where the
 * kernel does not know that (ENOSYS). Container runtimes of before 2021 refuse
 * with EPERM what their seccomp profile does not know (Docker before
 * 20.10.10): there would be no thread at all, and libuv aborts for want of
 * one. agent needs nothing that clone3 alone can do. */
#include <errno.h>
#include <stddef.h>

int __clone3(void *args, size_t size, int (*run)(void *), void *arg);
int __clone3(void *args, size_t size, int (*run)(void *), void *arg)
{
    (void)args;
    (void)size;
    (void)run;
    (void)arg;
    errno = ENOSYS;
    return -1;
}
