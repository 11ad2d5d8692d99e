/* free_port: a TCP port that is free on loopback and stays so: it is below the
 * range from which the kernel serves whoever connects or asks for any. */
#ifndef TESTS_UNIT_FREE_PORT_H
#define TESTS_UNIT_FREE_PORT_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static inline int free_port(void)
{
    struct timespec now;
    int found = 0;

    for (unsigned i = 0; found == 0 && i < 1000; i++) {
        struct sockaddr_in a = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        port = 10000 + (int)(((unsigned)getpid() * 2654435761u ^
                              (unsigned)now.tv_nsec) % 22000);
        a.sin_port = htons((uint16_t)port);
        if (bind(fd, (struct sockaddr *)&a, sizeof a) == 0)
            found = port;
        (void)close(fd);
    }
    assert_int_not_equal(found, 0);
    return found;
}

#endif
