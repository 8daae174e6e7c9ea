/* A disk that fails or is watched: every call of a process to the system that touches files below
 * one folder, from whatever library, goes through here.
 *
 * A seccomp filter makes such calls a signal (SIGSYS); its handler lets a call pass (with a mark in
 * an argument that the kernel does not look at, which the filter knows), fails it, or writes it to
 * a log. Loaded with LD_PRELOAD; tests/faulty_disk.py steers it with the disk_* functions.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#define MARK 0x5eed5eed
#define FILES 65536

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#define REG(c, n) ((c)->uc_mcontext.gregs[n])
#define NUMBER(c) REG(c, REG_RAX)
#define RESULT(c) REG(c, REG_RAX)
#define ARGS(c) {REG(c, REG_RDI), REG(c, REG_RSI), REG(c, REG_RDX), REG(c, REG_R10), REG(c, REG_R8)}
static long pass(long n, long a, long b, long c, long d, long e) {
    long result;
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = MARK;
    __asm__ volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
                     "r"(r9) : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#define NUMBER(c) ((c)->uc_mcontext.regs[8])
#define RESULT(c) ((c)->uc_mcontext.regs[0])
#define ARGS(c) {(c)->uc_mcontext.regs[0], (c)->uc_mcontext.regs[1], (c)->uc_mcontext.regs[2], \
                 (c)->uc_mcontext.regs[3], (c)->uc_mcontext.regs[4]}
static long pass(long n, long a, long b, long c, long d, long e) {
    register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
        x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = MARK;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#error "no other processor is known here"
#endif

static const int CALLS[] = {
    SYS_openat, SYS_close, SYS_read, SYS_pread64, SYS_write, SYS_writev, SYS_pwrite64, SYS_fsync,
    SYS_fdatasync, SYS_ftruncate, SYS_renameat, SYS_renameat2, SYS_linkat, SYS_unlinkat, SYS_mkdirat,
#ifdef SYS_open
    SYS_open, SYS_rename, SYS_link, SYS_unlink, SYS_mkdir,
#endif
};
#define N_CALLS ((int)(sizeof CALLS / sizeof *CALLS))

static char folder[4096];
static size_t folder_length;
static int ours[FILES];     /* by file descriptor: the number of its opening, 0 if not below */
static int opened;
static int log_file = -1;
static char kinds[64];      /* letters of the calls that count: o r w s n l u m t */
static long counted, fail_at;
static long tally[128];     /* all calls below the folder, by their letters */
static int fail_with, lasting;
static volatile int busy;

void disk_folder(const char *path) {
    strncpy(folder, path, sizeof folder - 1);
    folder_length = strlen(folder);
    memset(ours, 0, sizeof ours);
}
void disk_fail(const char *which, long at, int error, int keeps_failing) {
    strncpy(kinds, which, sizeof kinds - 1);
    counted = 0, fail_at = at, fail_with = error, lasting = keeps_failing;
}
long disk_counted(void) { return counted; }
long disk_tally(int kind) { return tally[kind]; }
void disk_log(int file) { log_file = file; }

static int is_below(const char *path) {
    return folder_length && path && !strncmp(path, folder, folder_length);
}

struct entry { int kind, id, flags, length, second; int64_t offset; };

static void note(int kind, int id, int flags, int64_t offset, const void *data, int length,
                 const char *other) {
    struct entry entry = {kind, id, flags, length, other ? (int)strlen(other) : 0, offset};
    if (log_file < 0) return;
    pass(SYS_write, log_file, (long)&entry, sizeof entry, 0, 0);
    if (length) pass(SYS_write, log_file, (long)data, length, 0, 0);
    if (other) pass(SYS_write, log_file, (long)other, entry.second, 0, 0);
}
void disk_mark(int number) {
    while (__sync_lock_test_and_set(&busy, 1)) {}
    note('k', number, 0, 0, 0, 0, 0);
    __sync_lock_release(&busy);
}

/* Whether this call fails, being of a kind that counts. */
static int fails(char kind) {
    tally[(int)kind]++;
    if (!fail_with || !strchr(kinds, kind)) return 0;
    counted++;
    return counted == fail_at || (lasting && counted > fail_at);
}

