/* A stand-in for libnvidia-ml.so.1 that answers from a script: see tests/support/nvml.py.
 *
 * The script is the file that NVML_STANDIN names, one line of words KEY=VALUE each. A line that
 * starts with `gpu N` is about one GPU, any other about the driver. KEY=VALUE@T holds from T seconds
 * after nvmlInit. Constants and structures are nvml.h's; a test compares them with nvidia-ml-py's.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "account.h"

#define CONSTANTS(X) \
    X(NVML_SUCCESS, 0) \
    X(NVML_ERROR_INVALID_ARGUMENT, 2) \
    X(NVML_ERROR_NOT_SUPPORTED, 3) \
    X(NVML_ERROR_NO_PERMISSION, 4) \
    X(NVML_ERROR_NOT_FOUND, 6) \
    X(NVML_ERROR_INSUFFICIENT_SIZE, 7) \
    X(NVML_ERROR_DRIVER_NOT_LOADED, 9) \
    X(NVML_ERROR_LIBRARY_NOT_FOUND, 12) \
    X(NVML_ERROR_GPU_IS_LOST, 15) \
    X(NVML_ERROR_RESET_REQUIRED, 16) \
    X(NVML_ERROR_OPERATING_SYSTEM, 17) \
    X(NVML_ERROR_LIB_RM_VERSION_MISMATCH, 18) \
    X(NVML_ERROR_UNKNOWN, 999) \
    X(NVML_GPU_UTILIZATION_SAMPLES, 1) \
    X(NVML_VALUE_TYPE_DOUBLE, 0) \
    X(NVML_VALUE_TYPE_UNSIGNED_INT, 1) \
    X(NVML_CLOCK_SM, 1) \
    X(NVML_CLOCK_MEM, 2) \
    X(NVML_TEMPERATURE_GPU, 0) \
    X(NVML_DEVICE_MIG_DISABLE, 0) \
    X(NVML_DEVICE_MIG_ENABLE, 1)

#define AS_ENUM(name, value) name = value,
enum { CONSTANTS(AS_ENUM) };

typedef int nvmlReturn_t;
typedef struct unit *nvmlDevice_t;
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct { unsigned int gpu, memory; } nvmlUtilization_t;
typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;
typedef union {
    double dVal;
    unsigned int uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    signed long long sllVal;
    signed int siVal;
    unsigned short usVal;
} nvmlValue_t;
typedef struct { unsigned long long timeStamp; nvmlValue_t sampleValue; } nvmlSample_t;

#define STRUCTURES \
    "nvmlMemory_t %zu total %zu free %zu used %zu\n" \
    "nvmlUtilization_t %zu gpu %zu memory %zu\n" \
    "c_nvmlProcessInfo_v2_t %zu pid %zu usedGpuMemory %zu\n" \
    "nvmlValue_t %zu dVal %zu uiVal %zu\n" \
    "nvmlSample_t %zu timeStamp %zu sampleValue %zu\n"

enum { MAX_GPUS = 8, MAX_MIG = 7, MAX_POINTS = 64, BUFFER = 120 };

struct series { int count; double time[MAX_POINTS], value[MAX_POINTS]; };

struct gpu {
    char name[96], uuid[96], procs[512];
    struct series util, mem_util, mem_used, power, sm_clock, mem_clock, temperature, throttle;
    double power_limit, app_sm, app_mem, link_gen, link_width, link_max, nvlinks, nvlinks_up, nvlinks_asleep;
    double mem_total, before, lost_at;
    int mig, linear, handle_error, procs_error, own_power;
};

struct unit { int gpu, mig; };

static struct gpu gpus[MAX_GPUS];
static struct unit units[MAX_GPUS][MAX_MIG + 1];
static struct {
    char version[64], unsupported[512], denied[512];
    int count, init_error, no_samples, dry, doubles, crash_times, hang_times;
    double period, lost_at, hang_at, crash_at, error_at, error_until, slow;
    int error;
} driver;
static double began = -1;
static struct account *account;

static double seconds(void) {
    struct timespec now;
    /* The clock that drivers were seen to stamp their samples with; no document says so. */
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static double elapsed(void) { return seconds() - began; }

