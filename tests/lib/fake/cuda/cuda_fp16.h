/* cuda_fp16: nothing of it is needed to read nccl.h. */
