# src/agent/pod_link.c
# A pod starts by a START that comes after its lease was over.
s/^        if (p->state == POD_WAITING \&\& !p->stale_ms)$/        if (p->state == POD_WAITING)/