static double at(const struct series *series, double time, int linear) {
    int i = 0;
    if (series->count == 0) return 0;
    while (i + 1 < series->count && series->time[i + 1] <= time) i++;
    if (!linear || i + 1 == series->count || time < series->time[i]) return series->value[i];
    double share = (time - series->time[i]) / (series->time[i + 1] - series->time[i]);
    return series->value[i] + share * (series->value[i + 1] - series->value[i]);
}

static void add(struct series *series, const char *text, int *fresh) {
    double value = 0, time = 0;
    sscanf(text, "%lf@%lf", &value, &time);
    if (*fresh) series->count = 0;
    *fresh = 0;
    series->time[series->count] = time;
    series->value[series->count++] = value;
}

static void fixed(struct series *series, double value) {
    series->count = 1;
    series->time[0] = 0;
    series->value[0] = value;
}

static void set_gpu(struct gpu *gpu, const char *key, const char *value, int *fresh) {
    struct { const char *name; struct series *series; } known[] = {
        {"util", &gpu->util}, {"mem_util", &gpu->mem_util}, {"mem_used", &gpu->mem_used},
        {"power", &gpu->power}, {"sm_clock", &gpu->sm_clock}, {"mem_clock", &gpu->mem_clock},
        {"temperature", &gpu->temperature}, {"throttle", &gpu->throttle},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(key, known[i].name)) {
            gpu->own_power |= known[i].series == &gpu->power;
            add(known[i].series, value, &fresh[i]);
            return;
        }
    if (!strcmp(key, "name")) snprintf(gpu->name, sizeof gpu->name, "%s", value);
    else if (!strcmp(key, "uuid")) snprintf(gpu->uuid, sizeof gpu->uuid, "%s", value);
    else if (!strcmp(key, "mem_total")) gpu->mem_total = atof(value);
    else if (!strcmp(key, "before")) gpu->before = atof(value);
    else if (!strcmp(key, "lost_at")) gpu->lost_at = atof(value);
    else if (!strcmp(key, "mig")) gpu->mig = atoi(value);
    else if (!strcmp(key, "linear")) gpu->linear = atoi(value);
    else if (!strcmp(key, "procs")) snprintf(gpu->procs, sizeof gpu->procs, "%s", value);
    else if (!strcmp(key, "procs_error")) gpu->procs_error = atoi(value);
    else if (!strcmp(key, "power_limit")) gpu->power_limit = atof(value);
    else if (!strcmp(key, "app_sm")) gpu->app_sm = atof(value);
    else if (!strcmp(key, "app_mem")) gpu->app_mem = atof(value);
    else if (!strcmp(key, "link_gen")) gpu->link_gen = atof(value);
    else if (!strcmp(key, "link_width")) gpu->link_width = atof(value);
    else if (!strcmp(key, "link_max")) gpu->link_max = atof(value);
    else if (!strcmp(key, "nvlinks")) gpu->nvlinks = gpu->nvlinks_up = atof(value);
    else if (!strcmp(key, "nvlinks_up")) gpu->nvlinks_up = atof(value);
    else if (!strcmp(key, "nvlinks_asleep")) gpu->nvlinks_asleep = atof(value);
    else if (!strcmp(key, "handle_error")) gpu->handle_error = atoi(value);
    else { fprintf(stderr, "nvml_standin: unknown key gpu %s\n", key); exit(99); }
}

static void set_driver(const char *key, const char *value) {
    struct { const char *name; int *number; } whole[] = {
        {"count", &driver.count}, {"init_error", &driver.init_error}, {"no_samples", &driver.no_samples},
        {"dry", &driver.dry}, {"doubles", &driver.doubles}, {"error", &driver.error},
        {"crash_times", &driver.crash_times}, {"hang_times", &driver.hang_times},
    };
    struct { const char *name; double *number; } real[] = {
        {"period", &driver.period}, {"lost_at", &driver.lost_at}, {"hang_at", &driver.hang_at},
        {"crash_at", &driver.crash_at}, {"error_at", &driver.error_at},
        {"error_until", &driver.error_until}, {"slow", &driver.slow},
    };
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (!strcmp(key, whole[i].name)) { *whole[i].number = atoi(value); return; }
    for (size_t i = 0; i < sizeof real / sizeof *real; i++)
        if (!strcmp(key, real[i].name)) { *real[i].number = atof(value); return; }
    if (!strcmp(key, "account")) account = open_account(value);
    else if (!strcmp(key, "driver")) snprintf(driver.version, sizeof driver.version, "%s", value);
    else if (!strcmp(key, "unsupported")) snprintf(driver.unsupported, sizeof driver.unsupported, ",%s,", value);
    else if (!strcmp(key, "denied")) snprintf(driver.denied, sizeof driver.denied, ",%s,", value);
    else { fprintf(stderr, "nvml_standin: unknown key %s\n", key); exit(99); }
}

