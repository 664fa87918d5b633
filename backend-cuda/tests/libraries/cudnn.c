// A library that has one way to compute every convolution, which does nothing.

FUNCTION(cudnnCreate, (void **handle), *handle = HANDLE)
FUNCTION(cudnnSetStream, (void *handle), )
FUNCTION(cudnnBackendCreateDescriptor, (int what, void **object), *object = HANDLE)
FUNCTION(cudnnBackendDestroyDescriptor, (void *object), )
FUNCTION(cudnnBackendSetAttribute, (void *object), )
FUNCTION(cudnnBackendFinalize, (void *object), )
FUNCTION(cudnnBackendExecute, (void *handle), )
// No notes, one of everything else; the bytes of a workspace.
FUNCTION(cudnnBackendGetAttribute,
         (void *object, int name, int kind, int64_t room, int64_t *count, void *to),
         *count = name != 1303;
         if (name == 402) *(int64_t *)to = 1024)
