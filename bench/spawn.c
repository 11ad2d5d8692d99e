/* spawn: how long commands take from start to end, in turns, so that a change
 * of the machine's mood meets all alike. `spawn ROUNDS COMMAND...`: each
 * COMMAND is one argument, split at blanks. For each, one line of
 * microseconds, in the order of the rounds; or "- reason". */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMMANDS_MAX 32
#define WORDS_MAX 64
#define ROUNDS_MAX 100000

extern char **environ;

struct command {
    char *argv[WORDS_MAX + 1];
    double *us;
    char why[128]; /* It failed; not run any more. */
};

static double now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void split(struct command *c, char *line)
{
    unsigned n = 0;
    char *at = NULL;

    for (char *w = strtok_r(line, " ", &at); w && n < WORDS_MAX;
         w = strtok_r(NULL, " ", &at))
        c->argv[n++] = w;
}

static double run(struct command *c, const posix_spawn_file_actions_t *to_null)
{
    double start = now_us();
    int status = 0, r;
    pid_t pid = -1;

    r = posix_spawnp(&pid, c->argv[0], to_null, NULL, c->argv, environ);
    if (r != 0) {
        (void)snprintf(c->why, sizeof c->why, "%s", strerror(r));
        return 0;
    }
    while (waitpid(pid, &status, 0) != pid)
        ;
    start = now_us() - start;
    if (WIFSIGNALED(status))
        (void)snprintf(c->why, sizeof c->why, "signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        (void)snprintf(c->why, sizeof c->why, "exit code %d",
                       WEXITSTATUS(status));
    return start;
}

int main(int argc, char **argv)
{
    static struct command commands[COMMANDS_MAX];
    posix_spawn_file_actions_t to_null;
    long rounds = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
    int n = argc - 2;

    if (rounds < 1 || rounds > ROUNDS_MAX || n < 1 || n > COMMANDS_MAX) {
        (void)fprintf(stderr, "usage: spawn ROUNDS COMMAND...\n");
        return 64;
    }
    (void)posix_spawn_file_actions_init(&to_null);
    (void)posix_spawn_file_actions_addopen(&to_null, 0, "/dev/null", O_RDWR, 0);
    (void)posix_spawn_file_actions_adddup2(&to_null, 0, 1);
    (void)posix_spawn_file_actions_adddup2(&to_null, 0, 2);
    for (int i = 0; i < n; i++) {
        split(&commands[i], argv[i + 2]);
        commands[i].us = calloc((size_t)rounds, sizeof(double));
        if (!commands[i].us || !commands[i].argv[0])
            return 1;
        (void)run(&commands[i], &to_null); /* Once to warm the caches. */
    }
    for (long r = 0; r < rounds; r++)
        for (int i = 0; i < n; i++)
            if (!commands[i].why[0])
                commands[i].us[r] = run(&commands[i], &to_null);
    for (int i = 0; i < n; i++) {
        if (commands[i].why[0])
            (void)printf("- %s", commands[i].why);
        for (long r = 0; !commands[i].why[0] && r < rounds; r++)
            (void)printf("%.1f ", commands[i].us[r]);
        (void)printf("\n");
    }
    return 0;
}
