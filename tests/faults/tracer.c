/* Runs a command and its descendants under ptrace, and makes one system call of them a fault.
 *
 *   tracer --under DIR --class NAME --log FILE [--at N --do before|after|short|ERRNO [--on]] -- COMMAND ...
 *
 * Counted are calls that change files below DIR, by class of process: gpudebug, git, helper (the warden, the
 * sampler) or training (a recording that is played). Call number N (from 1) of class NAME meets SIGKILL before or after it, writes
 * half of its bytes, or fails with the number ERRNO without being made; with --on so does each later one.
 * FILE gets a line for each counted call: class, number, name, path. Exit status: that of COMMAND, 128+N by
 * a signal. A seccomp filter stops only the calls of interest, so that the rest costs nothing. x86-64.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum how { PATH0, AT1, FD0, OPEN, OPENAT, TWO, TWOAT };
static const struct call { long number; const char *name; enum how how; int second; } CALLS[] = {
    {SYS_open, "open", OPEN, 0}, {SYS_openat, "openat", OPENAT, 0}, {SYS_creat, "creat", PATH0, 0},
    {SYS_write, "write", FD0, 0}, {SYS_pwrite64, "pwrite", FD0, 0}, {SYS_writev, "writev", FD0, 0},
    {SYS_rename, "rename", PATH0, 0}, {SYS_renameat, "renameat", AT1, 0}, {SYS_renameat2, "renameat2", AT1, 0},
    {SYS_link, "link", PATH0, 0}, {SYS_linkat, "linkat", AT1, 0}, {SYS_unlink, "unlink", PATH0, 0},
    {SYS_unlinkat, "unlinkat", AT1, 0}, {SYS_mkdir, "mkdir", PATH0, 0}, {SYS_mkdirat, "mkdirat", AT1, 0},
    {SYS_rmdir, "rmdir", PATH0, 0}, {SYS_symlink, "symlink", TWO, 1}, {SYS_symlinkat, "symlinkat", TWOAT, 1},
    {SYS_fsync, "fsync", FD0, 0}, {SYS_fdatasync, "fdatasync", FD0, 0}, {SYS_ftruncate, "ftruncate", FD0, 0},
    {SYS_truncate, "truncate", PATH0, 0}, {SYS_chmod, "chmod", PATH0, 0}, {SYS_fchmod, "fchmod", FD0, 0},
    {SYS_fchmodat, "fchmodat", AT1, 0}, {SYS_flock, "flock", FD0, 0}, {SYS_utimensat, "utimensat", AT1, 0},
};
#define MANY (sizeof CALLS / sizeof *CALLS)

enum class { GPUDEBUG, GIT, HELPER, TRAINING };
static const char *CLASSES[] = {"gpudebug", "git", "helper", "training"};
struct process { pid_t pid; enum class class; int seen; int leaving; };
static struct process processes[4096];
static int known;
static char under[PATH_MAX];
static FILE *record;
static long counts[4], at;
static enum class wanted;
static const char *doing = "";
static int onwards;

static void fail(const char *what) { perror(what); exit(125); }

static struct process *find(pid_t pid) {
    for (int i = 0; i < known; i++) if (processes[i].pid == pid) return &processes[i];
    if (known == 4096) { fputs("too many processes\n", stderr); exit(125); }
    processes[known] = (struct process){pid, GPUDEBUG, 0, 0};
    return &processes[known++];
}

static void forget(pid_t pid) {
    for (int i = 0; i < known; i++) if (processes[i].pid == pid) { processes[i] = processes[--known]; return; }
}

/* The class of a process that was executed anew; the children of helpers are helpers. */
static enum class class_of(pid_t pid, enum class before) {
    char path[64], line[8192], program[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    ssize_t n = readlink(path, program, sizeof program - 1);
    program[n > 0 ? n : 0] = 0;
    const char *name = strrchr(program, '/');
    if (name && (!strncmp(name, "/git", 4))) return before == HELPER ? HELPER : GIT;
    if (before == TRAINING) return TRAINING;
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    int fd = open(path, O_RDONLY);
    n = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
    if (fd >= 0) close(fd);
    for (ssize_t i = 0; i < n; i++) if (!line[i]) line[i] = ' ';
    line[n > 0 ? n : 0] = 0;
    if (strstr(line, "replay")) return TRAINING;
    if (strstr(line, "warden") || strstr(line, "sampler")) return HELPER;
    return before == HELPER ? HELPER : GPUDEBUG;
}

static void text_at(pid_t pid, unsigned long address, char *into, size_t size) {
    size_t n = 0;
    while (n + sizeof(long) < size) {
        errno = 0;
        long word = ptrace(PTRACE_PEEKDATA, pid, address + n, 0);
        if (errno) break;
        memcpy(into + n, &word, sizeof word);
        if (memchr(&word, 0, sizeof word)) return;
        n += sizeof word;
    }
    into[n] = 0;
}

static void place_of_fd(pid_t pid, int fd, char *into) {
    char path[64];
    if (fd == AT_FDCWD) snprintf(path, sizeof path, "/proc/%d/cwd", pid);
    else snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    ssize_t n = readlink(path, into, PATH_MAX - 1);
    into[n > 0 ? n : 0] = 0;
}

static void joined(pid_t pid, int fd, unsigned long address, char *into) {
    char name[PATH_MAX], folder[PATH_MAX];
    text_at(pid, address, name, sizeof name);
    if (name[0] == '/') { strcpy(into, name); return; }
    place_of_fd(pid, fd, folder);
    snprintf(into, 2 * PATH_MAX, "%s/%s", folder, name);
}

/* Whether the call changes a file below `under`; its path. */
static int changes(pid_t pid, const struct call *call, const struct user_regs_struct *r, char *path) {
    path[0] = 0;
    switch (call->how) {
    case OPEN: case OPENAT: {
        long flags = call->how == OPEN ? r->rsi : r->rdx;
        if (!(flags & (O_CREAT | O_TRUNC)) && (flags & O_TMPFILE) != O_TMPFILE) return 0;
        joined(pid, call->how == OPEN ? AT_FDCWD : (int)r->rdi, call->how == OPEN ? r->rdi : r->rsi, path);
        break;
    }
    case PATH0: joined(pid, AT_FDCWD, r->rdi, path); break;
    case AT1:
        if (call->number == SYS_utimensat && !r->rsi) { place_of_fd(pid, r->rdi, path); break; }
        joined(pid, r->rdi, r->rsi, path);
        break;
    case FD0: place_of_fd(pid, r->rdi, path); break;
    case TWO: joined(pid, AT_FDCWD, r->rsi, path); break;
    case TWOAT: joined(pid, r->rsi, r->rdx, path); break;
    }
    return !strncmp(path, under, strlen(under));
}

static void kill_it(pid_t pid) { if (kill(pid, SIGKILL)) fail("kill"); }

static void meet(struct process *p) {
    struct user_regs_struct r;
    if (ptrace(PTRACE_GETREGS, p->pid, 0, &r)) { ptrace(PTRACE_CONT, p->pid, 0, 0); return; }
    const struct call *call = NULL;
    for (size_t i = 0; i < MANY; i++) if (CALLS[i].number == (long)r.orig_rax) call = &CALLS[i];
    static char path[2 * PATH_MAX + 2];
    if (!call || !changes(p->pid, call, &r, path)) { ptrace(PTRACE_CONT, p->pid, 0, 0); return; }
    long counted = ++counts[p->class];
    if (record) { fprintf(record, "%s %ld %s %s\n", CLASSES[p->class], counted, call->name, path); fflush(record); }
    int now = at && p->class == wanted && (counted == at || (onwards && counted > at));
    if (!now) { ptrace(PTRACE_CONT, p->pid, 0, 0); return; }
    if (!strcmp(doing, "before")) { kill_it(p->pid); ptrace(PTRACE_CONT, p->pid, 0, 0); return; }
    if (!strcmp(doing, "after")) { p->leaving = 1; ptrace(PTRACE_SYSCALL, p->pid, 0, 0); return; }
    if (!strcmp(doing, "short")) {
        if (call->number == SYS_write || call->number == SYS_pwrite64) { if (r.rdx > 1) r.rdx /= 2; }
    } else {
        r.orig_rax = -1;
        r.rax = -atoi(doing);
    }
    ptrace(PTRACE_SETREGS, p->pid, 0, &r);
    ptrace(PTRACE_CONT, p->pid, 0, 0);
}

static void install_filter(void) {
    struct sock_filter code[2 + 2 * MANY + 1];
    int n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < MANY; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALLS[i].number, 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("no_new_privs");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) fail("seccomp");
}

