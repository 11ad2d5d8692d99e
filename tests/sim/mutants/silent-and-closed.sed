# src/agent/pod_time.c
# A pod whose workers run closes a silent connection as if they were dead.
s/^    if (p->bar || p->runs || now_ms/    if (p->bar || now_ms/
