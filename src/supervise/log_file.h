/* log_file: one file of --log-dir: opened, written, rotated. Used by the
 * thread of log_files.c alone; may block. Results are 0 or an errno. */
#ifndef SUPERVISE_LOG_FILE_H
#define SUPERVISE_LOG_FILE_H

#include "supervise/log_files.h"

struct log_file_rules {
    int dir_fd;
    uint64_t max_bytes; /* 0: no limit. */
    unsigned keep;
};

struct log_file {
    int fd; /* < 0: not open. */
    uint64_t size;
    bool in_line; /* Its last byte was no newline. */
    char name[LOG_FILES_NAME_MAX]; /* "": none. */
};

/* Make the folder, and those above it, and open it. */
int log_file_open_dir(struct log_file_rules *r, const char *dir);

int log_file_open(struct log_file *f, const struct log_file_rules *r,
                  const char *name);
/* Returns the bytes that could not be written; *ret_why is left alone where
 * there are none. */
size_t log_file_write(struct log_file *f, const struct log_file_rules *r,
                      const char *bytes, size_t len, int *ret_why);
int log_file_sync(struct log_file *f);

#endif
