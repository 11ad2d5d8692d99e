/* ddp.h: collectives for data-parallel programs in C, C++ and, through a
 * foreign-function interface, other languages. Link with -lddp (ddp.pc).
 *
 * Each process of a job is a rank. A launcher that sets the environment of
 * torchrun (agent, torchrun, or a shell loop) is all that is needed:
 *
 *     struct ddp_comm *comm = NULL;
 *     struct ddp_error err;
 *
 *     if (ddp_init(&comm, NULL, &err) ||
 *         ddp_all_reduce(comm, grad, grad, n, DDP_F32, DDP_AVG, NULL, &err))
 *         fprintf(stderr, "%s\n", err.text);
 *     ddp_free(comm);
 *
 * ENVIRONMENT, the contract of torchrun (pytorch's "Environment Variables"
 * page of torch.distributed.run), read by ddp_init only:
 *   RANK, WORLD_SIZE   this rank, 0 to WORLD_SIZE - 1; neither: 1 process
 *   LOCAL_RANK, LOCAL_WORLD_SIZE   the same within this machine or pod
 *   MASTER_ADDR        name or address of rank 0's machine; it may start to
 *                      resolve late
 *   MASTER_PORT        TCP port on which rank 0 gathers the others, for the
 *                      time of ddp_init. Where TORCHELASTIC_USE_AGENT_STORE
 *                      is "True" (torchrun itself holds that port) the first
 *                      free one of MASTER_PORT + 1 to MASTER_PORT + 8 is used
 *   TORCHELASTIC_RUN_ID            names the job: ranks of another are refused
 *   TORCHELASTIC_RESTART_COUNT     the attempt: ranks left over from another
 *                      one are refused. Not compared under torchrun (agent
 *                      store "True"), whose nodes count differently
 * Where RANK and WORLD_SIZE are not set, the names of other launchers are
 * read: of mpirun (Open MPI) OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK,
 * _LOCAL_SIZE and PMIX_NAMESPACE; of srun (Slurm) SLURM_PROCID, SLURM_LOCALID,
 * SLURM_NODEID, SLURM_STEP_NUM_TASKS, SLURM_STEP_TASKS_PER_NODE,
 * SLURM_STEP_NODELIST, SLURM_JOB_ID and SLURM_STEP_ID. There MASTER_ADDR is
 * needed only where mpirun starts ranks on several machines, and without
 * MASTER_PORT a port that follows from the job's name is taken.
 * And those of libddp's own:
 *   DDP_TIMEOUT        deadline of each call: 500ms, 30s, 5m, 2h; a bare
 *                      number is seconds; default 60s
 *   DDP_BOOTSTRAP_PORT the port to gather on, in place of MASTER_PORT; needed
 *                      where the program itself listens on MASTER_PORT
 *   DDP_TRANSPORT      auto (the default) or tcp: no shared memory at all
 *   DDP_SOCKETS        1 (the default) to 16 TCP connections that share the
 *                      elements between two neighbours in the ring; that of
 *                      rank 0 counts for all
 * After ddp_init, ranks talk over TCP connections that form a ring and, for
 * small calls, a hypercube, on free ports of the addresses by which they reach
 * rank 0, IPv4 or IPv6. Nothing is encrypted: keep the job on a network of its
 * own. Where all ranks are on one machine, of one user and in one network and
 * PID namespace, data goes through memory that they share (a memfd of some
 * MiB; /dev/shm is not used), and the connections only tell who died. Where
 * they are on several, equally many and at least two on each, all_reduce and
 * barrier go through such memory on each machine, and over TCP between ranks
 * that are the same number of theirs. Where either is not possible for one of
 * the ranks, all use TCP.
 *
 * CALLS. A collective (all_reduce, broadcast, ...) is made by all ranks, in
 * the same order and with the same count, type, op and root; differences are
 * found and are DDP_EMISMATCH on the ranks concerned. Buffers are the
 * caller's, in host memory, aligned for their type; they are not kept after
 * the call. Counts are elements, not bytes, and 0 is legal. `stream` is for
 * device memory; with host memory it is NULL.
 *
 * DEVICE MEMORY. Where both buffers are CUDA device memory of the current
 * device, the call goes through NCCL 2.18 or later (libnccl.so.2, opened at
 * the first such call, which all ranks make; LD_PRELOAD of another one goes
 * first), on `stream`: a cudaStream_t, NULL for the default stream. It returns
 * when all that was on the stream before it and the call itself are done, so
 * that its errors are its own (ddp_queued lets it return before that); the
 * deadline counts from the call. NULL needs a
 * program that has loaded the shared libcudart before ddp_init; one that is
 * linked with the static one gives a stream. Ranks that differ in a call are
 * not found there, but end with the deadline; nor are sums bit for bit the
 * same in another world size. NCCL's own variables (NCCL_DEBUG ...) count.
 *
 * RESULTS. Every call that can fail returns 0, or a negative enum ddp_code
 * and fills *err. `err` may be NULL. Success leaves *err alone. NULL for what
 * must not be NULL is DDP_EINVAL.
 *
 * ERRORS. A rank that died, left, or is silent until the deadline is an error
 * on every other rank, never a hang, and the text names it: of several, the
 * one that was lost first, where that can be known (docs/ddp.md says when).
 * Leave with ddp_free, for exit() without it is a death. DDP_EINVAL and
 * DDP_ENOTSUP are found before anything is sent and change nothing. Any other
 * error breaks the communicator on all ranks: buffers of that call have
 * undefined contents, and each later call fails at once with the first error.
 * All that is left is ddp_free and to start the job again.
 *
 * THREADS. Different communicators are independent. One communicator is for
 * one thread at a time (a second one gets DDP_EINVAL); only ddp_abort may be
 * called while another thread is inside a call. A child after fork must not
 * use its parent's communicator. No signal handler is installed, SIGPIPE is
 * never raised, and no thread is left running between calls (a look-up of
 * MASTER_ADDR that outlives the deadline may end a little later; a reducer has
 * a thread of its own, which takes no signals).
 *
 * VERSIONS. Numbers in this file never change their meaning under the same
 * soname (libddp.so.1); additions keep old programs working. */
