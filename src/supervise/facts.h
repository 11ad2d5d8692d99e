/* facts: what this machine knows about deaths: counts of OOM kills, how full
 * file systems are, why a file cannot be run. */
#ifndef SUPERVISE_FACTS_H
#define SUPERVISE_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FACTS_TEXT_MAX 320

/* OOM kills in this container's memory cgroup so far, and how often it was its
 * own limit that was reached (v2 memory.events; v1 memory.oom_control, which
 * does not tell them apart); 0 where it cannot be read. `root` stands before
 * /sys and /proc in tests. */
struct facts_oom {
    uint64_t kills, at_limit;
};
struct facts_oom facts_oom_of(const char *root);
struct facts_oom facts_oom(void);

/* The lowest limit that is seen of memory in bytes, of processes; 0: none. */
uint64_t facts_memory_limit(void);
uint64_t facts_pids_limit(void);

/* Whether an OOM kill takes the whole cgroup, this process too (v2
 * memory.oom.group, of this group or of one above). */
bool facts_oom_group_of(const char *root);
bool facts_oom_group(void);

/* OOM kills on this node so far, in whatever cgroup; 0: not known. */
uint64_t facts_node_oom_kills(void);

/* Size and used bytes of /dev/shm; 0, 0 where there is none. */
void facts_shm(uint64_t *ret_bytes, uint64_t *ret_used);

/* "'/tmp' has 0 KiB free of 64 MiB", of some usual places that are full; or
 * "". */
void facts_full(char *out, size_t cap);

/* The working directory has been removed. */
bool facts_cwd_gone(void);

/* Why exec of `command` failed with this errno, looked for in PATH as exec
 * does; or "" where there is no more to say than that. */
void facts_exec(const char *command, int exec_errno, char *out, size_t cap);

/* exec gives what it cannot run to a shell, which then ends with `code`: true
 * where that is so, and the file is a program for another machine. */
bool facts_ran_by_shell(const char *command, int code);

#endif
