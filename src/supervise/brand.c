/* brand: see brand.h. */
#include "supervise/brand.h"

#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define BRAND_BIT (UINT64_C(1) << 62) /* 146,000 years of microseconds. */
#define LIMITS_MAX 4096

uint64_t brand_make(uint64_t random)
{
    uint64_t brand = BRAND_BIT |
                     (random & (BRAND_BIT - 1) & ~(uint64_t)BRAND_WORKER_MASK);
    struct rlimit r;

    if (getrlimit(RLIMIT_RTTIME, &r) != 0 ||
        (r.rlim_cur != RLIM_INFINITY && r.rlim_cur < BRAND_BIT) ||
        (r.rlim_max != RLIM_INFINITY && r.rlim_max < 2 * BRAND_BIT))
        return 0;
    return brand;
}

void brand_put(uint64_t brand)
{
    struct rlimit r;

    if (brand == 0 || getrlimit(RLIMIT_RTTIME, &r) != 0)
        return;
    r.rlim_cur = brand;
    (void)setrlimit(RLIMIT_RTTIME, &r);
}

enum brand_says brand_ask(pid_t pid, uint64_t brand, uint64_t ignore)
{
    static const char name[] = "Max realtime timeout";
    char path[64], buf[LIMITS_MAX];
    const char *line;
    size_t len = 0;
    ssize_t n;

    (void)snprintf(path, sizeof path, "/proc/%d/limits", (int)pid);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return BRAND_UNKNOWN;
    while (len < sizeof buf - 1 &&
           (n = read(fd, buf + len, sizeof buf - 1 - len)) > 0)
        len += (size_t)n;
    buf[len] = '\0';
    line = strstr(buf, name);
    if (!line)
        return BRAND_UNKNOWN;
    /* "unlimited" is read as 0, which no brand is. */
    return (strtoull(line + sizeof name - 1, NULL, 10) & ~ignore) ==
                   (brand & ~ignore)
               ? BRAND_SAME
               : BRAND_OTHER;
}
