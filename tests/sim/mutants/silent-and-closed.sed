# src/agent/pod_time.c
# A pod whose workers run closes a silent connection as if they were dead.
s/^    if (p->bar || p->runs || (p->link/    if (p->bar || (p->link/
