/* loop_guard: what agent leaves in order: the guard, and the files that
 * outlive the workers that made them. */
#include "agent/loop_parts.h"

#include "agent/status_socket.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "supervise/guard.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARD_AFTER_MS 1
#define SETTLED_AFTER_MS 5
#define GUARDS_LOST_MAX 8

/* In the guard. */
static void forget_files(void *ctx, pid_t agent)
{
    const struct loop *l = ctx;

    status_socket_forget(l->plan->o->socket, l->plan->incarnation, agent);
    scratch_forget(&l->folder);
}

void loop_guard_open(struct loop *l)
{
    const struct guard_last last = {.run = forget_files, .ctx = l};

    if (l->guard_pid == 0 && !l->is_init)
        l->guard_pid = guard_start(l->plan->own_cookie, l->plan->brand, &last,
                                   &l->guard_fd);
}

/* In one go: each message would wake the guard, beside workers that load. Its
 * brand and cookie are what it finds them by until then. */
static void tell_guard(struct loop *l)
{
    guard_forget(l->guard_fd);
    for (uint32_t i = 0; i < l->n_slots; i++)
        if (l->workers[i].pid > 0)
            guard_add(l->guard_fd, l->workers[i].pid);
}

void loop_guard_died(struct loop *l)
{
    log_warning("the guard (pid %d) was killed from outside; it is started "
                "again", (int)l->guard_pid);
    mem_close_at(&l->guard_fd);
    l->guard_fd = -1;
    l->guard_pid = 0;
    if (++l->n_guards_lost >= GUARDS_LOST_MAX) {
        l->guard_pid = -1;
        log_warning("the guard was killed %d times: going on without; kill -9 "
                    "of agent would leave what its workers started",
                    GUARDS_LOST_MAX);
        return;
    }
    loop_guard_open(l);
    tell_guard(l);
}

/* Remove what dead agents left; whether agents of other jobs are alive. */
static bool look_for_others(const struct loop *l)
{
    return scratch_sweep(&l->folder, SHM_DIR, SCRATCH_AGE_S);
}

/* Of the linker: the first byte of the program, and the one behind its code. */
extern char __executable_start[], etext[];

/* The start is over, and most of its code is not needed any more: while the
 * workers run agent is to be small. The pages stay in the kernel's cache, and
 * are mapped again where they are used. */
static void let_go_of_code(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)__executable_start + page - 1) & ~(page - 1);
    uintptr_t to = (uintptr_t)etext & ~(page - 1);

    if (to > from)
        (void)madvise((void *)from, to - from, MADV_DONTNEED);
}

/* What a job that is over at once does without. */
static void on_settled(uv_timer_t *t)
{
    struct loop *l = t->data;
    bool first = l->folder.lock_fd < 0;

    loop_asks_open(l);
    scratch_lock(&l->folder);
    if (first)
        (void)look_for_others(l);
    loop_note_machine(l);
    if (first)
        let_go_of_code();
}

/* A fork takes as long as all the rest of a start: where a lone worker is over
 * at once it is not waited for. Nothing that it starts is there so soon. */
static void on_guard_time(uv_timer_t *t)
{
    struct loop *l = t->data;

    loop_guard_open(l);
    tell_guard(l);
}

void loop_settle(struct loop *l)
{
    tell_guard(l);
    if (loop_uv_open(l) != 0)
        return;
    uv_update_time(&l->uv);
    if (l->guard_pid == 0 && !l->is_init)
        (void)uv_timer_start(&l->guard_timer, on_guard_time, GUARD_AFTER_MS,
                             0);
    (void)uv_timer_start(&l->settle_timer, on_settled, SETTLED_AFTER_MS, 0);
}

/* --- shared memory --- */

void loop_shm_begin(struct loop *l)
{
    if (l->shm.taken)
        return;
    scratch_make(&l->folder);
    if (strncmp(l->folder.path, SHM_DIR "/", sizeof SHM_DIR) == 0)
        shm_begin(&l->shm, SHM_DIR, l->folder.path, false);
}

static void act_tidy(void *ctx)
{
    struct loop *l = ctx;
    struct shm_swept s;

    if (!l->shm.taken)
        return;
    shm_sweep(&l->shm, SHM_DIR, look_for_others(l) || shm_is_of_host(), &s);
    if (s.n > 0)
        log_info("removed what dead workers left in " SHM_DIR ": %u file%s, "
                 "%llu KiB (%s%s)", s.n, text_plural(s.n),
                 (unsigned long long)(s.bytes / 1024), s.name,
                 s.n == 1 ? "" : ", ...");
}

void loop_tidy_actions(struct pod_out *out)
{
    out->tidy = act_tidy;
}