static void defaults(void) {
    memset(&driver, 0, sizeof driver);
    memset(gpus, 0, sizeof gpus);
    strcpy(driver.version, "550.54.15");
    driver.count = 1;
    driver.period = 0.1;
    driver.lost_at = driver.hang_at = driver.crash_at = driver.error_at = driver.error_until = 1e18;
    driver.crash_times = driver.hang_times = 1 << 30;
    for (int i = 0; i < MAX_GPUS; i++) {
        struct gpu *gpu = &gpus[i];
        snprintf(gpu->name, sizeof gpu->name, "NVIDIA Stand-in %d", 100);
        snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-%08x-0000-4000-8000-00000000000%d", 0x5ca1ab1e + i, i);
        gpu->mem_total = 81920;
        gpu->before = 77;
        gpu->power_limit = 400;
        gpu->app_sm = 1410;
        gpu->app_mem = 1593;
        gpu->link_gen = 4;
        gpu->link_width = gpu->link_max = 16;
        gpu->lost_at = 1e18;
        fixed(&gpu->mem_util, 5);
        fixed(&gpu->mem_used, 2048);
        fixed(&gpu->power, 250);
        fixed(&gpu->sm_clock, 1410);
        fixed(&gpu->mem_clock, 1593);
        fixed(&gpu->temperature, 45);
        fixed(&gpu->throttle, 0);
        for (int part = 0; part <= MAX_MIG; part++) units[i][part] = (struct unit){i, part - 1};
    }
}

static void load(void) {
    const char *path = getenv("NVML_STANDIN");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[4096], *rest;
    int fresh[MAX_GPUS][16];
    defaults();
    memset(fresh, 1, sizeof fresh);
    if (!file) { fprintf(stderr, "nvml_standin: cannot read NVML_STANDIN\n"); exit(99); }
    while (fgets(line, sizeof line, file)) {
        int index = -1;
        for (char *word = strtok_r(line, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest)) {
            if (!strcmp(word, "gpu")) { index = atoi(strtok_r(NULL, " \t\n", &rest)); continue; }
            char *value = strchr(word, '=');
            if (!value) { fprintf(stderr, "nvml_standin: no value: %s\n", word); exit(99); }
            *value++ = 0;
            for (char *c = value; *c; c++) if (*c == '_' && !strcmp(word, "name")) *c = ' ';
            if (index < 0) set_driver(word, value);
            else set_gpu(&gpus[index], word, value, fresh[index]);
        }
    }
    fclose(file);
}

/* A fault that is to happen a few times only keeps its count in a file, since it ends the process. */
static int again(const char *fault, int times) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%s", getenv("NVML_STANDIN"), fault);
    FILE *file = fopen(path, "a");
    if (!file) return 1;
    fseek(file, 0, SEEK_END);
    int done = (int)ftell(file);
    if (done < times) fputc('x', file);
    fclose(file);
    return done < times;
}

static nvmlReturn_t trouble(nvmlDevice_t unit) {
    double now = elapsed();
    if (now >= driver.hang_at && again("hang", driver.hang_times)) for (;;) pause();
    if (now >= driver.crash_at && again("crash", driver.crash_times)) abort();
    if (now >= driver.lost_at || now >= gpus[unit->gpu].lost_at) return NVML_ERROR_GPU_IS_LOST;
    if (now >= driver.error_at && now < driver.error_until) return driver.error;
    return NVML_SUCCESS;
}

static int in_list(const char *list, const char *what) {
    char word[64];
    snprintf(word, sizeof word, ",%s,", what);
    return strstr(list, word) != NULL;
}

