/* port: see port.h. */
#include "rendezvous/port.h"

#include "base/mem.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PORT_MAX 65535u

#define CLAIM_NAME "agent-%s-port-%u" /* "master", say, and a port. */

/* The descriptor stays open, and the name taken, until agent ends. */
bool port_claim_name(const char *what, unsigned port)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int n;

    if (fd < 0)
        return true; /* Without it there is only the look at the port. */
    n = snprintf(a.sun_path + 1, sizeof a.sun_path - 1, CLAIM_NAME, what, port);
    if (bind(fd, (struct sockaddr *)&a,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                         (size_t)n)) == 0)
        return true;
    (void)close(fd);
    return false;
}

/* Bind as a worker would: 0, EADDRINUSE, or what else there is against it.
 * `port` 0: any; *ret_port is then which. AF_INET6 is for both families. */
static int try_bind(int family, unsigned port, unsigned *ret_port)
{
    autoclose int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in a4 = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port)};
    socklen_t len = sizeof a6;
    int one = 1, none = 0, r;

    if (fd < 0)
        return EAFNOSUPPORT;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &none, sizeof none);
    r = family == AF_INET
            ? bind(fd, (struct sockaddr *)&a4, sizeof a4)
            : bind(fd, (struct sockaddr *)&a6, sizeof a6);
    if (r != 0)
        return errno;
    if (port == 0 && getsockname(fd, (struct sockaddr *)&a6, &len) == 0)
        *ret_port = ntohs(a6.sin6_port); /* At the same place in both. */
    return 0;
}

/* Nobody holds the ports of a family that is not there. */
static bool is_free(unsigned port, unsigned *ret_port)
{
    int r = try_bind(AF_INET6, port, ret_port);

    if (r != 0 && r != EADDRINUSE)
        r = try_bind(AF_INET, port, ret_port);
    return r != EADDRINUSE;
}

/* The first of `n` ports from `port` on that is taken; 0: none is. */
static unsigned first_taken(unsigned port, unsigned n)
{
    unsigned unused;

    for (unsigned i = 0; i < n && port + i <= PORT_MAX; i++)
        if (!is_free(port + i, &unused))
            return port + i;
    return 0;
}

int port_claim(unsigned *port, unsigned n, bool asked, unsigned *ret_taken,
               struct err *e)
{
    char who[PORT_WHO_MAX];
    unsigned other = 0, taken = first_taken(*port, n);

    *ret_taken = 0;
    if (!taken && port_claim_name("master", *port))
        return 0;
    taken = taken ? taken : *port;
    if (asked)
        port_master_holder(taken, who, sizeof who);
    if (asked && taken > *port)
        return err_set(e, ERR_RESOURCE,
                       "--master-port %u: the workers listen on %u ports from "
                       "it on, and %u is taken%s%s: give another one, or none "
                       "to have a free one chosen", *port, n, taken,
                       who[0] ? " by " : "", who);
    if (asked)
        return err_set(e, ERR_RESOURCE,
                       "--master-port %u is taken%s%s: give another one, or "
                       "none to have a free one chosen",
                       *port, who[0] ? " by " : "", who);
    for (int i = 0; i < 100; i++)
        if (is_free(0, &other) && other && other + n - 1 <= PORT_MAX &&
            !first_taken(other, n) && port_claim_name("master", other)) {
            *port = other;
            *ret_taken = taken;
            return 0;
        }
    return err_set(e, ERR_RESOURCE, "no free TCP port for MASTER_PORT");
}

unsigned port_hold_dead(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0 &&
        getsockname(fd, (struct sockaddr *)&a, &len) == 0)
        return ntohs(a.sin_port); /* The descriptor stays open. */
    if (fd >= 0)
        (void)close(fd);
    return 1;
}

/* Inode of the socket that listens on `port`, from /proc/net/tcp{,6}. */
static unsigned long listen_inode(const char *path, unsigned port)
{
    char line[512];
    unsigned long inode = 0, found;
    unsigned p, state;
    autofclose FILE *f = fopen(path, "re");

    while (f && !inode && fgets(line, sizeof line, f))
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*s %*s "
                         "%lu", &p, &state, &found) == 3 &&
            p == port && state == 10)
            inode = found;
    return inode;
}

/* Inode of the socket that has this claim's name, from /proc/net/unix. */
static unsigned long claim_inode(const char *what, unsigned port)
{
    char line[512], want[64];
    unsigned long inode = 0, found;
    int at;
    autofclose FILE *f = fopen("/proc/net/unix", "re");

    (void)snprintf(want, sizeof want, "@" CLAIM_NAME "\n", what, port);
    while (f && !inode && fgets(line, sizeof line, f)) {
        at = 0;
        if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu %n", &found, &at) == 1 &&
            at > 0 && strcmp(line + at, want) == 0)
            inode = found;
    }
    return inode;
}

static bool has_socket(const char *pid, const char *want)
{
    char dir[300], path[600], target[64];
    const struct dirent *ent;
    bool found = false;
    DIR *d;

    (void)snprintf(dir, sizeof dir, "/proc/%s/fd", pid);
    d = opendir(dir);
    while (d && !found && (ent = readdir(d)) != NULL) {
        ssize_t n;

        (void)snprintf(path, sizeof path, "%s/%s", dir, ent->d_name);
        n = readlink(path, target, sizeof target - 1);
        if (n > 0) {
            target[n] = '\0';
            found = strcmp(target, want) == 0;
        }
    }
    if (d)
        (void)closedir(d);
    return found;
}

static void describe(const char *pid, char *out, unsigned cap)
{
    char path[300], name[64] = "?";

    (void)snprintf(path, sizeof path, "/proc/%s/comm", pid);
    autofclose FILE *f = fopen(path, "re");

    if (f && fgets(name, sizeof name, f))
        name[strcspn(name, "\n")] = '\0';
    (void)snprintf(out, cap, "pid %s (%s)", pid, name);
}

static unsigned long tcp_inode(unsigned port)
{
    unsigned long inode = listen_inode("/proc/net/tcp", port);

    return inode ? inode : listen_inode("/proc/net/tcp6", port);
}

/* "pid 123 (python)" of a process that has it open, or "". */
static void socket_holder(unsigned long inode, char *out, unsigned cap)
{
    char want[64];
    const struct dirent *ent;
    DIR *d = opendir("/proc");

    out[0] = '\0';
    (void)snprintf(want, sizeof want, "socket:[%lu]", inode);
    while (d && !out[0] && (ent = readdir(d)) != NULL)
        if (isdigit((unsigned char)ent->d_name[0]) &&
            has_socket(ent->d_name, want))
            describe(ent->d_name, out, cap);
    if (d)
        (void)closedir(d);
}

void port_holder(unsigned port, char *out, unsigned cap)
{
    unsigned long inode = tcp_inode(port);

    out[0] = '\0';
    if (inode)
        socket_holder(inode, out, cap);
}

void port_master_holder(unsigned port, char *out, unsigned cap)
{
    unsigned long inode = tcp_inode(port);
    char pid[96];

    out[0] = '\0';
    if (inode) {
        socket_holder(inode, out, cap);
        return;
    }
    inode = claim_inode("master", port);
    if (!inode)
        return;
    socket_holder(inode, pid, sizeof pid);
    (void)snprintf(out, cap, "another agent%s%s, which reserved it for its "
                   "workers", pid[0] ? ", " : "", pid);
}
