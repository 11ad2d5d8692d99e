/* commands: `agent stage`, `agent verify`, `agent manifest`. Each prints its
 * result on stdout, its fault as one line on stderr, and returns the exit
 * status. They are tools: they may print. */
#ifndef DATASET_COMMANDS_H
#define DATASET_COMMANDS_H

struct options;

int dataset_command_stage(const struct options *o);
int dataset_command_verify(const struct options *o);
int dataset_command_manifest(const struct options *o);

#endif
