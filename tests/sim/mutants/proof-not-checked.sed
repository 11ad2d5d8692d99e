# src/rendezvous/barrier_door.c
# Any proof will do.
s/^    if (!auth_check(.*) {$/    if (false) {/
