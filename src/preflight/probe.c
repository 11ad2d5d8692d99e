/* probe: what agent-probe says of GPUs, NCCL and RDMA, and what follows from
 * it. docs/probe.md has its keys. */
#include "preflight/ask.h"
#include "preflight/net_rules.h"

#include "base/mem.h"
#include "base/text.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define USED_BYTES (1024 * MIB) /* Of a GPU's memory, before any worker. */
#define NCCL_OLDEST 21800
#define WORD(s) (char *)(uintptr_t)(s)

static const char *word_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "?";
}

static long long number_of(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static bool is_true(const json_t *o, const char *key)
{
    return json_is_true(json_object_get(o, key));
}

static bool is_asked(const struct preflight_sink *s)
{
    return s->job->asked >> s->check & 1;
}

static void say(const struct preflight_sink *s, enum preflight_level level,
                const char *why, const char *fix, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
static void say(const struct preflight_sink *s, enum preflight_level level,
                const char *why, const char *fix, const char *fmt, ...)
{
    struct preflight_finding f = finding_new(level);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(f.what, sizeof f.what, fmt, ap);
    va_end(ap);
    FINDING_SET(f.why, "%s", why);
    FINDING_SET(f.fix, "%s", fix);
    finding_add(s, &f);
}

/* The part of this check, or NULL: it is said why. */
static json_t *ask(const struct preflight_sink *s)
{
    const char *word = preflight_row(s->check)->word;
    char path[PATH_MAX];
    char *argv[] = {path, WORD("--only"), WORD(word), WORD("--timeout"),
                    WORD("40"), NULL};
    autofree char *buf = malloc(ASK_MAX);
    json_t *all, *part;
    int code;

    if (!buf || !ask_find(s, path, sizeof path))
        return NULL;
    finding_step(s, "running agent-probe --only %s", word);
    code = ask_run(argv, NULL, buf, ASK_MAX);
    all = code == 0 ? json_loads(buf, JSON_REJECT_DUPLICATES, NULL) : NULL;
    part = json_object_get(all, word);
    if (code < 0) {
        say(s, PREFLIGHT_RETRY, "workers would not start, either", "raise the "
            "limits of open files and processes (ulimit -n, ulimit -u, "
            "pids.max)", "agent-probe cannot be started: %s", strerror(-code));
    } else if (!json_is_object(part)) {
        say(s, PREFLIGHT_RETRY, "nothing is known of this part of the machine",
            "run agent-probe by hand in this pod", "agent-probe --only %s "
            "ended with %d%s", word, code,
            code == 0 ? " and no answer that can be read" : "");
        part = NULL;
    }
    json_incref(part);
    json_decref(all);
    return part;
}

/* What is there and does not work. One that hangs may do so on this node alone,
 * and only now. */
static void say_broken(const struct preflight_sink *s, const json_t *part,
                       const char *what, const char *gpu_why,
                       const char *gpu_fix)
{
    bool hangs = is_true(part, "hangs"), is_gpu = s->check == PREFLIGHT_GPU;
    const char *fix = "LD_LIBRARY_PATH and LD_PRELOAD decide which library is "
                      "taken (LD_DEBUG=libs agent-probe shows it): take "
                      "another one, or remove it";

    if (hangs)
        fix = "try another node, and drain this one: dmesg and nvidia-smi tell "
              "more there";
    else if (is_gpu)
        fix = gpu_fix;
    say(s, !is_asked(s) && !is_gpu ? PREFLIGHT_WARN
           : hangs                 ? PREFLIGHT_RETRY
                                   : PREFLIGHT_FATAL,
        is_gpu ? gpu_why : "workers that load it would fail alike", fix,
        "%s: %.200s", what, word_of(part, "why"));
}

/* False: there is none, and that is said. */
static bool is_found(const struct preflight_sink *s, const json_t *part,
                     const char *what, const char *why, const char *fix)
{
    const char *said = word_of(part, "why");
    char none[256];

    if (is_true(part, "found"))
        return true;
    if (strncmp(said, "no ", 3) == 0)
        FINDING_SET(none, "%.200s", said);
    else
        FINDING_SET(none, "no %s: %.200s", what, said);
    if (is_true(part, "fault"))
        say_broken(s, part, what, why, fix);
    else if (is_asked(s))
        say(s, PREFLIGHT_FATAL, why, fix, "%s", none);
    else
        finding_pass(s, "%s", none);
    return false;
}

static void check_one_gpu(const struct preflight_sink *s, const json_t *gpu)
{
    const char *name = word_of(gpu, "name");
    long long i = number_of(gpu, "index");
    long long ecc = number_of(gpu, "ecc_uncorrected");
    long long links = number_of(gpu, "nvlinks");
    long long active = number_of(gpu, "nvlinks_active");
    long long used = number_of(gpu, "memory_used_bytes");

    if (ecc > 0)
        say(s, PREFLIGHT_WARN, "its memory has failed before: wrong numbers, "
            "or the job dies of it", "drain the node and reset or replace the "
            "GPU (nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER)",
            "GPU %lld (%.80s) has had %lld uncorrected memory error%s "
            "since boot", i, name, ecc, text_plural((uint64_t)ecc));
    if (active < links)
        say(s, PREFLIGHT_WARN, "collectives are as slow as the slowest link",
            "drain the node; nvidia-smi nvlink --status; on HGX machines look "
            "at nvidia-fabricmanager", "GPU %lld (%.80s): %lld of %lld NVLinks "
            "are active", i, name, active, links);
    if (used > (long long)USED_BYTES)
        say(s, PREFLIGHT_WARN, "somebody else computes there, or a process of "
            "an earlier job was left: \"CUDA out of memory\"", "nvidia-smi on "
            "the node names it; end it, or take another node", "GPU %lld "
            "(%.80s) has %lld MiB in use, and no worker runs yet", i, name,
            used / (long long)MIB);
}

/* The workers were counted by names of devices; the driver has what works. A
 * process sees one MIG device at most, whatever is named: with one for each
 * worker that says nothing. */
static void check_number(const struct preflight_sink *s, const json_t *gpus)
{
    const char *visible = check_variable(s->job, "CUDA_VISIBLE_DEVICES");
    size_t n = json_array_size(gpus);
    size_t most = n * (s->job->procs_per_gpu ? s->job->procs_per_gpu : 1);

    if (!s->job->nproc_by_gpus || s->job->nproc <= most ||
        (s->job->binds_gpus && visible && strncmp(visible, "MIG-", 4) == 0))
        return;
    say(s, PREFLIGHT_FATAL, "the workers of higher local ranks would fail "
        "with \"invalid device ordinal\"", "--nproc of at most the GPUs, or "
        "ask for more of them; where the driver lost one, dmesg has \"Xid\": "
        "drain the node", "%u worker%s, and the driver has %zu GPU%s",
        s->job->nproc, text_plural(s->job->nproc), n, text_plural(n));
}

void check_gpu(const struct preflight_sink *s)
{
    json_t *part = ask(s), *gpus, *gpu;
    size_t i, n;

    if (!part)
        return;
    gpus = json_object_get(part, "gpus");
    n = json_array_size(gpus);
    if (is_found(s, part, "GPU", "the workers would fail at their first CUDA "
                 "call", "Kubernetes: resources.limits nvidia.com/gpu, the "
                 "device plug-in and the nvidia runtime class; docker: --gpus "
                 "all; then nvidia-smi on the node")) {
        json_array_foreach(gpus, i, gpu)
            check_one_gpu(s, gpu);
        check_number(s, gpus);
        finding_pass(s, "%zu GPU%s (%.80s), driver %.40s, CUDA %.20s", n,
                     text_plural(n),
                     word_of(json_array_get(gpus, 0), "name"),
                     word_of(part, "driver"), word_of(part, "driver_cuda"));
    }
    json_decref(part);
}

/* NCCL does not use what NCCL_IB_HCA leaves out; port 0: any of it. */
static bool is_used(const struct preflight_sink *s, const char *device,
                    long long port)
{
    const char *spec = check_variable(s->job, "NCCL_IB_HCA");

    return !check_rdma_is_off(s->job) &&
           (!spec || net_hca_matches(spec, device, (unsigned)port));
}

static void check_port(const struct preflight_sink *s, const char *device,
                       const json_t *port)
{
    long long n = number_of(port, "port");
    char fix[256];

    if (!is_used(s, device, n) ||
        strcmp(word_of(port, "state"), "active") == 0)
        return;
    FINDING_SET(fix, "look at the cable, the switch and the subnet manager "
                "(ibstat on the node); NCCL_IB_HCA=^=%.60s:%lld, or a list "
                "without it, leaves it out", device, n);
    say(s, PREFLIGHT_RETRY, "NCCL leaves the port out and uses fewer, or TCP",
        fix, "port %lld of %.60s is %.40s", n, device, word_of(port, "state"));
}

static void check_device(const struct preflight_sink *s, const json_t *device)
{
    const char *name = word_of(device, "name");
    const json_t *reg = json_object_get(device, "register"), *port;
    size_t i;

    json_array_foreach(json_object_get(device, "ports"), i, port)
        check_port(s, name, port);
    if (is_used(s, name, 0) && json_is_object(reg) && !is_true(reg, "ok"))
        say(s, PREFLIGHT_FATAL, "NCCL would fail with \"unhandled system "
            "error\"", "Kubernetes: capabilities.add IPC_LOCK with root, or "
            "LimitMEMLOCK=infinity in the runtime's unit; docker and podman: "
            "--ulimit memlock=-1:-1", "%.60s: 64 MiB cannot be registered: "
            "%.160s", name, word_of(reg, "why"));
}

/* Sysfs tells a container of all the machine's devices, also of those that it
 * was not given. */
static void check_closed(const struct preflight_sink *s, const json_t *list)
{
    const json_t *device, *first = NULL;
    size_t i, n = 0, used = 0;

    json_array_foreach(list, i, device) {
        if (!is_used(s, word_of(device, "name"), 0))
            continue;
        used++;
        if (json_object_get(device, "ports"))
            continue;
        first = first ? first : device;
        n++;
    }
    if (n == 0)
        return;
    say(s, is_asked(s) && n == used ? PREFLIGHT_FATAL : PREFLIGHT_WARN,
        n == used ? "NCCL would go over TCP: many times slower"
                  : "NCCL leaves them out and uses fewer",
        "Kubernetes: ask for the RDMA device plug-in's resource; docker: "
        "--device /dev/infiniband, and look at the user that the container "
        "runs as", "%zu of %zu RDMA device%s cannot be opened; %.60s: %.120s",
        n, used, text_plural(used), word_of(first, "name"),
        word_of(first, "why"));
}

/* Nobody who asks for the check by name wants that. */
static void check_off(const struct preflight_sink *s)
{
    if (is_asked(s) && check_rdma_is_off(s->job))
        say(s, PREFLIGHT_WARN, "NCCL goes over TCP: many times slower", "take "
            "NCCL_IB_DISABLE out of the environment", "NCCL_IB_DISABLE=%.20s "
            "keeps NCCL from all RDMA devices",
            check_variable(s->job, "NCCL_IB_DISABLE"));
}

void check_rdma(const struct preflight_sink *s)
{
    json_t *part = ask(s), *list, *device;
    size_t i;

    if (!part)
        return;
    list = json_object_get(part, "devices");
    if (is_found(s, part, "RDMA device", "NCCL would go over TCP: many times "
                 "slower", "Kubernetes: ask for the RDMA device plug-in's "
                 "resource; docker: --device /dev/infiniband; install "
                 "libibverbs and its providers in the image")) {
        json_array_foreach(list, i, device)
            check_device(s, device);
        check_closed(s, list);
        check_off(s);
        finding_pass(s, "%zu RDMA device%s", json_array_size(list),
                     text_plural(json_array_size(list)));
    }
    json_decref(part);
}

static void check_wheel(const struct preflight_sink *s, const json_t *part)
{
    const json_t *wheel = json_object_get(part, "wheel");

    if (is_true(wheel, "fault"))
        say(s, PREFLIGHT_WARN, "PyTorch takes pip's: it would fail at its "
            "import, or at the first collective", "install it anew (pip "
            "install --force-reinstall nvidia-nccl-cu12 or -cu13)",
            "pip's NCCL: %.200s", word_of(wheel, "why"));
    else if (json_is_object(wheel) &&
             number_of(wheel, "code") != number_of(part, "code"))
        say(s, PREFLIGHT_WARN, "PyTorch takes pip's and C programs the "
            "other; ranks of two versions do not find each other",
            "remove one, or LD_PRELOAD the other for all",
            "two NCCLs: %.40s (%.100s) and pip's %.40s",
            word_of(part, "version"), word_of(part, "library"),
            word_of(wheel, "version"));
}

/* NCCL itself says so with NCCL_DEBUG=INFO alone. */
static void check_plugins(const struct preflight_sink *s, const json_t *part)
{
    const json_t *plugin;
    size_t i;

    json_array_foreach(json_object_get(part, "plugins"), i, plugin) {
        const char *name = word_of(plugin, "name");
        const char *variable = word_of(plugin, "variable");

        if (is_true(plugin, "found") ||
            (strchr(name, '/') && access(name, R_OK) != 0 &&
             s->job->checks & PREFLIGHT_BIT(ENV)))
            continue; /* That check has said it. */
        say(s, PREFLIGHT_WARN, check_plugin_why(variable), "put its folder "
            "into LD_LIBRARY_PATH, with what it needs (LD_DEBUG=libs "
            "agent-probe shows where it is looked for), or leave the variable "
            "out", "%.40s=%.80s: %.160s", variable, name,
            word_of(plugin, "why"));
    }
}

void check_nccl(const struct preflight_sink *s)
{
    json_t *part = ask(s);
    long long code;

    if (!part)
        return;
    code = number_of(part, "code");
    if (is_found(s, part, "NCCL", "PyTorch's builds for CUDA bring it along; "
                 "C programs need it in the image", "install libnccl2, or "
                 "pip's nvidia-nccl-cu12 or -cu13")) {
        if (code > 0 && code < NCCL_OLDEST)
            say(s, PREFLIGHT_WARN, "before 2.18 a failed rank is not noticed "
                "by the others, and errors have no text", "install NCCL 2.18 "
                "or newer", "NCCL %.40s is old (%.160s)",
                word_of(part, "version"), word_of(part, "library"));
        check_wheel(s, part);
        finding_pass(s, "NCCL %.40s (%.200s)", word_of(part, "version"),
                     word_of(part, "library"));
    }
    check_plugins(s, part);
    json_decref(part);
}
