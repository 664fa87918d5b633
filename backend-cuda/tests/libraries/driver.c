// A driver of one device whose memory is the host's, and whose kernels do nothing.

#ifndef VERSION
#define VERSION 12090
#endif

static int attribute(int which) {
    switch (which) {
    case 1: return 1024;             // threads of a block
    case 5: case 6: case 7: return 65535; // blocks
    case 8: return 48 << 10;         // shared memory
    case 16: return 8;               // multiprocessors
    case 39: return 2048;            // threads of one
    case 75: return 9;               // compute capability 9.0
    case 97: return 99 << 10;        // shared memory that may be asked for
    case 115: return 1;              // memory pools
    default: return 0;
    }
}

FUNCTION(cuInit, (unsigned flags), )
FUNCTION(cuDriverGetVersion, (int *version), *version = VERSION)
FUNCTION(cuGetErrorString, (int code, const char **text), if (code == UNLISTED) return 1; *text = "of the stub")
FUNCTION(cuDeviceGet, (int *device, int ordinal), *device = ordinal)
FUNCTION(cuDeviceGetAttribute, (int *value, int which, int device), *value = attribute(which))
FUNCTION(cuDeviceGetCount, (int *count), *count = 1)
FUNCTION(cuDeviceGetName, (char *name, int length, int device), strncpy(name, "stub", length))
FUNCTION(cuDeviceTotalMem_v2, (size_t *bytes, int device), *bytes = (size_t)1 << 30)
FUNCTION(cuDeviceGetDefaultMemPool, (void **pool, int device), *pool = HANDLE)
FUNCTION(cuDevicePrimaryCtxRetain, (void **context, int device), *context = HANDLE)
FUNCTION(cuCtxSetCurrent, (void *context), )
FUNCTION(cuLinkCreate_v2, (unsigned n, int *options, void **values, void **linker), *linker = HANDLE)
FUNCTION(cuLinkAddData_v2, (void *linker), )
FUNCTION(cuLinkComplete, (void *linker, void **code, size_t *bytes), *code = "code"; *bytes = 5)
FUNCTION(cuLinkDestroy, (void *linker), )
FUNCTION(cuModuleLoadData, (void **module, const void *image), *module = HANDLE)
FUNCTION(cuModuleGetFunction, (void **function, void *module, const char *name), *function = HANDLE)
FUNCTION(cuModuleUnload, (void *module), )
FUNCTION(cuFuncSetAttribute, (void *function, int which, int value), )
FUNCTION(cuLaunchKernel, (void *function), )
FUNCTION(cuMemAlloc_v2, (uint64_t *address, size_t bytes), *address = (uint64_t)calloc(bytes, 1))
FUNCTION(cuMemFree_v2, (uint64_t address), free((void *)address))
FUNCTION(cuMemAllocAsync, (uint64_t *address, size_t bytes, void *stream), *address = (uint64_t)calloc(bytes, 1))
FUNCTION(cuMemFreeAsync, (uint64_t address, void *stream), free((void *)address))
FUNCTION(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags), *memory = malloc(bytes))
FUNCTION(cuMemFreeHost, (void *memory), free(memory))
FUNCTION(cuMemPoolSetAttribute, (void *pool, int which, void *value), )
FUNCTION(cuMemPoolTrimTo, (void *pool, size_t keep), )
FUNCTION(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void *stream), memmove((void *)to, (void *)from, bytes))
FUNCTION(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *stream), memcpy(to, (void *)from, bytes))
FUNCTION(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *stream), memcpy((void *)to, from, bytes))
FUNCTION(cuStreamCreate, (void **stream, unsigned flags), *stream = HANDLE)
FUNCTION(cuStreamDestroy_v2, (void *stream), )
FUNCTION(cuStreamSynchronize, (void *stream), )
FUNCTION(cuStreamWaitEvent, (void *stream, void *event, unsigned flags), )
FUNCTION(cuStreamBeginCapture_v2, (void *stream, int mode), )
FUNCTION(cuStreamEndCapture, (void *stream, void **graph), *graph = HANDLE)
FUNCTION(cuEventCreate, (void **event, unsigned flags), *event = HANDLE)
FUNCTION(cuEventDestroy_v2, (void *event), )
FUNCTION(cuEventElapsedTime, (float *milliseconds, void *start, void *end), *milliseconds = 1)
FUNCTION(cuEventRecord, (void *event, void *stream), )
FUNCTION(cuEventSynchronize, (void *event), )
FUNCTION(cuEventQuery, (void *event), )
FUNCTION(cuGraphCreate, (void **graph, unsigned flags), *graph = HANDLE)
FUNCTION(cuGraphDestroy, (void *graph), )
FUNCTION(cuGraphAddKernelNode_v2, (void **node, void *graph), *node = HANDLE)
FUNCTION(cuGraphAddChildGraphNode, (void **node, void *graph), *node = HANDLE)
FUNCTION(cuGraphGetNodes, (void *graph, void **nodes, uint64_t *n), if (nodes != NULL) *nodes = HANDLE; *n = 1)
FUNCTION(cuGraphGetEdges, (void *graph, void **from, void **to, uint64_t *n), *n = 0)
FUNCTION(cuGraphNodeGetType, (void *node, int *type), *type = 0)
FUNCTION(cuGraphKernelNodeGetParams_v2, (void *node, void *params), )
FUNCTION(cuGraphKernelNodeCopyAttributes, (void *to, void *from), )
FUNCTION(cuGraphAddDependencies_v2, (void *graph), )
FUNCTION(cuGraphInstantiateWithFlags, (void **executable, void *graph, uint64_t flags), *executable = HANDLE)
FUNCTION(cuGraphLaunch, (void *executable, void *stream), )
FUNCTION(cuGraphExecDestroy, (void *executable), )
FUNCTION(cuGraphExecKernelNodeSetParams_v2, (void *executable, void *node), )
FUNCTION(cuGraphExecChildGraphNodeSetParams, (void *executable, void *node), )

// NVIDIA's own NVRTC asks the driver for this and crashes where it is missing.
int cuGetExportTable(const void **table, const void *id)
{
    *table = 0;
    return 500;
}
