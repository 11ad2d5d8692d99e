/* stamp: a worker that tells when it began and when it dies. `stamp FILE`
 * appends "start RANK NANOSECONDS"; rank 0 (or a lone one) waits 40 ms and
 * then fails, with "death RANK NANOSECONDS" as its last word; the others wait
 * for a signal. Static, so that its first instruction is soon its own. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void tell(int fd, const char *what, const char *rank)
{
    char line[96];
    struct timespec t;
    int n;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    n = snprintf(line, sizeof line, "%s %s %lld\n", what, rank,
                 (long long)t.tv_sec * 1000000000 + t.tv_nsec);
    (void)!write(fd, line, (size_t)n);
}

int main(int argc, char **argv)
{
    const char *rank = getenv("RANK");
    int fd;

    if (argc != 2)
        return 64;
    fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (!rank)
        rank = "0";
    tell(fd, "start", rank);
    if (rank[0] != '0')
        (void)pause();
    (void)nanosleep(&(struct timespec){.tv_nsec = 40000000}, NULL);
    tell(fd, "death", rank);
    _exit(1);
}
