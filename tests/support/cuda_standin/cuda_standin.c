/* A stand-in for libcuda.so.1 whose kernels take the time that they are told: see tests/support/cuda.py.
 *
 * The script is the file that CUDA_STANDIN names, words KEY=VALUE. A kernel runs as long as its first
 * parameter says, in ns; what each GPU did is kept in the account that the stand-in of NVML reports from.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../nvml_standin/account.h"

enum {
    CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101, CUDA_ERROR_INVALID_PTX = 218, CUDA_ERROR_NOT_FOUND = 500, CUDA_ERROR_UNKNOWN = 999
};

#ifdef OLD_DRIVER
#define cuDevicePrimaryCtxSetFlags_v2 cuDevicePrimaryCtxSetFlags
#define cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxRelease
#define cuDeviceGetUuid_v2 cuDeviceGetUuid
#endif

typedef int CUresult;
typedef struct { char bytes[16]; } CUuuid;
struct event { int gpu; double time; };
struct kernel { char name[32]; };

static struct account *account;
static struct { int count, order[8], init_error, launch_error, bad_ptx, corrupt; double vanish_at, crash_at, slow; char uuids[8][64], fail[64]; } script;
static int visible[8], visible_count;
static double free_at[8], began;
static __thread int current = -1;
static struct kernel kernels[] = {{"spin"}, {"work"}};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void wait_until(double moment) {
    double left = moment - seconds();
    if (left > 0) usleep((useconds_t)(left * 1e6));
}

static void read_script(void) {
    const char *path = getenv("CUDA_STANDIN");
    FILE *file = path ? fopen(path, "r") : NULL;
    char word[512];
    memset(&script, 0, sizeof script);
    script.count = 1;
    script.vanish_at = script.crash_at = 1e18;
    script.slow = 1;
    for (int i = 0; i < 8; i++) {
        script.order[i] = i;
        snprintf(script.uuids[i], 64, "%08x00004000800000000000000%d", 0x5ca1ab1e + i, i);
    }
    if (!file) { fprintf(stderr, "cuda_standin: cannot read CUDA_STANDIN\n"); exit(99); }
    while (fscanf(file, "%511s", word) == 1) {
        char *value = strchr(word, '=');
        if (!value) { fprintf(stderr, "cuda_standin: no value: %s\n", word); exit(99); }
        *value++ = 0;
        if (!strcmp(word, "count")) script.count = atoi(value);
        else if (!strcmp(word, "account")) account = open_account(value);
        else if (!strcmp(word, "order")) for (int i = 0; i < 8 && *value; i++, value += value[1] ? 2 : 1) script.order[i] = *value - '0';
        else if (!strcmp(word, "init_error")) script.init_error = atoi(value);
        else if (!strcmp(word, "launch_error")) script.launch_error = atoi(value);
        else if (!strcmp(word, "bad_ptx")) script.bad_ptx = atoi(value);
        else if (!strcmp(word, "corrupt")) script.corrupt = atoi(value);
        else if (!strcmp(word, "vanish_at")) script.vanish_at = atof(value);
        else if (!strcmp(word, "crash_at")) script.crash_at = atof(value);
        else if (!strcmp(word, "fail")) snprintf(script.fail, sizeof script.fail, "%s", value);
        else if (!strcmp(word, "slow")) script.slow = atof(value);
        else { fprintf(stderr, "cuda_standin: unknown key %s\n", word); exit(99); }
    }
    fclose(file);
    if (!account) { fprintf(stderr, "cuda_standin: no account\n"); exit(99); }
}

/* The GPU that a number of CUDA_VISIBLE_DEVICES, or a UUID in it, means in CUDA's own order; -1 for none. */
static int named(const char *entry) {
    char digits[33];
    int length = 0;
    if (entry[0] >= '0' && entry[0] <= '9') {
        int number = atoi(entry);
        return number < script.count ? script.order[number] : -1;
    }
    for (const char *c = entry + 4; *c && length < 32; c++) if (*c != '-') digits[length++] = *c;
    digits[length] = 0;
    for (int i = 0; i < script.count; i++) if (!strncmp(script.uuids[i], digits, (size_t)length)) return i;
    return -1;
}

static void read_visible(void) {
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    char copy[512], *rest;
    visible_count = 0;
    if (!text) {
        for (int i = 0; i < script.count; i++) visible[visible_count++] = script.order[i];
        return;
    }
    snprintf(copy, sizeof copy, "%s", text);
    for (char *entry = strtok_r(copy, ",", &rest); entry; entry = strtok_r(NULL, ",", &rest)) {
        int gpu = named(entry);
        if (gpu < 0) break;
        visible[visible_count++] = gpu;
    }
}

