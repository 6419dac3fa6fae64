/* What the stand-in of CUDA made each GPU do, for the stand-in of NVML to report: a file that both map.
 *
 * GPUs are in NVML's order. Times are seconds of CLOCK_BOOTTIME, as the samples' are.
 */
#include <fcntl.h>
#include <sys/mman.h>

enum { ACCOUNT_GPUS = 8, ACCOUNT_SPANS = 8192 };

struct span { double from, until, watts; };

struct account_of_gpu {
    volatile unsigned long spans;
    double joules, memory;
    int pid;
    struct span span[ACCOUNT_SPANS];
};

struct account { struct account_of_gpu gpu[ACCOUNT_GPUS]; };

static struct account *open_account(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct account))) return NULL;
    void *mapped = mmap(NULL, sizeof(struct account), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return mapped == MAP_FAILED ? NULL : mapped;
}

/* Busy seconds between two moments; in `joules` what was used beyond idling. */
__attribute__((unused))
static double busy_between(const struct account_of_gpu *gpu, double from, double until, double *joules) {
    double busy = 0;
    unsigned long newest = gpu->spans, kept = newest < ACCOUNT_SPANS ? newest : ACCOUNT_SPANS;
    *joules = 0;
    for (unsigned long i = newest - kept; i < newest; i++) {
        const struct span *span = &gpu->span[i % ACCOUNT_SPANS];
        double first = span->from > from ? span->from : from, last = span->until < until ? span->until : until;
        if (last <= first) continue;
        busy += last - first;
        *joules += (last - first) * span->watts;
    }
    return busy;
}
