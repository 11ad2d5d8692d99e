# src/agent/pod_time.c
# A pod that hears nothing from pod 0 lets its workers run.
/^static void lease_is_over/,/^}/s/^    pod_stop_workers(p, now_ms);$/    p->heard_ms = now_ms;/