static int unsupported(const char *what) { return in_list(driver.unsupported, what); }

static nvmlReturn_t allow(nvmlDevice_t unit, const char *what) {
    nvmlReturn_t found = trouble(unit);
    if (found != NVML_SUCCESS) return found;
    if (driver.slow > 0) usleep((useconds_t)(driver.slow * 1e6));
    /* A GPU in MIG mode, and each of its parts, answers for memory only. */
    if (gpus[unit->gpu].mig && strcmp(what, "memory")) return NVML_ERROR_NOT_SUPPORTED;
    if (in_list(driver.denied, what)) return NVML_ERROR_NO_PERMISSION;
    return unsupported(what) ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

/* Utilisation in the `span` seconds before `time`: as scripted, else what the account says. */
static double util_at(int index, double time, double span) {
    const struct gpu *gpu = &gpus[index];
    double joules;
    if (gpu->util.count || !account) return at(&gpu->util, time, gpu->linear);
    return 100 * busy_between(&account->gpu[index], began + time - span, began + time, &joules) / span;
}

/* Power over the last 0.1 s: as scripted, else 80 W of idling and what the account says. */
static double power_of(int index) {
    double now = elapsed(), joules;
    if (gpus[index].own_power || !account) return at(&gpus[index].power, now, gpus[index].linear);
    busy_between(&account->gpu[index], began + now - 0.1, began + now, &joules);
    return 80 + joules / 0.1;
}

static double value(nvmlDevice_t unit, const struct series *series) {
    return at(series, elapsed(), gpus[unit->gpu].linear);
}

static nvmlReturn_t number(nvmlDevice_t unit, const char *what, const struct series *series, double scale,
                           unsigned int *out) {
    nvmlReturn_t found = allow(unit, what);
    if (found == NVML_SUCCESS) *out = (unsigned int)(value(unit, series) * scale + 0.5);
    return found;
}

const char *standin_layout(void) {
    static char text[1024];
    snprintf(text, sizeof text, STRUCTURES,
             sizeof(nvmlMemory_t), offsetof(nvmlMemory_t, total), offsetof(nvmlMemory_t, free),
             offsetof(nvmlMemory_t, used),
             sizeof(nvmlUtilization_t), offsetof(nvmlUtilization_t, gpu), offsetof(nvmlUtilization_t, memory),
             sizeof(nvmlProcessInfo_t), offsetof(nvmlProcessInfo_t, pid),
             offsetof(nvmlProcessInfo_t, usedGpuMemory),
             sizeof(nvmlValue_t), offsetof(nvmlValue_t, dVal), offsetof(nvmlValue_t, uiVal),
             sizeof(nvmlSample_t), offsetof(nvmlSample_t, timeStamp), offsetof(nvmlSample_t, sampleValue));
    return text;
}

#define AS_TEXT(name, value) #name " " #value "\n"
const char *standin_constants(void) { return CONSTANTS(AS_TEXT); }

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    load();
    if (began < 0) began = seconds();
    if (driver.hang_at < 0 && again("hang", driver.hang_times)) for (;;) pause();
    if (driver.crash_at < 0 && again("crash", driver.crash_times)) abort();
    return driver.init_error;
}

nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }
const char *nvmlErrorString(nvmlReturn_t code) { (void)code; return "stand-in error"; }

nvmlReturn_t nvmlSystemGetDriverVersion(char *out, unsigned int size) {
    snprintf(out, size, "%s", driver.version);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *out) {
    *out = (unsigned int)driver.count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *out) {
    if (index >= (unsigned int)driver.count) return NVML_ERROR_INVALID_ARGUMENT;
    if (gpus[index].handle_error) return gpus[index].handle_error;
    *out = &units[index][0];
    return NVML_SUCCESS;
}