static long handle(long n, const long *given) {
    long a[5], result;
    const char *path, *other = 0;
    char kind = 0;
    int fd;
    memcpy(a, given, sizeof a);
#ifdef SYS_open
    if (n == SYS_open) { n = SYS_openat; a[3] = a[2], a[2] = a[1], a[1] = a[0], a[0] = AT_FDCWD; }
    if (n == SYS_unlink) { n = SYS_unlinkat; a[1] = a[0], a[0] = AT_FDCWD, a[2] = 0; }
    if (n == SYS_mkdir) { n = SYS_mkdirat; a[2] = a[1], a[1] = a[0], a[0] = AT_FDCWD; }
    if (n == SYS_rename || n == SYS_link) {
        n = n == SYS_rename ? SYS_renameat2 : SYS_linkat;
        a[3] = a[1], a[1] = a[0], a[0] = a[2] = AT_FDCWD, a[4] = 0;
    }
#endif
    if (n == SYS_renameat) { n = SYS_renameat2; a[4] = 0; }
    switch (n) {
    case SYS_openat: kind = 'o'; break;
    case SYS_unlinkat: kind = 'u'; break;
    case SYS_mkdirat: kind = 'm'; break;
    case SYS_renameat2: kind = 'n'; break;
    case SYS_linkat: kind = 'l'; break;
    case SYS_read: case SYS_pread64: kind = 'r'; break;
    case SYS_write: case SYS_writev: case SYS_pwrite64: kind = 'w'; break;
    case SYS_fsync: case SYS_fdatasync: kind = 's'; break;
    case SYS_ftruncate: kind = 't'; break;
    }
    if (strchr("oumnl", kind) && kind) {
        path = (const char *)a[1];
        if (!is_below(path)) return pass(n, a[0], a[1], a[2], a[3], a[4]);
        if (fails(kind)) return -fail_with;
        if (kind == 'n' || kind == 'l') other = (const char *)a[3];
        result = pass(n, a[0], a[1], a[2], a[3], a[4]);
        if (kind == 'o') {
            if (result < 0 || result >= FILES) return result;
            ours[result] = ++opened;
            note('o', opened, (int)a[2], 0, path, strlen(path), 0);
        } else if (result >= 0)
            note(kind, 0, 0, 0, path, strlen(path), other);
        return result;
    }
    fd = (int)a[0];
    if (fd < 0 || fd >= FILES || !ours[fd]) return pass(n, a[0], a[1], a[2], a[3], a[4]);
    if (n == SYS_close) {
        ours[fd] = 0;
        return pass(n, a[0], 0, 0, 0, 0);
    }
    if (fails(kind)) return -fail_with;
    int64_t offset = 0;
    if (kind == 'w') {
        offset = n == SYS_pwrite64 ? a[3] : pass(SYS_lseek, fd, 0, SEEK_CUR, 0, 0);
        if (pass(SYS_fcntl, fd, F_GETFL, 0, 0, 0) & O_APPEND) offset = -1;
    }
    result = pass(n, a[0], a[1], a[2], a[3], a[4]);
    if (kind == 'w' && result > 0) {
        if (n == SYS_writev) {
            const struct iovec *parts = (const struct iovec *)a[1];
            long left = result;
            for (int i = 0; i < a[2] && left > 0; i++) {
                long size = (long)parts[i].iov_len < left ? (long)parts[i].iov_len : left;
                note('w', ours[fd], 0, offset, parts[i].iov_base, size, 0);
                if (offset >= 0) offset += size;
                left -= size;
            }
        } else
            note('w', ours[fd], 0, offset, (const void *)a[1], result, 0);
    } else if (kind == 's' && result >= 0)
        note('s', ours[fd], 0, 0, 0, 0, 0);
    else if (kind == 't' && result >= 0)
        note('t', ours[fd], 0, a[1], 0, 0, 0);
    return result;
}

static void trapped(int number, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    long args[5] = ARGS(c);
    int error = errno;
    (void)number, (void)info;
    while (__sync_lock_test_and_set(&busy, 1)) pass(SYS_sched_yield, 0, 0, 0, 0, 0);
    long result = handle(NUMBER(c), args);
    __sync_lock_release(&busy);
    RESULT(c) = result;
    errno = error;
}

int disk_start(void) {
    struct sigaction action;
    struct sock_filter filter[N_CALLS + 8];
    int n = 0;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = trapped;
    action.sa_flags = SA_SIGINFO;
    sigfillset(&action.sa_mask);
    if (sigaction(SIGSYS, &action, 0)) return errno;
#define STEP(...) filter[n++] = (struct sock_filter)__VA_ARGS__
    STEP(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])));
    STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK, N_CALLS + 1, 0));
    STEP(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    for (int i = 0; i < N_CALLS; i++)
        STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALLS[i], N_CALLS - i, 0));
    STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
    struct sock_fprog program = {n, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return errno;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
        return errno;
    return 0;
}
