/* A worker, and a helper, for foreign roots, containers and guests.
 *   foreign [hold|fail|fill|orphans]  say who we are; then hold on until TERM,
 *                                     fail in the first round, fill /dev/shm,
 *                                     or leave 200 orphans
 *   foreign confined                  fail in the first round, then say what
 *                                     we may do
 *   foreign eat                       256 MiB of memory
 *   foreign bare COMMAND...           run it without any capability
 *   foreign old COMMAND...            run it where EPERM is the answer to all
 *                                     system calls since Linux 5.1 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void *ask(void *arg)
{
    const char *name = getenv("MASTER_ADDR");
    struct addrinfo *found;

    if (name && getaddrinfo(name, NULL, NULL, &found) == 0) {
        *(int *)arg = 1;
        freeaddrinfo(found);
    }
    return NULL;
}

/* More than /dev/shm has: SIGBUS. */
static int fill(void)
{
    const size_t size = 8 << 20;
    int fd = open("/dev/shm/big", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    char *m;

    if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
        return 94;
    m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (m == MAP_FAILED)
        return 94;
    memset(m, 1, size);
    return 0;
}

static int eat(void)
{
    const size_t size = 256 << 20;
    char *m = malloc(size);

    if (!m)
        return 93;
    for (size_t i = 0; i < size; i += 4096)
        ((volatile char *)m)[i] = 1;
    return 0;
}

/* By the kernel's own words, and by trying. */
static int confined(void)
{
    char line[256];
    int seccomp = -1;
    unsigned long long caps = ~0ULL;
    FILE *f = fopen("/proc/self/status", "re");
    int fd = open("/x", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const char *root = fd < 0 ? strerror(errno) : "writable";

    while (f && fgets(line, sizeof line, f)) {
        (void)sscanf(line, "Seccomp: %d", &seccomp);
        (void)sscanf(line, "CapEff: %llx", &caps);
    }
    if (f)
        fclose(f);
    printf("uid %d, capabilities %llx, seccomp %d, root %s, %s passwd\n",
           (int)getuid(), caps, seccomp, root,
           access("/etc/passwd", F_OK) == 0 ? "a" : "no");
    return 0;
}

static int bare(char **argv)
{
    for (unsigned long c = 0; prctl(PR_CAPBSET_DROP, c, 0, 0, 0) == 0; c++)
        ;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return 98;
    execv(argv[0], argv);
    return 99;
}

/* As Docker's profile of before 20.10.10. musl comes without the kernel's
 * headers for this. */
static int old(char **argv)
{
    struct {
        unsigned short code;
        unsigned char yes, no;
        unsigned k;
    } filter[] = {
        {0x20, 0, 0, 0},              /* Load the number of the call. */
        {0x35, 0, 1, 424},            /* At least pidfd_send_signal's? */
        {0x06, 0, 0, 0x50000 | EPERM},
        {0x06, 0, 0, 0x7fff0000},     /* Allowed. */
    };
    struct {
        unsigned short n;
        void *filter;
    } program = {4, filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(22 /* PR_SET_SECCOMP */, 2, &program) < 0)
        return 98;
    execv(argv[0], argv);
    return 99;
}

static int orphans(void)
{
    for (int i = 0; i < 200; i++) {
        pid_t pid = fork();

        if (pid < 0)
            return 97;
        if (pid == 0)
            _exit(fork() < 0 ? 97 : 0);
        if (waitpid(pid, NULL, 0) != pid)
            return 97;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *rank = getenv("RANK"), *size = getenv("WORLD_SIZE");
    const char *round = getenv("TORCHELASTIC_RESTART_COUNT");
    const char *what = argc > 1 ? argv[1] : "";
    pthread_t thread;
    int known = 0;

    if (!strcmp(what, "bare"))
        return argc > 2 ? bare(argv + 2) : 96;
    if (!strcmp(what, "old"))
        return argc > 2 ? old(argv + 2) : 96;
    if (!strcmp(what, "eat"))
        return eat();
    if (pthread_create(&thread, NULL, ask, &known) != 0)
        return 95;
    if (pthread_join(thread, NULL) != 0)
        return 95;
    printf("rank %s of %s, round %s, uid %d, master %s\n", rank ? rank : "?",
           size ? size : "?", round ? round : "?", (int)getuid(),
           known ? "known" : "unknown");
    fflush(stdout);
    if (!strcmp(what, "hold"))
        for (;;)
            pause();
    if ((!strcmp(what, "fail") || !strcmp(what, "confined")) && round &&
        !strcmp(round, "0")) {
        fprintf(stderr, "foreign: as told\n");
        return 3;
    }
    if (!strcmp(what, "confined"))
        return confined();
    if (!strcmp(what, "fill"))
        return fill();
    return !strcmp(what, "orphans") ? orphans() : 0;
}
