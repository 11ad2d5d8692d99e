# src/rendezvous/barrier_hello.c
# A new pod 0 starts while the workers of the last one may run.
s/p->hello.last_end == WIRE_END_SILENT \&\& until/false \&\& until/
