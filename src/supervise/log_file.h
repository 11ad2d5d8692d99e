/* log_file: one file of --log-dir: opened, written, rotated. Used by the
 * thread of log_files.c alone; may block. Results are 0 or an errno. */
#ifndef SUPERVISE_LOG_FILE_H
#define SUPERVISE_LOG_FILE_H

#include "supervise/log_files.h"

#define LOG_FILE_SKIP_MAX 65536

struct log_file_rules {
    const char *dir; /* Borrowed. */
    int dir_fd; /* < 0: it could not be opened. */
    uint64_t max_bytes; /* 0: no limit. */
    unsigned keep;
};

struct log_file {
    int fd; /* < 0: not open. */
    uint64_t size;
    bool in_line; /* Its last byte was no newline. */
    /* What was lost since: bytes; and these ended within a line, of which so
     * many bytes more were left out. */
    bool has_hole, in_hole;
    uint64_t n_left_out;
    char name[LOG_FILES_NAME_MAX]; /* "": none. */
};

/* Make the folder, and those above it, and open it. */
int log_file_open_dir(struct log_file_rules *r);

/* Also makes the folder again, where it was removed. */
int log_file_open(struct log_file *f, struct log_file_rules *r,
                  const char *name);
/* What follows was lost, `ends_line` where its last byte is a newline. A line
 * that it tore is ended before the next bytes, and of these the rest of a torn
 * line is left out, unless it is longer than LOG_FILE_SKIP_MAX. */
void log_file_lose(struct log_file *f, bool ends_line);
/* Returns the bytes that could not be written, or were left out; *ret_why is
 * left alone where all could. */
size_t log_file_write(struct log_file *f, struct log_file_rules *r,
                      const char *bytes, size_t len, int *ret_why);
int log_file_sync(struct log_file *f);

#endif
