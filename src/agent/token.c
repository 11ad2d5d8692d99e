/* token: see token.h. */
#include "agent/token.h"

#include "base/mem.h"
#include "base/variable.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

struct bytes {
    char at[TOKEN_MAX + 3]; /* A newline or CR LF, and one too many. */
    size_t len;
};

/* To the end, or until there is too much. Never blocks for long. */
static int read_all(int fd, struct bytes *b)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    while (b->len < sizeof b->at) {
        ssize_t n;

        if (poll(&p, 1, TOKEN_WAIT_MS) == 0)
            return ETIMEDOUT;
        n = read(fd, b->at + b->len, sizeof b->at - b->len);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return errno;
        b->len += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int read_file(const char *path, struct bytes *b,
                     struct token_notes *notes, struct err *e)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK |
                                      O_NOCTTY);
    struct stat st;
    int why;

    if (fd < 0)
        return err_set(e, ERR_NODATA, "--token-file %.200s: %s", path,
                       strerror(errno));
    why = read_all(fd, b);
    if (why != 0)
        return err_set(e, ERR_NODATA, "--token-file %.200s: %s", path,
                       strerror(why));
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        notes->mode = st.st_mode & 07777;
        notes->is_open = (st.st_mode & S_IROTH) != 0;
    }
    return 0;
}

static int check(struct bytes *b, const char *what, struct err *e)
{
    while (b->len > 0 &&
           (b->at[b->len - 1] == '\n' || b->at[b->len - 1] == '\r'))
        b->len--;
    if (b->len == 0)
        return err_set(e, ERR_USAGE, "%s: the token is empty; without a "
                       "token leave it out", what);
    if (b->len > TOKEN_MAX)
        return err_set(e, ERR_USAGE, "%s: the token is longer than %d "
                       "bytes", what, TOKEN_MAX);
    return 0;
}

static int make_key(const struct bytes *b, struct auth *ret, struct err *e)
{
    uint8_t seed[AUTH_SEED];

    if (getrandom(seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        return err_set(e, ERR_AGENT, "getrandom: %s", strerror(errno));
    auth_init(ret, b->at, b->len, seed);
    explicit_bzero(seed, sizeof seed);
    return 0;
}

static int take(const char *file, char *value, struct bytes *b,
                struct auth *ret, struct token_notes *notes, struct err *e)
{
    char what[256] = "AGENT_TOKEN";
    int r = 0;

    if (file) {
        (void)snprintf(what, sizeof what, "--token-file %.200s", file);
        r = read_file(file, b, notes, e);
    } else {
        b->len = strnlen(value, sizeof b->at);
        memcpy(b->at, value, b->len);
    }
    if (r == 0)
        r = check(b, what, e);
    if (r != 0)
        return r;
    notes->is_short = b->len < TOKEN_SHORT;
    return make_key(b, ret, e);
}

int token_read(const char *file, char *const *envp, struct auth *ret,
               struct token_notes *ret_notes, struct err *e)
{
    char *value = variable_find(envp, "AGENT_TOKEN");
    struct bytes b = {.len = 0};
    int r = 0;

    memset(ret, 0, sizeof *ret);
    memset(ret_notes, 0, sizeof *ret_notes);
    if (!file && variable_find(envp, "AGENT_TOKEN_FILE"))
        r = err_set(e, ERR_USAGE, "AGENT_TOKEN_FILE: it is empty; without a "
                    "token leave it out");
    else if (file || value)
        r = take(file, value, &b, ret, ret_notes, e);
    explicit_bzero(&b, sizeof b);
    if (value)
        explicit_bzero(value, strlen(value));
    return r;
}
