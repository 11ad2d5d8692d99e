/* cuda_bf16: nothing of it is needed to read nccl.h. */
