/* log_files: the files of --log-dir: a bounded queue and one thread that
 * writes all of them, so that a slow disk or a hung NFS never stops agent.
 *
 * Bytes are written as they came, appended to what is there. With a limit a
 * file that would outgrow it is renamed to `<name>.1`, that one to `<name>.2`
 * and so on, where possible between lines. Where bytes are lost, the lines on
 * both sides stay apart. One producer (the main thread). */
#ifndef SUPERVISE_LOG_FILES_H
#define SUPERVISE_LOG_FILES_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_FILES_BYTES (4u << 20) /* Of the queue. */
#define LOG_FILES_NAME_MAX 64
#define LOG_FILES_PUT_MAX 65536
#define LOG_FILES_OPEN_MS 10000 /* For the folder to answer. */

struct log_files_config {
    const char *dir;    /* Made where it is missing. Borrowed, for new alone. */
    uint64_t max_bytes; /* Of a file; 0: no limit. */
    unsigned keep;      /* Old files that stay. */
    unsigned n_files;
    int wake_fd;        /* As of out.h. */
};

struct log_files_lost {
    uint64_t bytes;
    int why; /* errno of the last failure; 0: none. */
};

struct log_files;

/* Fails with ERR_RESOURCE: the folder cannot be made or written to, or does
 * not answer in LOG_FILES_OPEN_MS. */
int log_files_new(struct log_files **ret, const struct log_files_config *c,
                  struct err *e);

/* ": what to do" of an errno, or "". */
const char *log_files_advice(int why);

/* True where one more put of LOG_FILES_PUT_MAX has room. */
bool log_files_has_room(struct log_files *f);
/* Wake when there is. */
void log_files_want_room(struct log_files *f);

/* File `i` is `name` (a path in the folder) from here on; the one before is
 * closed. False where there is no room. */
bool log_files_open(struct log_files *f, unsigned i, const char *name);
/* `len` <= LOG_FILES_PUT_MAX bytes for file `i`, which came from the stream of
 * file `owner`. False where there is no room: they are lost, and counted. */
bool log_files_put(struct log_files *f, unsigned i, unsigned owner,
                   const char *bytes, size_t len);

/* What was put is on the disk, or given up: at most `ms`, or until `stop_fd`
 * (-1: none) is readable. False where it took longer: all that is still queued
 * counts as lost. */
bool log_files_sync(struct log_files *f, uint64_t ms, int stop_fd);
/* What is in no file, for whatever reason; and what of it came from `owner`. */
void log_files_lost(struct log_files *f, struct log_files_lost *ret);
uint64_t log_files_lost_of(struct log_files *f, unsigned owner);

#endif
