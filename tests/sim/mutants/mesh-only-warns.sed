# src/rendezvous/mesh.c
# Pods that cannot reach each other start although --mesh was given.
s/^    if (b->cfg.mesh_strict) {$/    if (false) {/
