/* cuda_fp8: nothing of it is needed to read nccl.h. */
