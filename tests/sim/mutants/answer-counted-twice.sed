# src/rendezvous/barrier_again.c
# A question that is asked again costs another restart.
/^    if (m->serial == p->serial)/s/m->serial == p->serial/false/
