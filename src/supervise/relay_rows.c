/* relay_rows: bars below one another, as tqdm's with a position are.
 *
 * A bar at position n writes n newlines, a carriage return, its state, and n
 * times "cursor up", so that the cursor stands in the first bar's row again.
 * From the first "cursor up" behind a bar's state on the rows are kept: each
 * has the text that was last written to it. A newline behind which a carriage
 * return or another newline follows leads to the next row. Any other byte
 * behind it, and the end, leave them: then those that were not shown in their
 * present state are lines, from the top.
 *
 * Others (rich) erase each row on their way up, and write them all anew, with
 * mere newlines between them: a newline leads to a row that was erased,
 * whatever follows.
 *
 * Bytes that went to a row count as hidden, until it is a line. */
#include "supervise/relay_parts.h"

#include "base/text.h"

#include <string.h>

#define DIGITS_MAX 4

bool relay_is_blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\033' && i + 1 < n && s[i + 1] == '[') {
            i += 2;
            while (i < n && (s[i] < '@' || s[i] > '~'))
                i++;
        } else if (s[i] != ' ' && s[i] != '\t') {
            return false;
        }
    }
    return true;
}

size_t relay_erase(const char *s, size_t n)
{
    size_t i = 0;

    while (n - i >= 3 && s[i] == '\033' && s[i + 1] == '[') {
        size_t digit = n - i > 3 && s[i + 2] >= '0' && s[i + 2] <= '2';

        if (s[i + 2 + digit] != 'K')
            break;
        i += 3 + digit;
    }
    return i;
}

int relay_up(const char *s, size_t n, unsigned *ret_rows)
{
    size_t i = 2;

    *ret_rows = 0;
    if (n >= 2 && s[1] != '[')
        return 0;
    for (; i < n && i < 2 + DIGITS_MAX && s[i] >= '0' && s[i] <= '9'; i++)
        *ret_rows = 10 * *ret_rows + (unsigned)(s[i] - '0');
    if (i >= n)
        return -1;
    *ret_rows += *ret_rows == 0;
    return s[i] == 'A' ? (int)i + 1 : 0;
}

static char *text_of(const struct relay *r, uint32_t row)
{
    return r->buf + RELAY_BUF_BYTES - (RELAY_ROWS - row) * RELAY_ROW_MAX;
}

/* `n` <= RELAY_ROW_MAX. What clears a row is not shown. One that is erased is
 * about to be written anew: the same text is no other state then. */
static void write_row(struct relay *r, const char *s, size_t n)
{
    struct relay_row *row = &r->rows[r->cursor];
    char *text = text_of(r, r->cursor);

    if (!relay_is_blank(s, n)) {
        size_t erase = relay_erase(s, n);

        s += erase;
        n -= erase;
        row->is_due |= row->len != n || memcmp(text, s, n) != 0;
        row->is_erased = false;
        row->len = (uint16_t)n;
        memcpy(text, s, n);
    } else if (memchr(s, 'K', n)) {
        row->is_erased = true;
    } else {
        *row = (struct relay_row){0};
    }
}

/* Rows `from` and below it move down by `n`, or up by -n; what has no place any
 * more is gone. */
static void shift_rows(struct relay *r, int n)
{
    uint32_t by = (uint32_t)(n < 0 ? -n : n), left = RELAY_ROWS - by;
    uint32_t from = n < 0 ? by : 0, to = n < 0 ? 0 : by;

    memmove(text_of(r, to), text_of(r, from), left * RELAY_ROW_MAX);
    memmove(r->rows + to, r->rows + from, left * sizeof *r->rows);
    memset(r->rows + (n < 0 ? left : 0), 0, by * sizeof *r->rows);
}

/* Lines above the first row that is known were written before: above the last
 * one that has room the cursor does not go. */
static void go_up(struct relay *r, unsigned rows)
{
    unsigned used = RELAY_ROWS, over;

    while (used > 0 && r->rows[used - 1].len == 0)
        used--;
    over = rows > r->cursor ? rows - r->cursor : 0;
    if (over > RELAY_ROWS - used)
        over = RELAY_ROWS - used;
    if (over > 0 && over < RELAY_ROWS)
        shift_rows(r, (int)over);
    r->cursor -= rows < r->cursor ? rows : r->cursor;
}

/* Length of the text of the cursor's row. */
static size_t row_text(const struct relay *r)
{
    return (r->is_over ? r->text_end : r->scanned) - r->start;
}

/* The text goes to its row, as far as it fits; what follows it begins at
 * `next`. */
static void commit(struct relay *r, size_t next)
{
    size_t n = row_text(r);

    if (n > RELAY_ROW_MAX)
        n = text_whole(r->buf + r->start, RELAY_ROW_MAX);
    if (n > 0) /* Else nothing was written: the row is as it was. */
        write_row(r, r->buf + r->start, n);
    r->n_hidden += next - r->start;
    r->start = r->scanned = next;
    r->is_over = false;
}

