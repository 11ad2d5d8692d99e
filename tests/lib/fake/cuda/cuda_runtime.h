/* cuda_runtime: as much as an official nccl.h needs to be read. */
#ifndef FAKE_CUDA_RUNTIME_H
#define FAKE_CUDA_RUNTIME_H
#include <stddef.h>
struct CUstream_st;
struct CUevent_st;
#define cudaStream_t struct CUstream_st *
#define cudaEvent_t struct CUevent_st *
#define CUDART_VERSION 13000
#endif
