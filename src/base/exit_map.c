/* exit_map: see exit_map.h. */
#include "base/exit_map.h"

#include <stddef.h>
#include <string.h>

/* The n-th different word of the table. */
static const char *err_word(unsigned n)
{
    unsigned n_rows;
    const struct err_row *rows = err_rows(&n_rows);

    for (unsigned i = 0; i < n_rows; i++) {
        bool again = false;

        for (unsigned j = 0; j < i; j++)
            again = again || strcmp(rows[i].word, rows[j].word) == 0;
        if (!again && n-- == 0)
            return rows[i].word;
    }
    return NULL;
}

const char *exit_class_word(unsigned i)
{
    static const char *const own[] = {"ok", "worker", "stopped"};

    return i < EXIT_CLASS_OF_ERR ? own[i] : err_word(i - EXIT_CLASS_OF_ERR);
}

unsigned exit_class_of(int code)
{
    const struct err_row *row = err_row(code);
    const char *word;

    for (unsigned i = 0; row && (word = exit_class_word(i)) != NULL; i++)
        if (strcmp(word, row->word) == 0)
            return i;
    return EXIT_CLASS_WORKER;
}

int exit_map_code(const struct exit_map *m, unsigned i, int code)
{
    return m->code_plus_1[i] ? m->code_plus_1[i] - 1 : code;
}
