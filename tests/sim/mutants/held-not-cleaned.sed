# src/agent/pod_again.c
# A worker is started alone while the pod stops.
/^    pod_hold_none(p);/d
/^void pod_hold_none/,/^}/s/p->held\[i\].held = false/(void)0/
