/* Mapping, locking, injection rules and the audit ring. */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void sleep_ns(int64_t ns)
{
    if (ns <= 0)
        return;
    int64_t until = now_ns() + ns;
    struct timespec t = {until / 1000000000, until % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

void lock(state_t *s)
{
    /* The owner died inside: what it left half done is a sample at worst, the state stays usable. */
    int error = pthread_mutex_lock(&s->mutex);
    if (error == EOWNERDEAD)
        error = pthread_mutex_consistent(&s->mutex);
    if (error) {
        fprintf(stderr, "fake NVML: the mutex of the state is broken (%s)\n", strerror(error));
        abort();
    }
}

void unlock(state_t *s) { pthread_mutex_unlock(&s->mutex); }

static state_t *map(const char *path, int create)
{
    int fd = open(path, create ? O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    struct stat st;
    int bad = create ? ftruncate(fd, sizeof(state_t)) : fstat(fd, &st) || st.st_size != (off_t)sizeof(state_t);
    void *p = bad ? MAP_FAILED : mmap(NULL, sizeof(state_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return p == MAP_FAILED ? NULL : p;
}

/* A new state file without GPUs; NULL (errno set) if it cannot be made. */
state_t *fake_create(const char *path, const char *driver, int cuda)
{
    state_t *s = map(path, 1);
    if (!s)
        return NULL;
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&s->mutex, &a);
    snprintf(s->driver, sizeof s->driver, "%s", driver);
    snprintf(s->nvml, sizeof s->nvml, "13.%s", driver);
    s->cuda = cuda;
    s->created_ns = now_ns();
    s->size = sizeof(state_t);
    s->magic = FAKE_MAGIC;
    return s;
}

state_t *fake_attach(const char *path)
{
    state_t *s = map(path, 0);
    if (s && (s->magic != FAKE_MAGIC || s->size != sizeof(state_t))) {
        munmap(s, sizeof(state_t));
        return NULL;
    }
    return s;
}

void fake_detach(state_t *s) { munmap(s, sizeof(state_t)); }

static pthread_once_t once = PTHREAD_ONCE_INIT;
static state_t *own;

static void open_own(void)
{
    const char *path = getenv("FAKE_NVML_STATE");
    own = path ? fake_attach(path) : NULL;
}

state_t *state_of_process(void)
{
    pthread_once(&once, open_own);
    return own;
}

uint64_t start_time_of(int32_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    char *p = strrchr(text, ')'); /* the name before it may hold anything */
    char run_state;
    unsigned long long start;
    if (!p || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &run_state, &start) != 2)
        return 0;
    return run_state == 'Z' || run_state == 'X' ? 0 : start;
}

void record(state_t *s, uint32_t kind, uint32_t gpu, uint32_t low, uint32_t high, uint32_t code)
{
    s->audit[s->n_audit % AUDIT_RING] = (audit_t){s->n_audit, now_ns(), getpid(), kind, gpu, low, high, code};
    s->n_audit++;
}

/* A rule for nvmlDeviceGetCount also meets nvmlDeviceGetCount_v2. */
static int meets(const char *rule, const char *function)
{
    size_t n = strlen(rule);
    if (strncmp(rule, function, n))
        return 0;
    return !function[n] || (function[n] == '_' && function[n + 1] == 'v' && strspn(function + n + 2, "0123456789") == strlen(function + n + 2));
}

static void count(state_t *s, const char *function)
{
    for (uint32_t i = 0; i < s->n_calls; i++)
        if (!strcmp(s->calls[i].function, function)) {
            s->calls[i].count++;
            return;
        }
    if (s->n_calls < MAX_CALLS) {
        calls_t *c = &s->calls[s->n_calls++];
        snprintf(c->function, sizeof c->function, "%s", function);
        c->count = 1;
    }
}

int rules_apply(state_t *s, const char *function, int gpu, double *delay_s)
{
    int code = OK, pid = getpid();
    *delay_s = 0;
    count(s, function);
    for (int i = 0; i < MAX_RULES; i++) {
        rule_t *r = &s->rules[i];
        if (!r->used || (r->gpu >= 0 && r->gpu != gpu) || (r->pid >= 0 && r->pid != pid) || !meets(r->function, function))
            continue;
        r->seen++;
        if (r->seen <= r->after || (r->times && r->seen > r->after + r->times))
            continue;
        *delay_s += r->delay_s;
        if (r->code && !code)
            code = (int)r->code;
    }
    return code;
}
