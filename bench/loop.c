/* loop: the floor. Start N of a command with fork and exec, wait for all. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    long n = argc > 2 ? strtol(argv[1], NULL, 10) : 0;

    for (long i = 0; i < n; i++)
        if (fork() == 0) {
            (void)execvp(argv[2], argv + 2);
            _exit(127);
        }
    while (wait(NULL) > 0)
        ;
    return n > 0 ? 0 : 64;
}
