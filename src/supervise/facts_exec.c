/* facts_exec: why a command could not be run, from the file itself. */
#include "supervise/facts.h"

#include "base/mem.h"
#include "base/text.h"
#include "supervise/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The file that exec tried last: as given, or of that name in PATH. */
static bool find_file(const char *command, char path[PATH_MAX])
{
    const char *dirs = getenv("PATH");

    if (strchr(command, '/'))
        return text_copy(path, PATH_MAX, command) && access(path, F_OK) == 0;
    for (dirs = dirs ? dirs : "/bin:/usr/bin"; dirs;) {
        size_t n = strcspn(dirs, ":");

        if (n > 0)
            (void)snprintf(path, PATH_MAX, "%.*s/%.1024s",
                           n < 2048 ? (int)n : 2048, dirs, command);
        else /* The current folder, also at the end of PATH. */
            (void)snprintf(path, PATH_MAX, "./%.1024s", command);
        if (access(path, F_OK) == 0)
            return true;
        dirs = dirs[n] ? dirs + n + 1 : NULL;
    }
    return false;
}

/* A script beside agent, meant as Python's argument or with "./" before it;
 * or "python" where there is python3 alone, as in Debian. */
static void say_here(struct text *t, const char *command)
{
    char path[PATH_MAX];
    struct stat st;

    if (strcmp(command, "python") == 0 && find_file("python3", path))
        text_add(t, "'python' was not found in PATH; there is '%.160s': use "
                 "python3", path);
    else if (stat(command, &st) == 0 && S_ISREG(st.st_mode))
        text_add(t, "'%.120s' was not found in PATH; it is in this folder: "
                 "use ./%.120s, or the name of its interpreter before it",
                 command, command);
}

/* A command line in one word, as a list in a manifest may have it. */
static bool is_line(const char *command)
{
    char first[PATH_MAX], path[PATH_MAX];
    size_t n = strcspn(command, " ");

    (void)snprintf(first, sizeof first, "%.*s", n < 1024 ? (int)n : 1024,
                   command);
    return n > 0 && command[n] && find_file(first, path);
}

/* Not found: missing in the image, or meant for another working directory. */
static void say_nowhere(struct text *t, const char *command)
{
    char dir[PATH_MAX], to[PATH_MAX];
    ssize_t n = readlink(command, to, sizeof to - 1);

    if (!command[0]) {
        text_add(t, "the command is an empty word: a variable that is not "
                 "set?");
    } else if (is_line(command)) {
        text_add(t, "'%.160s' is one word: give command and arguments as "
                 "words of their own, or let sh -c run it", command);
    } else if (!strchr(command, '/')) {
        say_here(t, command);
    } else if (n > 0) {
        to[n] = '\0';
        text_add(t, "'%.120s' is a link to '%.120s', which is missing",
                 command, to);
    } else if (command[0] == '/') {
        text_add(t, "there is no '%.160s' in the image", command);
    } else if (getcwd(dir, sizeof dir)) {
        text_add(t, "there is no '%.120s' in '%.120s', the working directory "
                 "of agent", command, dir);
    }
}

static void read_head(const char *path, struct program *ret, bool *ret_empty)
{
    uint8_t head[PROGRAM_HEAD];
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, head, sizeof head) : -1;

    *ret_empty = n == 0;
    program_read(head, n > 0 ? (size_t)n : 0, ret);
}

static bool is_foreign(const struct program *p)
{
    return (p->kind == PROGRAM_STATIC || p->kind == PROGRAM_DYNAMIC) &&
           p->machine != program_own_machine() && p->machine != 0;
}

/* It is there, and yet "no such file". */
static void say_missing(struct text *t, const char *path,
                        const struct program *p)
{
    size_t n = strlen(p->interpreter);

    if (p->kind == PROGRAM_SCRIPT && n > 0 && p->interpreter[n - 1] == '?')
        text_add(t, "'%.120s' is a script whose first line ends with a "
                 "carriage return: it was saved with Windows line ends "
                 "(dos2unix)", path);
    else if (p->kind == PROGRAM_SCRIPT)
        text_add(t, "'%.120s' is a script, and its interpreter '%.120s' is "
                 "missing in the image", path, p->interpreter);
    else if (p->kind == PROGRAM_DYNAMIC)
        text_add(t, "'%.120s' needs the loader '%.120s', which is missing in "
                 "the image: it was built for another distribution%s", path,
                 p->interpreter,
                 strstr(p->interpreter, "musl") ? " (musl, Alpine)" : "");
}

static void say_format(struct text *t, const char *path,
                       const struct program *p, bool is_empty)
{
    char theirs[24], ours[24];

    if (is_empty)
        text_add(t, "'%.160s' is empty", path);
    else if (p->kind == PROGRAM_OTHER)
        text_add(t, "'%.160s' is no program, and has no #! line", path);
    else if (is_foreign(p))
        text_add(t, "'%.160s' is built for %s, and this machine is %s: the "
                 "image is for another architecture", path,
                 program_machine(p->machine, theirs),
                 program_machine(program_own_machine(), ours));
}

static void say_access(struct text *t, const char *path,
                       const struct program *p)
{
    struct stat st;
    struct statvfs fs;

    if (stat(path, &st) != 0)
        return;
    if (S_ISDIR(st.st_mode))
        text_add(t, "'%.160s' is a folder", path);
    else if ((st.st_mode & 0111) == 0)
        text_add(t, "'%.160s' has no execute permission (chmod +x)", path);
    else if (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOEXEC))
        text_add(t, "'%.160s' lies on a file system that is mounted noexec",
                 path);
    else if (access(path, X_OK) != 0)
        text_add(t, "'%.160s' may not be run by uid %u (runAsUser; mode %03o, "
                 "owner %u)", path, (unsigned)geteuid(),
                 (unsigned)st.st_mode & 0777, (unsigned)st.st_uid);
    else if (p->kind == PROGRAM_SCRIPT)
        text_add(t, "'%.120s' is a script, and its interpreter '%.120s' may "
                 "not be run", path, p->interpreter);
}

bool facts_ran_by_shell(const char *command, int code)
{
    char path[PATH_MAX];
    struct program p;
    bool is_empty;

    if ((code != 2 && code != 126 && code != 127) ||
        !find_file(command, path))
        return false;
    read_head(path, &p, &is_empty);
    return is_foreign(&p);
}

void facts_exec(const char *command, int exec_errno, char *out, size_t cap)
{
    char path[PATH_MAX];
    struct program p;
    struct text t;
    bool is_empty;

    text_init(&t, out, cap);
    if (!command[0] || !find_file(command, path)) {
        if (exec_errno == ENOENT)
            say_nowhere(&t, command);
        t.len = text_make_line(out, cap - 1);
        return;
    }
    read_head(path, &p, &is_empty);
    if (exec_errno == ENOENT)
        say_missing(&t, path, &p);
    else if (exec_errno == ENOEXEC)
        say_format(&t, path, &p, is_empty);
    else if (exec_errno == EACCES)
        say_access(&t, path, &p);
    t.len = text_make_line(out, cap - 1);
}
