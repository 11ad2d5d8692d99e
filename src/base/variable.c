/* variable: see variable.h. */
#include "base/variable.h"

#include <stddef.h>
#include <string.h>

/* A start asks for some hundred names, most of them absent: the first letter
 * tells mostly. */
char *variable_find(char *const *envp, const char *name)
{
    size_t len = strlen(name);

    for (; *envp; envp++)
        if (**envp == *name && strncmp(*envp, name, len) == 0 &&
            (*envp)[len] == '=')
            return *envp + len + 1;
    return NULL;
}

char *variable_given(char *const *envp, const char *name)
{
    char *value = variable_find(envp, name);

    return value && *value ? value : NULL;
}
