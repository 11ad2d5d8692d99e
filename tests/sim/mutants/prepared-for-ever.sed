# src/agent/pod.c
# --pre-start runs before the first round only.
/^    p->prepared = false;$/d
