/* An OpenCL library with one device, whose memory is the host's and whose kernels do nothing.
 *
 * STUB_FAILS lists calls that return a code which OpenCL does not define, as in
 * `clFlush,clRelease*,clGetDeviceInfo@3`: by name, by beginning, or from the call after so many on.
 * STUB_VERSION is the version it tells, STUB_PLATFORMS and STUB_DEVICES are how many there are (-1: an
 * error says that there are none), STUB_LACKS is the number of a device query that answers zero.
 * Each name may be defined as another, and is then missing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODE (-9999)
#define FAILS(name) static int calls; if (fails(#name, calls++)) return CODE
#define REFUSES(name) static int calls; if (fails(#name, calls++)) { *code = CODE; return 0; } *code = 0

typedef unsigned int u32;
typedef unsigned long long u64;
typedef void (*Notify)(void *, void *);
typedef struct { char *bytes; size_t len; int holders; Notify notify; void *data; } Memory;

static char object;

static int fails(const char *name, int calls) {
    const char *list = getenv("STUB_FAILS");
    while (list && *list) {
        size_t all = strcspn(list, ","), len = strcspn(list, ",@*");
        int same = !strncmp(name, list, len) && (list[len] == '*' || !name[len]);
        int from = list[len] == '@' ? atoi(list + len + 1) : 0;
        if (same && calls >= from) {
            fprintf(stderr, "stub: %s fails\n", name);
            return 1;
        }
        list += all + (list[all] == ',');
    }
    return 0;
}

static int asked(const char *name, int otherwise) {
    const char *value = getenv(name);
    return value && *value ? atoi(value) : otherwise;
}

static const char *version(void) {
    const char *value = getenv("STUB_VERSION");
    return value ? value : "OpenCL 1.2 stub";
}

static int answer(const void *from, size_t len, size_t size, void *to, size_t *needed) {
    if (needed) *needed = len;
    if (to && size < len) return -30;
    if (to) memcpy(to, from, len);
    return 0;
}

#define TEXT(text) return answer(text, strlen(text) + 1, size, to, needed)
#define NUMBER(type, value) { type number = (value); return answer(&number, sizeof number, size, to, needed); }

int clGetPlatformIDs(u32 n, void **ids, u32 *count) {
    FAILS(clGetPlatformIDs);
    int there = asked("STUB_PLATFORMS", 1);
    if (there < 0) return -1001;
    if (count) *count = there;
    if (ids && there) ids[0] = &object;
    return 0;
}
int clGetPlatformInfo(void *platform, u32 what, size_t size, void *to, size_t *needed) {
    FAILS(clGetPlatformInfo);
    if (what == 0x0901) TEXT(version());
    if (what == 0x0902) TEXT("Stub platform");
    return -30;
}
int clGetDeviceIDs(void *platform, u64 type, u32 n, void **ids, u32 *count) {
    FAILS(clGetDeviceIDs);
    int there = asked("STUB_DEVICES", 1);
    if (there < 0) return -1;
    if (count) *count = there;
    if (ids && there) ids[0] = &object;
    return 0;
}
int clGetDeviceInfo(void *device, u32 what, size_t size, void *to, size_t *needed) {
    FAILS(clGetDeviceInfo);
    size_t sizes[3] = {1024, 1024, 64};
    if (what == (u32)asked("STUB_LACKS", -1)) NUMBER(u32, 0);
    switch (what) {
    case 0x1000: NUMBER(u64, 4);                    /* a GPU */
    case 0x1002: NUMBER(u32, 8);                    /* units */
    case 0x1004: NUMBER(size_t, 256);               /* threads of a group */
    case 0x1005: return answer(sizes, sizeof sizes, size, to, needed);
    case 0x1010: case 0x101F: NUMBER(u64, 1 << 30); /* longest buffer, memory */
    case 0x1017: NUMBER(size_t, 4096);              /* bytes of arguments */
    case 0x101B: case 0x1032: NUMBER(u64, 63);      /* what f32 and f64 are */
    case 0x1023: NUMBER(u64, 32 << 10);             /* shared storage */
    case 0x1027: case 0x1028: case 0x1035: NUMBER(u32, 1);
    case 0x102A: NUMBER(u64, 3);                    /* queues in any order */
    case 0x102B: TEXT("Stub device");
    case 0x102C: case 0x102D: TEXT("stub");
    case 0x102F: TEXT(version());
    case 0x1030: TEXT("cl_khr_fp64 cl_khr_int64_base_atomics");
    case 0x1031: NUMBER(void *, &object);
    }
    return -30;
}

void *clCreateContext(void *p, u32 n, void *d, void *f, void *data, int *code) { REFUSES(clCreateContext); return &object; }
int clReleaseContext(void *context) { FAILS(clReleaseContext); return 0; }
void *clCreateCommandQueue(void *c, void *d, u64 p, int *code) { REFUSES(clCreateCommandQueue); return &object; }
int clRetainCommandQueue(void *queue) { FAILS(clRetainCommandQueue); return 0; }
int clReleaseCommandQueue(void *queue) { FAILS(clReleaseCommandQueue); return 0; }
int clFlush(void *queue) { FAILS(clFlush); return 0; }