static void uuid_of(nvmlDevice_t unit, char *out, size_t size) {
    const char *uuid = gpus[unit->gpu].uuid;
    if (unit->mig < 0) snprintf(out, size, "%s", uuid);
    else snprintf(out, size, "MIG-%s-mig%d", uuid + 4, unit->mig);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *out) {
    char own[128];
    for (int index = 0; index < driver.count; index++)
        for (int part = 0; part <= gpus[index].mig; part++) {
            uuid_of(&units[index][part], own, sizeof own);
            if (!strcmp(uuid, own)) {
                *out = &units[index][part];
                return gpus[index].handle_error;
            }
        }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t unit, char *out, unsigned int size) {
    uuid_of(unit, out, size);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t unit, char *out, unsigned int size) {
    snprintf(out, size, unit->mig < 0 ? "%s" : "%s MIG 1g.10gb", gpus[unit->gpu].name);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t unit, unsigned int *out) {
    *out = (unsigned int)(unit->mig < 0 ? unit->gpu : unit->mig);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t unit, unsigned int *current, unsigned int *pending) {
    if (unsupported("mig_mode")) return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = gpus[unit->gpu].mig ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t unit, unsigned int *out) {
    (void)unit;
    *out = MAX_MIG;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t unit, unsigned int index, nvmlDevice_t *out) {
    if ((int)index >= gpus[unit->gpu].mig) return NVML_ERROR_NOT_FOUND;
    *out = &units[unit->gpu][index + 1];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t unit, nvmlDevice_t *out) {
    if (unit->mig < 0) return NVML_ERROR_INVALID_ARGUMENT;
    *out = &units[unit->gpu][0];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t unit, unsigned int *out) {
    if (unit->mig < 0) return NVML_ERROR_INVALID_ARGUMENT;
    *out = 7 + (unsigned int)unit->mig;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t unit, unsigned int *out) {
    *out = 0;
    return unit->mig < 0 ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t unit, nvmlMemory_t *out) {
    nvmlReturn_t found = allow(unit, "memory");
    double parts = gpus[unit->gpu].mig && unit->mig >= 0 ? gpus[unit->gpu].mig : 1;
    if (found != NVML_SUCCESS) return found;
    out->total = (unsigned long long)(gpus[unit->gpu].mem_total / parts * 1048576);
    out->used = (unsigned long long)(value(unit, &gpus[unit->gpu].mem_used) * 1048576);
    if (account) out->used += (unsigned long long)account->gpu[unit->gpu].memory;
    out->free = out->total - out->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t unit, nvmlUtilization_t *out) {
    nvmlReturn_t found = allow(unit, "utilization");
    if (found != NVML_SUCCESS) return found;
    out->gpu = (unsigned int)(util_at(unit->gpu, elapsed(), driver.period) + 0.5);
    out->memory = (unsigned int)(value(unit, &gpus[unit->gpu].mem_util) + 0.5);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t unit, int kind, unsigned long long seen, int *type,
                                  unsigned int *count, nvmlSample_t *out) {
    nvmlReturn_t found = allow(unit, "samples");
    if (found != NVML_SUCCESS) return found;
    if (driver.no_samples || kind != NVML_GPU_UTILIZATION_SAMPLES) return NVML_ERROR_NOT_SUPPORTED;
    *type = driver.doubles ? NVML_VALUE_TYPE_DOUBLE : NVML_VALUE_TYPE_UNSIGNED_INT;
    if (!out) { *count = BUFFER; return NVML_SUCCESS; }
    const struct gpu *gpu = &gpus[unit->gpu];
    long newest = (long)(elapsed() / driver.period);
    unsigned int filled = 0;
    for (long i = newest - BUFFER + 1; i <= newest && filled < *count; i++) {
        double time = (double)i * driver.period;
        double util = i < 0 ? gpu->before : util_at(unit->gpu, time, driver.period);
        unsigned long long stamp = (unsigned long long)((began + time) * 1e6);
        if (stamp <= seen || (driver.dry && util == 0)) continue;
        memset(&out[filled], 0, sizeof *out);
        out[filled].timeStamp = stamp;
        if (driver.doubles) out[filled].sampleValue.dVal = util;
        else out[filled].sampleValue.uiVal = (unsigned int)(util + 0.5);
        filled++;
    }
    *count = filled;
    return filled ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t unit, unsigned int *out) {
    nvmlReturn_t found = allow(unit, "power");
    if (found == NVML_SUCCESS) *out = (unsigned int)(power_of(unit->gpu) * 1000 + 0.5);
    return found;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t unit, int kind, unsigned int *out) {
    const struct gpu *gpu = &gpus[unit->gpu];
    return number(unit, "clocks", kind == NVML_CLOCK_MEM ? &gpu->mem_clock : &gpu->sm_clock, 1, out);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t unit, int sensor, unsigned int *out) {
    (void)sensor;
    return number(unit, "temperature", &gpus[unit->gpu].temperature, 1, out);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t unit, unsigned long long *out) {
    nvmlReturn_t found = allow(unit, "throttle");
    if (found == NVML_SUCCESS) *out = (unsigned long long)value(unit, &gpus[unit->gpu].throttle);
    return found;
}

