/* nccl_header: what libddp declares of NCCL, beside an official nccl.h. Only
 * compiled, by tests/system/ddp_nccl.sh. */
#include "ddp.h"
#include "ddp/nccl_abi.h"
#include "ddp/nccl_lib.h"

#include <nccl.h>

#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a " is not " #b)
#define SAME_AT(f, g)                                                          \
    _Static_assert(offsetof(struct ddp_nccl_config, f) ==                      \
                       offsetof(ncclConfig_t, g) &&                            \
                   sizeof(((struct ddp_nccl_config *)0)->f) ==                 \
                       sizeof(((ncclConfig_t *)0)->g),                         \
                   #f " is elsewhere")

SAME(DDP_NCCL_SUCCESS, ncclSuccess);
SAME(DDP_NCCL_CUDA_ERROR, ncclUnhandledCudaError);
SAME(DDP_NCCL_SYSTEM_ERROR, ncclSystemError);
SAME(DDP_NCCL_INTERNAL_ERROR, ncclInternalError);
SAME(DDP_NCCL_INVALID_ARGUMENT, ncclInvalidArgument);
SAME(DDP_NCCL_INVALID_USAGE, ncclInvalidUsage);
SAME(DDP_NCCL_REMOTE_ERROR, ncclRemoteError);
SAME(DDP_NCCL_IN_PROGRESS, ncclInProgress);
SAME(DDP_I8, ncclInt8);
SAME(DDP_U8, ncclUint8);
SAME(DDP_I32, ncclInt32);
SAME(DDP_U32, ncclUint32);
SAME(DDP_I64, ncclInt64);
SAME(DDP_U64, ncclUint64);
SAME(DDP_F16, ncclFloat16);
SAME(DDP_F32, ncclFloat32);
SAME(DDP_F64, ncclFloat64);
SAME(DDP_BF16, ncclBfloat16);
SAME(DDP_SUM, ncclSum);
SAME(DDP_PROD, ncclProd);
SAME(DDP_MAX, ncclMax);
SAME(DDP_MIN, ncclMin);
SAME(DDP_AVG, ncclAvg);
SAME(sizeof(struct ddp_nccl_id), sizeof(ncclUniqueId));
SAME(_Alignof(struct ddp_nccl_id), _Alignof(ncclUniqueId));
SAME(DDP_NCCL_UNDEF, NCCL_CONFIG_UNDEF_INT);
_Static_assert(sizeof(struct ddp_nccl_config) <= sizeof(ncclConfig_t),
               "more than NCCL has");
SAME_AT(size, size);
SAME_AT(magic, magic);
SAME_AT(version, version);
SAME_AT(blocking, blocking);
SAME_AT(cga_cluster_size, cgaClusterSize);
SAME_AT(min_ctas, minCTAs);
SAME_AT(max_ctas, maxCTAs);
SAME_AT(net_name, netName);
SAME_AT(split_share, splitShare);

/* Calls: the same but for the names of types; enums are passed as ints. */
static ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;

int main(void)
{
    ncclResult_t (*init)(ncclComm_t *, int, ncclUniqueId, int,
                         ncclConfig_t *) = ncclCommInitRankConfig;
    ncclResult_t (*split)(ncclComm_t, int, int, ncclComm_t *,
                          ncclConfig_t *) = ncclCommSplit;
    ncclResult_t (*count)(ncclComm_t, int *) = ncclCommCount;
    ncclResult_t (*async)(ncclComm_t, ncclResult_t *) = ncclCommGetAsyncError;
    ncclResult_t (*reduce)(const void *, void *, size_t, ncclDataType_t,
                           ncclRedOp_t, ncclComm_t, cudaStream_t) =
        ncclAllReduce;
    ncclResult_t (*scatter)(const void *, void *, size_t, ncclDataType_t,
                            ncclRedOp_t, ncclComm_t, cudaStream_t) =
        ncclReduceScatter;
    ncclResult_t (*gather)(const void *, void *, size_t, ncclDataType_t,
                           ncclComm_t, cudaStream_t) = ncclAllGather;
    ncclResult_t (*broadcast)(const void *, void *, size_t, ncclDataType_t,
                              int, ncclComm_t, cudaStream_t) = ncclBroadcast;
    ncclResult_t (*one[])(ncclComm_t) = {ncclCommFinalize, ncclCommDestroy,
                                         ncclCommAbort};
    const char *(*last)(ncclComm_t) = ncclGetLastError;

    return init && split && count && async && reduce && scatter && gather &&
                   broadcast && one[0] && last &&
                   initial.magic == DDP_NCCL_MAGIC
               ? 0
               : 1;
}