void *clCreateBuffer(void *context, u64 flags, size_t len, void *host, int *code) {
    REFUSES(clCreateBuffer);
    Memory *memory = calloc(1, sizeof *memory);
    memory->bytes = host ? host : calloc(1, len);
    memory->len = len;
    memory->holders = 1;
    return memory;
}
int clRetainMemObject(Memory *memory) { FAILS(clRetainMemObject); memory->holders++; return 0; }
int clReleaseMemObject(Memory *memory) {
    FAILS(clReleaseMemObject);
    if (--memory->holders == 0 && memory->notify) memory->notify(memory, memory->data);
    return 0;
}
int clSetMemObjectDestructorCallback(Memory *memory, Notify notify, void *data) {
    FAILS(clSetMemObjectDestructorCallback);
    memory->notify = notify;
    memory->data = data;
    return 0;
}

void *clCreateProgramWithSource(void *c, u32 n, char **s, size_t *l, int *code) { REFUSES(clCreateProgramWithSource); return &object; }
void *clCreateProgramWithBinary(void *c, u32 n, void *d, size_t *l, void *b, int *s, int *code) { REFUSES(clCreateProgramWithBinary); return &object; }
int clBuildProgram(void *p, u32 n, void *d, char *options, void *f, void *data) { FAILS(clBuildProgram); return 0; }
int clGetProgramInfo(void *program, u32 what, size_t size, void *to, size_t *needed) {
    FAILS(clGetProgramInfo);
    if (what == 0x1165) NUMBER(size_t, 4);
    if (what == 0x1166) { memcpy(*(char **)to, "stub", 4); return 0; }
    if (what == 0x1168) TEXT("kernels");
    return -30;
}
int clGetProgramBuildInfo(void *p, void *d, u32 what, size_t size, void *to, size_t *needed) {
    FAILS(clGetProgramBuildInfo);
    TEXT("the compiler's log");
}
int clReleaseProgram(void *program) { FAILS(clReleaseProgram); return 0; }
void *clCreateKernel(void *program, char *name, int *code) { REFUSES(clCreateKernel); return &object; }
int clSetKernelArg(void *kernel, u32 index, size_t size, void *value) { FAILS(clSetKernelArg); return 0; }
int clReleaseKernel(void *kernel) { FAILS(clReleaseKernel); return 0; }

int clEnqueueReadBuffer(void *q, Memory *m, u32 blocking, size_t from, size_t len, void *to, u32 n, void *list, void **event) {
    FAILS(clEnqueueReadBuffer);
    memcpy(to, m->bytes + from, len);
    *event = &object;
    return 0;
}
int clEnqueueWriteBuffer(void *q, Memory *m, u32 blocking, size_t to, size_t len, void *from, u32 n, void *list, void **event) {
    FAILS(clEnqueueWriteBuffer);
    memcpy(m->bytes + to, from, len);
    *event = &object;
    return 0;
}
int clEnqueueCopyBuffer(void *q, Memory *a, Memory *b, size_t from, size_t to, size_t len, u32 n, void *list, void **event) {
    FAILS(clEnqueueCopyBuffer);
    memmove(b->bytes + to, a->bytes + from, len);
    *event = &object;
    return 0;
}
void *clEnqueueMapBuffer(void *q, Memory *m, u32 blocking, u64 flags, size_t from, size_t len, u32 n, void *list, void **event, int *code) {
    REFUSES(clEnqueueMapBuffer);
    *event = &object;
    return m->bytes + from;
}
int clEnqueueUnmapMemObject(void *q, Memory *m, void *p, u32 n, void *list, void **event) {
    FAILS(clEnqueueUnmapMemObject);
    *event = &object;
    return 0;
}
int clEnqueueNDRangeKernel(void *q, void *k, u32 dims, size_t *o, size_t *g, size_t *l, u32 n, void *list, void **event) {
    FAILS(clEnqueueNDRangeKernel);
    *event = &object;
    return 0;
}
int clEnqueueBarrierWithWaitList(void *q, u32 n, void *list, void **event) {
    FAILS(clEnqueueBarrierWithWaitList);
    *event = &object;
    return 0;
}
int clEnqueueMarkerWithWaitList(void *q, u32 n, void *list, void **event) {
    FAILS(clEnqueueMarkerWithWaitList);
    *event = &object;
    return 0;
}
int clWaitForEvents(u32 n, void *list) { FAILS(clWaitForEvents); return 0; }
int clGetEventInfo(void *event, u32 what, size_t size, void *to, size_t *needed) {
    FAILS(clGetEventInfo);
    if (what == 0x11D3) NUMBER(int, 0);
    return -30;
}
int clGetEventProfilingInfo(void *event, u32 what, size_t size, void *to, size_t *needed) {
    FAILS(clGetEventProfilingInfo);
    NUMBER(u64, 1000);
}
int clReleaseEvent(void *event) { FAILS(clReleaseEvent); return 0; }