#ifndef DDP_H
#define DDP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DDP_API __attribute__((visibility("default")))
#else
#define DDP_API
#endif

enum ddp_code {
    DDP_OK = 0,
    DDP_EINVAL = -1,    /* A bad argument, option or environment variable. */
    DDP_ENOTSUP = -2,   /* Legal, but not built into this libddp. */
    DDP_ENOMEM = -3,    /* Out of memory. */
    DDP_ESYSTEM = -4,   /* A system call failed: port in use, no route, ... */
    DDP_ETIMEDOUT = -5, /* The deadline passed. */
    DDP_EPEER = -6,     /* Another rank died, left or failed. */
    DDP_EMISMATCH = -7, /* Ranks disagree: world size, call, count, ... */
    DDP_EABORTED = -8,  /* ddp_abort was called, here or on another rank. */
    DDP_EUNUSED = -9    /* A reducer's parameter was not ready, here or on
                         * another rank: the text has its index. */
};

/* Element types; numbered as NCCL's ncclDataType_t. */
enum ddp_type {
    DDP_I8 = 0,
    DDP_U8 = 1,
    DDP_I32 = 2,
    DDP_U32 = 3,
    DDP_I64 = 4,
    DDP_U64 = 5,
    DDP_F16 = 6,
    DDP_F32 = 7,
    DDP_F64 = 8,
    DDP_BF16 = 9
};

/* Reductions; numbered as NCCL's ncclRedOp_t. The result is bit for bit the
 * same on all ranks; the order of additions depends on the world size, the
 * count and on which ranks share a machine, and on nothing else. Integer sums
 * and products wrap. AVG is the sum divided by the world size, for integers
 * rounded toward zero. MIN and MAX of floats give NaN where one rank has NaN.
 * F16 and BF16 are combined as floats and rounded to the nearest. */
