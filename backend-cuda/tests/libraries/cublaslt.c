// A library that has three algorithms for every product, which do nothing.

struct choice {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

FUNCTION(cublasLtCreate, (void **handle), *handle = HANDLE)
FUNCTION(cublasLtMatmulDescCreate, (void **product), *product = HANDLE)
FUNCTION(cublasLtMatmulDescSetAttribute, (void *product), )
FUNCTION(cublasLtMatmulDescDestroy, (void *product), )
FUNCTION(cublasLtMatrixLayoutCreate, (void **layout), *layout = HANDLE)
FUNCTION(cublasLtMatrixLayoutSetAttribute, (void *layout), )
FUNCTION(cublasLtMatrixLayoutDestroy, (void *layout), )
FUNCTION(cublasLtMatmulPreferenceCreate, (void **preference), *preference = HANDLE)
FUNCTION(cublasLtMatmulPreferenceSetAttribute, (void *preference), )
FUNCTION(cublasLtMatmulPreferenceDestroy, (void *preference), )
FUNCTION(cublasLtMatmul, (void *handle), )
FUNCTION(cublasLtMatmulAlgoGetHeuristic,
         (void *handle, void *product, void *a, void *b, void *c, void *d, void *preference, int most,
          struct choice *choice, int *found),
         *found = most < 3 ? most : 3;
         for (int i = 0; i < *found; i++) {
             memset(choice + i, 0, sizeof *choice);
             choice[i].algorithm[0] = i;
             choice[i].workspace = 1024;
             // Of the choice, not of the call.
             choice[i].state = fails("state") ? UNLISTED : 0;
         })
