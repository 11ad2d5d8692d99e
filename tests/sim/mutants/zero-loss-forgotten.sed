# src/agent/pod_past.c
# Of a lost pod 0 only the next one is told.
s/^        x->zero_lost = true;$/        x->zero_lost = false;/