enum ddp_op {
    DDP_SUM = 0,
    DDP_PROD = 1,
    DDP_MAX = 2,
    DDP_MIN = 3,
    DDP_AVG = 4
};

/* What went wrong. The caller's, need not be initialised, nothing to free.
 * Later versions may use the reserved words; the size stays 512 bytes. */
struct ddp_error {
    int code;        /* enum ddp_code. */
    int rank;        /* This process's rank, or -1 where not known yet. */
    int peer;        /* The rank to blame, or -1 where there is none. */
    int reserved[5]; /* 0. */
    char text[480];  /* One line of UTF-8 without newline: show it. */
};

/* All may stay 0, which means: as the environment says. Set `size` to
 * sizeof(struct ddp_options); later versions add fields at the end. */
struct ddp_options {
    size_t size;
    uint64_t timeout_ms;     /* Deadline of each call, ddp_init included. */
    int world_size, rank;    /* Used together: rank counts if world_size > 0. */
    int local_world_size, local_rank; /* Likewise. */
    const char *master_addr; /* Strings are borrowed until ddp_init returns. */
    int master_port;
    int bootstrap_port;      /* As DDP_BOOTSTRAP_PORT. */
    const char *job_id;      /* As TORCHELASTIC_RUN_ID. */
};

struct ddp_comm; /* A communicator: the ranks of one job. */

/* Join the job, and return when all ranks have; blocks until the deadline.
 * *ret is set on success only; end it with ddp_free. `opt` may be NULL. A
 * process may make several communicators, one after the other. */
DDP_API int ddp_init(struct ddp_comm **ret, const struct ddp_options *opt,
                     struct ddp_error *err);

/* 0 to ddp_size() - 1; the number of ranks; the rank within the machine. NULL:
 * DDP_EINVAL, which is negative. */
DDP_API int ddp_rank(const struct ddp_comm *c);
DDP_API int ddp_size(const struct ddp_comm *c);
DDP_API int ddp_local_rank(const struct ddp_comm *c);

/* recv[i] on every rank = op over all ranks' send[i], i < count. `send` and
 * `recv` are the same buffer or do not overlap. */
DDP_API int ddp_all_reduce(struct ddp_comm *c, const void *send, void *recv,
                           size_t count, enum ddp_type type, enum ddp_op op,
                           void *stream, struct ddp_error *err);

/* `count` elements of rank `root` are copied to all ranks' `buf`. */
DDP_API int ddp_broadcast(struct ddp_comm *c, void *buf, size_t count,
                          enum ddp_type type, int root, void *stream,
                          struct ddp_error *err);

/* `send` holds ddp_size() * recv_count elements; rank r gets the reduction of
 * elements r * recv_count and on. `recv` may be that very place in `send`
 * (then the rest of `send` stays as it is), else they do not overlap. */
DDP_API int ddp_reduce_scatter(struct ddp_comm *c, const void *send,
                               void *recv, size_t recv_count,
                               enum ddp_type type, enum ddp_op op,
                               void *stream, struct ddp_error *err);

/* `recv` gets ddp_size() * send_count elements, those of rank r from element
 * r * send_count on. `send` may be this rank's place in `recv`, else they do
 * not overlap. */
DDP_API int ddp_all_gather(struct ddp_comm *c, const void *send, void *recv,
                           size_t send_count, enum ddp_type type,
                           void *stream, struct ddp_error *err);

/* Returns when all ranks have called it. */
DDP_API int ddp_barrier(struct ddp_comm *c, struct ddp_error *err);

/* on = 1: from now on calls of device memory return once they are on their
 * stream, so that the next one is put there meanwhile; what comes later on the
 * stream sees their results. An error of theirs, and the deadline, is found by
 * ddp_wait (or by a later call): so call that before the host waits for the
 * stream itself, which would else wait for a rank that has died, and before
 * ddp_free. Up to 64 are queued, then the call waits for the oldest one.
 * 0: calls wait again. Waits itself for what is queued. Calls of host memory
 * are as ever. A reducer queues its buckets by itself. */