static CUresult state(void) {
    double now = seconds() - began;
    if (now >= script.crash_at) abort();
    return now >= script.vanish_at ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

/* The call that the script wants to fail does. */
#define FAILS if (!strcmp(script.fail, __func__)) return CUDA_ERROR_UNKNOWN

CUresult cuInit(unsigned int flags) {
    (void)flags;
    read_script();
    FAILS;
    read_visible();
    if (!began) began = seconds();
    if (script.init_error) return script.init_error;
    return visible_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *out) { FAILS; *out = 12040; return CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *out) { FAILS; *out = visible_count; return CUDA_SUCCESS; }

CUresult cuDeviceGet(int *out, int ordinal) { FAILS;
    if (ordinal < 0 || ordinal >= visible_count) return CUDA_ERROR_INVALID_DEVICE;
    *out = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *out, int device) { FAILS;
    for (int i = 0; i < 16; i++) {
        unsigned int byte;
        sscanf(script.uuids[visible[device]] + 2 * i, "%2x", &byte);
        out->bytes[i] = (char)byte;
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *out, int attribute, int device) { FAILS;
    (void)device;
    switch (attribute) {
        case 16: *out = 108; return CUDA_SUCCESS;
        case 75: *out = 8; return CUDA_SUCCESS;
        case 76: *out = 0; return CUDA_SUCCESS;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuGetErrorName(CUresult error, const char **out) {
    *out = error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE"
        : error == CUDA_ERROR_INVALID_PTX ? "CUDA_ERROR_INVALID_PTX"
        : error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
        : error == CUDA_ERROR_UNKNOWN ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR";
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(int device, unsigned int flags) { FAILS; (void)device; (void)flags; return CUDA_SUCCESS; }

CUresult cuDevicePrimaryCtxRetain(void **out, int device) { FAILS;
    *out = (void *)(long)(device + 1);
    account->gpu[visible[device]].pid = getpid();
    return state();
}

CUresult cuDevicePrimaryCtxRelease_v2(int device) { FAILS; account->gpu[visible[device]].pid = 0; return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(void *context) { FAILS; current = (int)(long)context - 1; return CUDA_SUCCESS; }

CUresult cuModuleLoadDataEx(void **out, const void *image, unsigned int count, int *options, void **values) { FAILS;
    const char *text = image;
    *out = (void *)1;
    if (strncmp(text, ".version", 8) || !strstr(text, ".entry spin") || !strstr(text, ".entry work")) return CUDA_ERROR_INVALID_PTX;
    if (!script.bad_ptx) return CUDA_SUCCESS;
    for (unsigned int i = 0; i < count; i++)
        if (options[i] == 5) strcpy(values[i], "ptxas application ptx input, line 3; error : made up");
    return CUDA_ERROR_INVALID_PTX;
}

CUresult cuModuleGetFunction(void **out, void *module, const char *name) { FAILS;
    (void)module;
    for (size_t i = 0; i < 2; i++) if (!strcmp(kernels[i].name, name)) { *out = &kernels[i]; return CUDA_SUCCESS; }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuMemAlloc_v2(unsigned long long *out, size_t bytes) { FAILS;
    *out = (unsigned long long)(size_t)calloc(1, bytes);
    account->gpu[visible[current]].memory += (double)bytes;
    return state();
}

CUresult cuMemFree_v2(unsigned long long memory) { FAILS; free((void *)(size_t)memory); account->gpu[visible[current]].memory = 0; return CUDA_SUCCESS; }
CUresult cuMemAllocHost_v2(void **out, size_t bytes) { FAILS; *out = malloc(bytes); return CUDA_SUCCESS; }
CUresult cuMemFreeHost(void *memory) { FAILS; free(memory); return CUDA_SUCCESS; }

CUresult cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes) { FAILS;
    memcpy((void *)(size_t)to, from, bytes);
    return state();
}

CUresult cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes) { FAILS;
    memcpy(to, (void *)(size_t)from, bytes);
    if (script.corrupt) ((char *)to)[script.corrupt > 1 ? bytes - 1 : 0] ^= 1;
    return state();
}

CUresult cuLaunchKernel(void *function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                        unsigned int by, unsigned int bz, unsigned int shared, void *stream, void **params,
                        void **extra) { FAILS;
    (void)gy; (void)gz; (void)by; (void)bz; (void)shared; (void)stream; (void)extra;
    const struct kernel *kernel = function;
    int gpu = visible[current];
    struct account_of_gpu *own = &account->gpu[gpu];
    double now = seconds(), length = (double)*(unsigned long long *)params[0] / 1e9 * script.slow;
    if (state() != CUDA_SUCCESS) return state();
    if (script.launch_error) return script.launch_error;
    struct span *span = &own->span[own->spans % ACCOUNT_SPANS];
    span->from = free_at[gpu] > now ? free_at[gpu] : now;
    span->until = span->from + length;
    /* One thread that spins costs little; a whole grid that multiplies costs most. */
    span->watts = !strcmp(kernel->name, "work") && gx * bx > 1 ? 320 : 20;
    own->joules += length * span->watts;
    free_at[gpu] = span->until;
    __sync_synchronize();
    own->spans++;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) { FAILS; wait_until(free_at[visible[current]]); return state(); }
CUresult cuEventCreate(void **out, unsigned int flags) { FAILS; (void)flags; *out = calloc(1, sizeof(struct event)); return state(); }
CUresult cuEventDestroy_v2(void *event) { FAILS; free(event); return CUDA_SUCCESS; }

CUresult cuEventRecord(void *event, void *stream) { FAILS;
    double now = seconds(), done = free_at[visible[current]];
    (void)stream;
    ((struct event *)event)->time = done > now ? done : now;
    return state();
}

CUresult cuEventSynchronize(void *event) { FAILS; wait_until(((struct event *)event)->time); return state(); }

CUresult cuEventElapsedTime(float *out, void *first, void *last) { FAILS;
    *out = (float)((((struct event *)last)->time - ((struct event *)first)->time) * 1e3);
    return CUDA_SUCCESS;
}