#ifndef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t unit, unsigned long long *out) {
    return nvmlDeviceGetCurrentClocksThrottleReasons(unit, out);
}
#endif

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t unit, unsigned long long *out) {
    nvmlReturn_t found = allow(unit, "energy");
    const struct gpu *gpu = &gpus[unit->gpu];
    double joules = gpu->own_power || !account ? value(unit, &gpu->power) * elapsed()
                                               : 80 * elapsed() + account->gpu[unit->gpu].joules;
    if (found == NVML_SUCCESS) *out = (unsigned long long)(1e6 + joules * 1000);
    return found;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t unit, unsigned int *out) {
    nvmlReturn_t found = allow(unit, "power_limit");
    if (found == NVML_SUCCESS) *out = (unsigned int)(gpus[unit->gpu].power_limit * 1000 + 0.5);
    return found;
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t unit, int kind, unsigned int *out) {
    const struct gpu *gpu = &gpus[unit->gpu];
    nvmlReturn_t found = allow(unit, "app_clocks");
    if (found == NVML_SUCCESS) *out = (unsigned int)(kind == NVML_CLOCK_MEM ? gpu->app_mem : gpu->app_sm);
    return found;
}

static nvmlReturn_t pcie(nvmlDevice_t unit, double value, unsigned int *out) {
    nvmlReturn_t found = allow(unit, "link");
    if (found == NVML_SUCCESS) *out = (unsigned int)value;
    return found;
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t unit, unsigned int *out) {
    return pcie(unit, gpus[unit->gpu].link_gen, out);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t unit, unsigned int *out) {
    return pcie(unit, gpus[unit->gpu].link_width, out);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t unit, unsigned int *out) {
    return pcie(unit, gpus[unit->gpu].link_max, out);
}

/* Of the links that it has the first ones sleep, the next ones are active, the others inactive. */
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t unit, unsigned int link, unsigned int *out) {
    const struct gpu *gpu = &gpus[unit->gpu];
    nvmlReturn_t found = allow(unit, "nvlink");
    if (found != NVML_SUCCESS) return found;
    if (gpu->nvlinks == 0) return NVML_ERROR_NOT_SUPPORTED;
    if (link >= gpu->nvlinks) return NVML_ERROR_INVALID_ARGUMENT;
    *out = link < gpu->nvlinks_asleep ? 2 : link < gpu->nvlinks_up ? 1 : 0;
    return NVML_SUCCESS;
}

/* The PIDs stand in a file, one a line, that a test may rewrite at any time. */
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t unit, unsigned int *count,
                                                     nvmlProcessInfo_t *out) {
    const struct gpu *gpu = &gpus[unit->gpu];
    nvmlReturn_t found = allow(unit, "processes");
    unsigned int pid, listed = 0;
    if (found != NVML_SUCCESS) return found;
    if (gpu->procs_error) return gpu->procs_error;
    FILE *file = gpu->procs[0] ? fopen(gpu->procs, "r") : NULL;
    while (file && fscanf(file, "%u", &pid) == 1) {
        if (out && listed < *count) {
            memset(&out[listed], 0, sizeof *out);
            out[listed].pid = pid;
        }
        listed++;
    }
    if (file) fclose(file);
    if (account && account->gpu[unit->gpu].pid) {
        if (out && listed < *count) {
            memset(&out[listed], 0, sizeof *out);
            out[listed].pid = (unsigned int)account->gpu[unit->gpu].pid;
        }
        listed++;
    }
    found = listed > (out ? *count : 0) ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
    *count = listed;
    return found;
}

#ifndef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t unit, unsigned int *count,
                                                     nvmlProcessInfo_t *out) {
    return nvmlDeviceGetComputeRunningProcesses_v2(unit, count, out);
}
#endif
