/* variable: what an environment holds, of any process or of a plan. */
#ifndef BASE_VARIABLE_H
#define BASE_VARIABLE_H

/* The value of `name` in `envp`, NULL where it is not there. Of two entries
 * with one name the first counts, as for getenv(). */
char *variable_find(char *const *envp, const char *name);
/* The same, and NULL where it is set to nothing. */
char *variable_given(char *const *envp, const char *name);

#endif
