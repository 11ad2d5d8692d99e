/* table: see table.h. */
#include "allreduce/table.h"

#include <inttypes.h>

double table_algbw(uint64_t bytes, double time_us)
{
    return time_us > 0 ? (double)bytes / time_us / 1e3 : 0;
}

double table_busbw(uint64_t bytes, double time_us, int size)
{
    return table_algbw(bytes, time_us) * 2 * (size - 1) / size;
}

static void begin_json(const struct table *t)
{
    const struct opts *o = t->opts;

    fprintf(t->out, "{\"version\": \"%s\", \"ranks\": %d, \"min_bytes\": "
            "%" PRIu64 ", \"max_bytes\": %" PRIu64 ", \"iters\": %u, "
            "\"warmup\": %u, \"check\": %u, \"results\": [", AGENT_VERSION,
            t->size, o->min_bytes, o->max_bytes, o->iters, o->warmup,
            o->check);
}

static void begin_text(const struct table *t, const struct table_rank *ranks)
{
    const struct opts *o = t->opts;

    fprintf(t->out, "# nRanks %d minBytes %" PRIu64 " maxBytes %" PRIu64
            " step: %" PRIu64 "(%s) warmup iters: %u iters: %u validation: "
            "%u\n#\n# Using ranks\n", t->size, o->min_bytes, o->max_bytes,
            o->factor > 1 ? o->factor : o->step_bytes,
            o->factor > 1 ? "factor" : "bytes", o->warmup, o->iters, o->check);
    for (int i = 0; i < t->size; i++)
        fprintf(t->out, "#  Rank %2d Pid %6" PRId64 " on %10.*s host memory\n",
                i, ranks[i].pid, TABLE_HOST_MAX, ranks[i].host);
    fprintf(t->out, "#\n# %10s  %12s  %8s  %6s  %6s  %23s  %6s  %23s\n", "",
            "", "", "", "", "out-of-place", "", "in-place");
    fprintf(t->out, "# %10s  %12s  %8s  %6s  %6s", "size", "count", "type",
            "redop", "root");
    for (int i = 0; i < 2; i++)
        fprintf(t->out, "  %7s  %6s  %6s %6s", "time", "algbw", "busbw",
                "#wrong");
    fprintf(t->out, "\n# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "",
            "", "");
    for (int i = 0; i < 2; i++)
        fprintf(t->out, "  %7s  %6s  %6s %6s", "(us)", "(GB/s)", "(GB/s)", "");
    fputc('\n', t->out);
}

void table_begin(struct table *t, const struct table_rank *ranks)
{
    if (!t->out)
        return;
    if (t->opts->json)
        begin_json(t);
    else
        begin_text(t, ranks);
}

static void cell_json(const struct table *t, const struct table_line *l,
                      const char *name, const struct table_cell *c)
{
    fprintf(t->out, ", \"%s\": {\"time_us\": %.3f, \"algbw\": %.4f, "
            "\"busbw\": %.4f, \"wrong\": ", name, c->time_us,
            table_algbw(l->bytes, c->time_us),
            table_busbw(l->bytes, c->time_us, t->size));
    if (t->opts->check)
        fprintf(t->out, "%" PRIu64 "}", c->n_wrong);
    else
        fputs("null}", t->out);
}

static void line_json(const struct table *t, const struct table_line *l)
{
    fprintf(t->out, "%s\n{\"bytes\": %" PRIu64 ", \"count\": %" PRIu64
            ", \"type\": \"%s\", \"op\": \"%s\"", t->n_lines ? "," : "",
            l->bytes, l->count, l->type->name, l->op->name);
    cell_json(t, l, "out_of_place", &l->out_of_place);
    cell_json(t, l, "in_place", &l->in_place);
    fputc('}', t->out);
}

static void cell_text(const struct table *t, const struct table_line *l,
                      const struct table_cell *c)
{
    int digits = c->time_us < 9999.995 ? 2 : c->time_us < 99999.95 ? 1 : 0;

    fprintf(t->out, "  %7.*f  %6.2f  %6.2f", digits, c->time_us,
            table_algbw(l->bytes, c->time_us),
            table_busbw(l->bytes, c->time_us, t->size));
    if (t->opts->check)
        fprintf(t->out, " %6" PRIu64, c->n_wrong);
    else
        fprintf(t->out, " %6s", "N/A");
}

void table_add(struct table *t, const struct table_line *l)
{
    if (t->out && t->opts->json) {
        line_json(t, l);
    } else if (t->out) {
        fprintf(t->out, "%12" PRIu64 "  %12" PRIu64 "  %8s  %6s  %6d",
                l->bytes, l->count, l->type->name, l->op->name, -1);
        cell_text(t, l, &l->out_of_place);
        cell_text(t, l, &l->in_place);
        fputc('\n', t->out);
    }
    t->n_lines++;
    t->sum_busbw += table_busbw(l->bytes, l->out_of_place.time_us, t->size) +
                    table_busbw(l->bytes, l->in_place.time_us, t->size);
    t->n_wrong += l->out_of_place.n_wrong + l->in_place.n_wrong;
}

static void end_json(const struct table *t, double busbw, bool ok)
{
    fputs("\n], \"wrong\": ", t->out);
    if (t->opts->check)
        fprintf(t->out, "%" PRIu64, t->n_wrong);
    else
        fputs("null", t->out);
    fprintf(t->out, ", \"avg_busbw\": %.4f, \"min_busbw\": ", busbw);
    if (t->opts->min_busbw > 0)
        fprintf(t->out, "%g", t->opts->min_busbw);
    else
        fputs("null", t->out);
    fprintf(t->out, ", \"ok\": %s}\n", ok ? "true" : "false");
}

bool table_end(struct table *t)
{
    double busbw = t->n_lines ? t->sum_busbw / t->n_lines / 2 : 0;
    bool is_slow = busbw < t->opts->min_busbw;
    bool ok = t->n_wrong == 0 && !is_slow;

    if (t->out && t->opts->json) {
        end_json(t, busbw, ok);
    } else if (t->out) {
        fprintf(t->out, "# Out of bounds values : %" PRIu64 " %s\n",
                t->n_wrong, t->n_wrong ? "FAILED" : "OK");
        fprintf(t->out, "# Avg bus bandwidth    : %g %s\n#\n", busbw,
                t->opts->min_busbw <= 0 ? "" : is_slow ? "FAILED" : "OK");
    }
    return ok;
}
