// A compiler whose code is four bytes.

FUNCTION(nvrtcVersion, (int *major, int *minor), *major = 12; *minor = 9)
FUNCTION(nvrtcGetNumSupportedArchs, (int *count), *count = 1)
FUNCTION(nvrtcGetSupportedArchs, (int *archs), *archs = 90)
FUNCTION(nvrtcCreateProgram, (void **program), *program = HANDLE)
FUNCTION(nvrtcCompileProgram, (void *program), )
FUNCTION(nvrtcDestroyProgram, (void **program), *program = NULL)
FUNCTION(nvrtcGetProgramLogSize, (void *program, size_t *bytes), *bytes = 1)
FUNCTION(nvrtcGetProgramLog, (void *program, char *log), *log = 0)
FUNCTION(nvrtcGetCUBINSize, (void *program, size_t *bytes), *bytes = 4)
FUNCTION(nvrtcGetCUBIN, (void *program, char *code), memcpy(code, "stub", 4))
FUNCTION(nvrtcGetPTXSize, (void *program, size_t *bytes), *bytes = 4)
FUNCTION(nvrtcGetPTX, (void *program, char *code), memcpy(code, "stub", 4))

const char *nvrtcGetErrorString(int code) { return code == UNLISTED ? NULL : "of the stub"; }