void relay_rows_begin(struct relay *r, size_t end, size_t len, unsigned rows)
{
    bool was_shown = r->shown == end - r->start;

    r->has_rows = true;
    r->is_below = r->is_leaving = r->is_over = false;
    r->cursor = 0;
    memset(r->rows, 0, sizeof r->rows);
    r->scanned = end;
    commit(r, end + len);
    r->rows[0].is_due = r->rows[0].is_due && !was_shown;
    go_up(r, rows);
}

/* A text that is no row goes on as a line, behind the rows. */
static void leave(struct relay *r)
{
    r->is_leaving = true;
    if (row_text(r) > 0)
        r->rows[r->cursor] = (struct relay_row){0};
}

/* A byte that is no movement: of a new text, where the last one is over. */
static void add_text(struct relay *r)
{
    if (r->is_over) {
        r->n_hidden += r->scanned - r->start;
        r->start = r->scanned;
        r->is_over = false;
    }
    r->scanned++;
}

/* After a newline. False where the top row must make room. */
static bool step_below(struct relay *r)
{
    char c = r->buf[r->scanned];
    bool is_erased = r->cursor < RELAY_ROWS - 1 &&
                     r->rows[r->cursor + 1].is_erased;

    if (c != '\r' && c != '\n' && !is_erased) {
        leave(r);
        return true;
    }
    if (r->cursor == RELAY_ROWS - 1 && r->rows[0].is_due)
        return false;
    if (r->cursor == RELAY_ROWS - 1)
        shift_rows(r, -1);
    else
        r->cursor++;
    r->is_below = false;
    return true;
}

/* At ESC. False where more bytes must come. */
static bool step_escape(struct relay *r, bool at_end)
{
    unsigned rows;
    int len = relay_up(r->buf + r->scanned, r->len - r->scanned, &rows);

    if (len < 0 && !at_end && r->len - r->start < RELAY_FULL)
        return false;
    if (len <= 0) {
        add_text(r);
        return true;
    }
    commit(r, r->scanned + (size_t)len);
    go_up(r, rows);
    return true;
}

/* One byte, or one movement. */
static bool step(struct relay *r, bool at_end)
{
    switch (r->buf[r->scanned]) {
    case '\r':
        if (!r->is_over)
            r->text_end = r->scanned;
        r->is_over = true;
        r->scanned++;
        return true;
    case '\n':
        r->is_below = row_text(r) <= RELAY_ROW_MAX;
        if (r->is_below)
            commit(r, r->scanned + 1);
        else
            leave(r);
        return true;
    case '\033':
        return step_escape(r, at_end);
    default:
        add_text(r);
        return true;
    }
}

static bool give_row(struct relay *r, uint32_t i, struct relay_line *ret)
{
    *ret = (struct relay_line){.at = text_of(r, i),
                               .len = r->rows[i].len,
                               .taken = r->rows[i].len,
                               .row = &r->rows[i]};
    return true;
}

void relay_row_taken(struct relay *r, const struct relay_line *line)
{
    r->n_hidden -= line->len;
    line->row->is_due = false;
}

bool relay_rows_next(struct relay *r, bool at_end, struct relay_line *ret)
{
    while (!r->is_leaving) {
        if (r->scanned == r->len && !at_end && r->len - r->start < RELAY_FULL)
            return false;
        if (r->scanned == r->len) {
            if (at_end && row_text(r) <= RELAY_ROW_MAX)
                commit(r, r->len);
            leave(r);
        } else if (r->is_below) {
            if (!step_below(r))
                return give_row(r, 0, ret);
        } else if (!step(r, at_end)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < RELAY_ROWS; i++)
        if (r->rows[i].is_due)
            return give_row(r, i, ret);
    r->has_rows = false;
    relay_begin_line(r);
    return false;
}

/* Whether the text of the cursor's row, as far as it has come, is another than
 * was written there last. */
static bool has_new_text(const struct relay *r)
{
    const char *s = r->buf + r->start;
    size_t n = row_text(r);

    size_t erase;

    if (!r->is_over)
        n = text_whole(s, n);
    erase = relay_erase(s, n);
    return n > 0 && n <= RELAY_ROW_MAX && !relay_is_blank(s, n) &&
           (r->rows[r->cursor].len != n - erase ||
            memcmp(text_of(r, r->cursor), s + erase, n - erase) != 0);
}

bool relay_rows_have_state(const struct relay *r)
{
    for (uint32_t i = 0; i < RELAY_ROWS; i++)
        if (r->rows[i].is_due)
            return true;
    return has_new_text(r);
}

size_t relay_rows_take_state(struct relay *r, char *out, size_t cap)
{
    size_t n = row_text(r), written = 0;

    if (!r->is_over)
        n = text_whole(r->buf + r->start, n);
    if (has_new_text(r))
        write_row(r, r->buf + r->start, n);
    for (uint32_t i = 0; i < RELAY_ROWS; i++) {
        struct relay_line line;

        if (!r->rows[i].is_due)
            continue;
        (void)give_row(r, i, &line);
        if (relay_write_max(r, &line) > cap - written)
            break;
        written += relay_write(r, &line, out + written);
        r->rows[i].is_due = false;
        r->n_lines++;
    }
    return written;
}