int main(int argc, char **argv) {
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--"); i++) {
        if (!strcmp(argv[i], "--on")) onwards = 1;
        else if (!strcmp(argv[i], "--under")) snprintf(under, sizeof under, "%s", argv[++i]);
        else if (!strcmp(argv[i], "--at")) at = atol(argv[++i]);
        else if (!strcmp(argv[i], "--do")) doing = argv[++i];
        else if (!strcmp(argv[i], "--log")) { record = fopen(argv[++i], "we"); if (!record) fail("log"); }
        else if (!strcmp(argv[i], "--class")) {
            i++;
            for (int c = 0; c < 4; c++) if (!strcmp(CLASSES[c], argv[i])) wanted = c;
        } else { fprintf(stderr, "unknown %s\n", argv[i]); return 125; }
    }
    if (i + 1 >= argc) return 125;
    pid_t root = fork();
    if (root < 0) fail("fork");
    if (!root) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0)) fail("traceme");
        raise(SIGSTOP);
        install_filter();
        execvp(argv[i + 1], argv + i + 1);
        fail("exec");
    }
    int status, result = 125;
    if (waitpid(root, &status, 0) != root) fail("wait");
    long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                   PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, root, 0, options)) fail("options");
    find(root)->seen = 1;
    ptrace(PTRACE_CONT, root, 0, 0);
    pid_t pid;
    while ((pid = waitpid(-1, &status, __WALL)) > 0) {
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (pid == root) result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            forget(pid);
            continue;
        }
        struct process *p = find(pid);
        int sig = WSTOPSIG(status), event = status >> 16;
        if (event == PTRACE_EVENT_SECCOMP) { meet(p); continue; }
        if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
            unsigned long child = 0;
            ptrace(PTRACE_GETEVENTMSG, pid, 0, &child);
            enum class class = p->class;
            find((pid_t)child)->class = class;
            ptrace(PTRACE_CONT, pid, 0, 0);
            continue;
        }
        if (event == PTRACE_EVENT_EXEC) {
            p->class = class_of(pid, p->class);
            ptrace(PTRACE_CONT, pid, 0, 0);
            continue;
        }
        if (sig == (SIGTRAP | 0x80)) {
            if (p->leaving) { p->leaving = 0; kill_it(pid); }
            ptrace(PTRACE_CONT, pid, 0, 0);
            continue;
        }
        /* The first stop of a new process is ptrace's; every other one is its own signal. */
        if (!p->seen && sig == SIGSTOP) { p->seen = 1; sig = 0; }
        else if (event) sig = 0;
        p->seen = 1;
        ptrace(PTRACE_CONT, pid, 0, sig);
    }
    if (record) fclose(record);
    return result;
}
