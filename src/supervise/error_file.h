/* error_file: what torch's TORCHELASTIC_ERROR_FILE says, as far as it can be
 * read: any bytes are fine, cut off or malformed.
 *
 * Pure, bounded, no general JSON parser: it keeps the few members that are
 * known. Two forms are in use:
 *   {"message": {"message": "Type: text", "extraInfo": {"py_callstack": "..."
 *    or ["...", ...], "timestamp": "..."}, "errorCode": 1}}
 *   {"message": "text", "timestamp": 1} */
#ifndef SUPERVISE_ERROR_FILE_H
#define SUPERVISE_ERROR_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define ERROR_FILE_MAX (64u << 10) /* So much of it is read, the beginning. */
#define ERROR_FILE_DEPTH 16

struct error_file {
    char message[512]; /* Its beginning; "": none was found. */
    char stack[2048];  /* The end of the call stack, or "". */
    bool has_code;     /* errorCode is there. */
    size_t inner_at;   /* Where the members of the inner object begin; 0: there
                          is none. */
};

/* True where there is a message, and it is no launcher's word on its own
 * workers (ChildFailedError). */
bool error_file_read(const char *bytes, size_t n, struct error_file *ret);

/* For people: the message, and the frames that matter; valid UTF-8 of at most
 * cap - 1 bytes. Returns the length. */
size_t error_file_text(const struct error_file *f, char *out, size_t cap);

#endif
