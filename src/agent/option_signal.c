/* option_signal: options whose value is a signal. */
#include "agent/option_table.h"

#include <signal.h>
#include <string.h>

int opt_read_signal(const char *s, size_t len)
{
    if (len > 3 && memcmp(s, "SIG", 3) == 0) {
        s += 3;
        len -= 3;
    }
    for (int n = 1; n < NSIG; n++) {
        const char *name = sigabbrev_np(n);

        if (name && strlen(name) == len && memcmp(name, s, len) == 0)
            return n;
    }
    return 0;
}

static int signal_read(const struct opt_value *v, struct options *o,
                       struct err *e)
{
    int signo = opt_read_signal(v->text, strlen(v->text));

    if (signo == 0 || signo == SIGSTOP || signo == SIGCONT)
        return opt_fault(v, e, "use the name of a signal that asks a program "
                         "where it is: USR1, USR2, QUIT, ABRT");
    *(int *)(void *)((char *)o + v->row->at) = signo;
    return 0;
}

static void signal_print(const struct opt_row *row, const struct options *o,
                         struct text *t)
{
    int signo = *(const int *)(const void *)((const char *)o + row->at);

    if (signo)
        text_add(t, "%s", sigabbrev_np(signo));
}

const struct opt_type opt_type_signal = {"signal", "SIG", NULL, false,
                                         signal_read, signal_print};
