/* token: the job's shared secret: --token-file (or AGENT_TOKEN_FILE), else
 * AGENT_TOKEN. Read once at the start; what is kept is a key made of it. */
#ifndef AGENT_TOKEN_H
#define AGENT_TOKEN_H

#include "base/err.h"
#include "rendezvous/auth.h"

#include <stdbool.h>

#define TOKEN_MAX 4096 /* Bytes, without the newline at the end. */
#define TOKEN_SHORT 16 /* Fewer can be guessed. */
#define TOKEN_WAIT_MS 10000 /* For a file that is a pipe. */

struct token_notes { /* What is worth a warning. */
    bool is_short;
    bool is_open; /* The file may be read by every user: `mode`. */
    unsigned mode;
};

/* `file` may be NULL. Without any token *ret is zero and 0 is returned. The
 * value of AGENT_TOKEN is overwritten where it lies, so that it does not stand
 * in /proc/PID/environ. Fails with ERR_USAGE (empty, too long), ERR_NODATA
 * (the file cannot be read) or ERR_AGENT (no random numbers). */
int token_read(const char *file, char *const *envp, struct auth *ret,
               struct token_notes *ret_notes, struct err *e);

#endif
