/* log: agent's own lines, `agent[<node rank>]: <level>: text`.
 *
 * A line is handed over in one piece: to the sink where one is set (the loop
 * sets one, so that agent's lines and the workers' share a queue), else by one
 * write(2) to stderr. Alone in having mutable globals. Main thread only. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

/* Longest line, the newline included; longer ones are cut. */
#define LOG_LINE_MAX 4096
#define LOG_STAMP_MAX 40

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* Lines above `max_level` are left out. `node_rank` < 0: `agent: text`. */
void log_setup(int node_rank, enum log_level max_level);

/* Whose lines these are, in place of `agent`. `name` is borrowed. */
void log_setup_program(const char *name);

/* Only the rank. */
void log_setup_rank(int node_rank);

/* Put the time before each line, as log_stamp() writes it. */
void log_setup_time(bool on);
bool log_has_time(void);

/* Now: RFC 3339, UTC, microseconds. */
void log_stamp(char buf[LOG_STAMP_MAX]);

/* Where lines go; NULL means stderr. `ctx` is borrowed. */
void log_set_sink(void (*sink)(void *ctx, const char *line, size_t len),
                  void *ctx);

/* True where a line of this level would be shown. */
int log_shows(enum log_level level);

void log_line(enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* What cannot be printed is lost to whoever waits for it: 0, or ERR_RESOURCE
 * where not all that was printed could be written, which is said. */
int log_end_stdout(void);

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

#endif