DDP_API int ddp_queued(struct ddp_comm *c, int on, struct ddp_error *err);

/* Wait for all calls that are queued, within one deadline. */
DDP_API int ddp_wait(struct ddp_comm *c, struct ddp_error *err);

/* Make the call that another thread is in, and each later call, fail with
 * DDP_EABORTED; the other ranks' calls fail too. From any thread or signal
 * handler, but not while or after ddp_free. NULL: DDP_EINVAL. */
DDP_API int ddp_abort(struct ddp_comm *c);

/* Leave the job and release everything. NULL is ignored. Ranks that still
 * expect calls from this one get DDP_EPEER. */
DDP_API void ddp_free(struct ddp_comm *c);

/* --- A reducer: gradients averaged while the backward pass goes on --------
 *
 * For each step, in the backward pass, call ddp_reducer_ready for each
 * parameter as soon as its gradient is final, in any order; then
 * ddp_reducer_wait, after which all gradients are the averages over the
 * ranks, bit for bit the same on all. A thread of the reducer's own reduces
 * them in buckets meanwhile, from the last parameter to the first.
 *
 * From a step's first ddp_reducer_ready until ddp_reducer_wait has returned
 * the communicator is the reducer's (other calls get DDP_EINVAL or break it),
 * gradients that are ready are not to be touched, and all ranks use the same
 * reducer. One thread at a time calls a reducer; ddp_abort may be called.
 *
 * Gradients may be in device memory, all of them. Then a gradient is final
 * with what is on options.stream when ddp_reducer_ready is called (nothing
 * waits for that on the host), they are reduced by NCCL on a stream of the
 * reducer's own, and what is put on options.stream after ddp_reducer_wait has
 * returned sees the averages. `wire` is for host memory. */
struct ddp_reducer;

struct ddp_param {
    void *grad;         /* `count` elements; the same place in each step. */
    size_t count;
    enum ddp_type type; /* DDP_F16, DDP_BF16, DDP_F32, DDP_F64. */
    int reserved;       /* 0. */
};

/* All may stay 0. Set `size` to sizeof(struct ddp_reducer_options). */
struct ddp_reducer_options {
    size_t size;
    double bucket_mib;       /* A bucket is closed from here on; 0: 25. */
    double first_bucket_mib; /* The first one, small so that the ranks start
                              * early; 0: 1, at most bucket_mib. */
    enum ddp_type wire;      /* DDP_F16 or DDP_BF16: gradients of DDP_F32
                              * travel as these; 0: as they are. */
    int sum;                 /* 1: sums, not averages. */
    void *stream;            /* Of gradients in device memory: where they are
                              * made; NULL: the default stream. */
};

/* Made by all ranks, for gradients that agree in number, counts and types
 * (else DDP_EMISMATCH). `params` is copied; n may be 0. *ret is set on success
 * only; end it with ddp_reducer_free, before ddp_free. */
DDP_API int ddp_reducer_new(struct ddp_reducer **ret, struct ddp_comm *c,
                            const struct ddp_param *params, size_t n,
                            const struct ddp_reducer_options *opt,
                            struct ddp_error *err);

/* The gradient of `param` is final. Returns at once. */
DDP_API int ddp_reducer_ready(struct ddp_reducer *r, size_t param,
                              struct ddp_error *err);

/* Wait for the averages. A parameter that was not ready is DDP_EUNUSED, on
 * all ranks; one that the step does not use needs a gradient of zeros. */
DDP_API int ddp_reducer_wait(struct ddp_reducer *r, struct ddp_error *err);

/* on = 1: from now on ddp_reducer_ready and ddp_reducer_wait send nothing, so
 * that gradients add up here over several steps; 0: they do again. Between
 * two steps only. */
DDP_API int ddp_reducer_no_sync(struct ddp_reducer *r, int on,
                                struct ddp_error *err);

/* NULL is ignored. In the midst of a step it aborts the communicator. */
DDP_API void ddp_reducer_free(struct ddp_reducer *r);

#ifdef __cplusplus
}
#endif

#endif
