/* tool: see tool.h. */
#include "base/tool.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool tool_find(const char *name, char *path, size_t cap)
{
    const char *dirs = getenv("PATH");
    char own[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    char *slash;

    own[n > 0 ? n : 0] = '\0';
    slash = strrchr(own, '/');
    if (slash) {
        (void)snprintf(path, cap, "%.*s/%s", (int)(slash - own), own, name);
        if (access(path, X_OK) == 0)
            return true;
    }
    for (const char *s = dirs ? dirs : "/usr/local/bin:/usr/bin:/bin";; s++) {
        size_t len = strcspn(s, ":");

        (void)snprintf(path, cap, "%.*s/%s", len ? (int)len : 1,
                       len ? s : ".", name);
        if (access(path, X_OK) == 0)
            return true;
        s += len;
        if (*s == '\0')
            return false;
    }
}
