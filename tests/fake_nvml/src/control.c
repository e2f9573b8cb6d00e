/* What is not NVML: the calls by which tests set the stage, and the kernel that workers run. */
#define _GNU_SOURCE
#include "state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

uint64_t fake_sizeof_profile(void) { return sizeof(profile_t); }

int64_t fake_created_ns(const state_t *s) { return s->created_ns; }

/* Adds a GPU; returns its index or -1. */
int fake_add_gpu(state_t *s, const profile_t *profile, const char *uuid, const char *serial, uint32_t bus)
{
    lock(s);
    int i = s->n_gpus < MAX_GPUS ? (int)s->n_gpus : -1;
    if (i >= 0) {
        gpu_t *g = &s->gpus[i];
        g->profile = *profile;
        snprintf(g->uuid, sizeof g->uuid, "%s", uuid);
        snprintf(g->serial, sizeof g->serial, "%s", serial);
        g->bus = bus;
        g->limit_mw = profile->limit_mw;
        g->temperature_override = -1;
        g->sensor_gain = 1;
        g->counter_base_mj = profile->energy_offset_mj;
        g->t_ns = s->created_ns;
        g->clock_mhz = profile->idle_mhz;
        g->power_w = profile->idle_w;
        g->temperature_c = 28 + 45 * profile->idle_w / (profile->max_limit_mw / 1e3);
        update(g, g->t_ns);
        s->n_gpus++;
    }
    unlock(s);
    return i;
}

enum {
    SET_LIMIT_MW, SET_LOST, SET_TEMPERATURE, SET_MIG, SET_MIG_INSTANCES, SET_VIRTUALIZATION, SET_POWER_READING_MW,
    SET_THERMAL_MHZ, SET_THERMAL_REASON, SET_LOCKS_IGNORED, SET_LOCK_MHZ, RESET_LOCK, RESET_COUNTER, SET_IDLE_NOISE, SET_SENSOR_GAIN_PPM,
};

/* One setting of one GPU. A negative value takes an override away. */
void fake_set(state_t *s, uint32_t gpu, uint32_t what, int64_t v)
{
    lock(s);
    gpu_t *g = &s->gpus[gpu];
    int64_t now = now_ns();
    integrate(g, now);
    switch (what) {
    case SET_LIMIT_MW: g->limit_mw = (uint32_t)v; break;
    case SET_LOST: g->lost = (uint32_t)v; break;
    case SET_TEMPERATURE: g->temperature_override = (int32_t)v; break;
    case SET_MIG: g->mig_current = g->mig_pending = (uint32_t)v; break;
    case SET_MIG_INSTANCES: g->mig_instances = (uint32_t)v; break;
    case SET_VIRTUALIZATION: g->virtualization = (uint32_t)v; break;
    case SET_POWER_READING_MW:
        g->power_override_on = v >= 0;
        g->power_override_mw = (uint32_t)(v >= 0 ? v : 0);
        break;
    case SET_THERMAL_MHZ: g->thermal_mhz = (uint32_t)v; break;
    case SET_THERMAL_REASON: g->thermal_reason = (uint32_t)v; break;
    case SET_LOCKS_IGNORED: g->locks_ignored = (uint32_t)v; break;
    case SET_LOCK_MHZ:
        g->locked = 1;
        g->lock_min_mhz = g->lock_max_mhz = (uint32_t)v;
        record(s, AUDIT_LOCK, gpu, (uint32_t)v, (uint32_t)v, OK);
        break;
    case RESET_LOCK:
        g->locked = 0;
        record(s, AUDIT_RESET, gpu, 0, 0, OK);
        break;
    case RESET_COUNTER:
        g->counted_j = energy_at(g, now);
        g->counter_base_mj = 0;
        break;
    case SET_SENSOR_GAIN_PPM: g->sensor_gain = (double)v / 1e6; break;
    case SET_IDLE_NOISE: g->profile.noisy_idle_reasons = (uint32_t)v; break;
    }
    update(g, now);
    unlock(s);
}

/* Returns 0, or -1 if the table is full. */
int fake_rule(state_t *s, const char *function, uint32_t code, double delay_s, uint64_t after, uint64_t times, int32_t gpu, int32_t pid)
{
    int done = -1;
    lock(s);
    for (int i = 0; i < MAX_RULES && done; i++)
        if (!s->rules[i].used) {
            rule_t *r = &s->rules[i];
            *r = (rule_t){.used = 1, .code = code, .delay_s = delay_s, .after = after, .times = times, .gpu = gpu, .pid = pid};
            snprintf(r->function, sizeof r->function, "%s", function);
            done = 0;
        }
    unlock(s);
    return done;
}

void fake_clear_rules(state_t *s)
{
    lock(s);
    memset(s->rules, 0, sizeof s->rules);
    unlock(s);
}

/* A process of somebody else's that shows on a GPU; memory 0 takes it away. */
int fake_foreign(state_t *s, uint32_t gpu, int32_t pid, uint64_t memory_bytes)
{
    int done = -1;
    lock(s);
    foreign_t *f = s->gpus[gpu].foreign, *slot = NULL;
    for (int i = 0; i < MAX_FOREIGN; i++)
        if (f[i].used ? f[i].pid == pid : !slot)
            slot = &f[i];
    if (slot) {
        *slot = (foreign_t){pid, memory_bytes > 0, memory_bytes};
        done = 0;
    }
    unlock(s);
    return done;
}

/* A steady load in the name of a live process. Both shares 0: only hold a context. Returns 0 or -1. */
int fake_load(state_t *s, uint32_t gpu, int32_t pid, double compute, double memory)
{
    lock(s);
    gpu_t *g = &s->gpus[gpu];
    int64_t now = now_ns();
    update(g, now);
    client_t *c = client_of(g, pid, -1);
    if (c) {
        c->active = compute > 0 || memory > 0;
        c->compute = compute;
        c->memory = memory;
        update(g, now);
    }
    unlock(s);
    return c ? 0 : -1;
}

void fake_unload(state_t *s, uint32_t gpu, int32_t pid)
{
    lock(s);
    gpu_t *g = &s->gpus[gpu];
    int64_t now = now_ns();
    update(g, now);
    for (int i = 0; i < MAX_CLIENTS; i++)
        if (g->clients[i].used && g->clients[i].pid == pid)
            g->clients[i].used = 0;
    update(g, now);
    unlock(s);
}

typedef struct {
    int64_t t_ns;
    double energy_j, power_w, temperature_c;
    uint32_t clock_mhz, reasons, busy, locked, lock_min_mhz, lock_max_mhz, limit_mw, clients;
} truth_t;

void fake_truth(state_t *s, uint32_t gpu, truth_t *out)
{
    lock(s);
    gpu_t *g = &s->gpus[gpu];
    update(g, now_ns());
    uint32_t clients = 0;
    for (int i = 0; i < MAX_CLIENTS; i++)
        clients += g->clients[i].used;
    *out = (truth_t){g->t_ns, energy_at(g, g->t_ns), g->power_w, g->temperature_c, g->clock_mhz, g->reasons, g->busy,
                     g->locked, g->lock_min_mhz, g->lock_max_mhz, g->limit_mw, clients};
    unlock(s);
}

/* NaN for a time before the change points that are still kept. */
double fake_energy_at(state_t *s, uint32_t gpu, int64_t t_ns)
{
    lock(s);
    const gpu_t *g = &s->gpus[gpu];
    int known = g->n_history <= HISTORY || g->history[g->n_history % HISTORY].t_ns <= t_ns;
    double e = known ? energy_at(g, t_ns) : NAN;
    unlock(s);
    return e;
}

/* Copies up to n entries with seq >= from; returns how many. */
uint64_t fake_audit(state_t *s, uint64_t from, uint64_t n, audit_t *out)
{
    uint64_t k = 0;
    lock(s);
    if (s->n_audit > AUDIT_RING && from < s->n_audit - AUDIT_RING)
        from = s->n_audit - AUDIT_RING;
    for (; from < s->n_audit && k < n; from++)
        out[k++] = s->audit[from % AUDIT_RING];
    unlock(s);
    return k;
}

uint64_t fake_kernels(state_t *s, uint64_t from, uint64_t n, kernel_t *out)
{
    uint64_t k = 0;
    lock(s);
    if (s->n_kernels > KERNEL_RING && from < s->n_kernels - KERNEL_RING)
        from = s->n_kernels - KERNEL_RING;
    for (; from < s->n_kernels && k < n; from++)
        out[k++] = s->kernels[from % KERNEL_RING];
    unlock(s);
    return k;
}

uint64_t fake_calls(state_t *s, const char *function)
{
    uint64_t n = 0;
    lock(s);
    for (uint32_t i = 0; i < s->n_calls; i++)
        if (!strcmp(s->calls[i].function, function))
            n = s->calls[i].count;
    unlock(s);
    return n;
}

/* The i-th function that was ever called, in order of its first call; 0: there are fewer. */
int fake_called(state_t *s, uint32_t i, char name[64], uint64_t *count)
{
    lock(s);
    int there = i < s->n_calls;
    if (there) {
        memcpy(name, s->calls[i].function, sizeof s->calls[i].function);
        *count = s->calls[i].count;
    }
    unlock(s);
    return there;
}

/* For the test of the robust mutex: returns with it held, as a process killed at the worst moment would leave it. */
void fake_hold_mutex(state_t *s) { lock(s); }

/* ---- for workers: on the state of their environment ---- */

static state_t *own_gpu(int32_t gpu)
{
    state_t *s = state_of_process();
    return s && gpu >= 0 && gpu < (int32_t)s->n_gpus ? s : NULL;
}

/* Index of a GPU by UUID, or by a unique beginning of it; -1. */
int fake_index_of(const char *uuid)
{
    state_t *s = state_of_process();
    int found = -1;
    for (uint32_t i = 0; s && i < s->n_gpus; i++)
        if (!strncmp(s->gpus[i].uuid, uuid, strlen(uuid)))
            found = found == -1 ? (int)i : -2;
    return found < 0 ? -1 : found;
}

/* Opens this process's context on a GPU, as the first CUDA call does. */
int fake_context(int32_t gpu)
{
    state_t *s = own_gpu(gpu);
    return s ? fake_load(s, (uint32_t)gpu, getpid(), 0, 0) : UNINITIALIZED;
}

/* One step of the kernel's loop. Returns the nanoseconds still to go at the present clock; <= 0: done. */
static int64_t remaining_ns(gpu_t *g, const client_t *c)
{
    uint32_t n = g->busy ? g->busy : 1;
    return (int64_t)((1 - c->progress) * 1e9 * n * seconds_at(&g->profile, g->clock_mhz, c->compute, c->memory));
}

/* Runs for compute_s * top clock / achieved clock + memory_s seconds, keeps the GPU busy and logs its true interval.
 * Returns 0, or an NVML code (GPU lost, injected faults for "fake_kernel"). */
int fake_kernel(int32_t gpu, double compute_s, double memory_s)
{
    state_t *s = own_gpu(gpu);
    if (!s || compute_s < 0 || memory_s < 0 || compute_s + memory_s <= 0)
        return s ? INVALID_ARGUMENT : UNINITIALIZED;
    gpu_t *g = &s->gpus[gpu];
    double delay_s;
    lock(s);
    int code = rules_apply(s, __func__, gpu, &delay_s);
    unlock(s);
    sleep_ns((int64_t)(delay_s * 1e9));
    if (code || (code = g->lost ? GPU_IS_LOST : OK) || (code = fake_load(s, (uint32_t)gpu, getpid(), 0, 0) ? INVALID_ARGUMENT : OK))
        return code;
    lock(s);
    int64_t now = now_ns();
    update(g, now);
    client_t *c = client_of(g, getpid(), gettid());
    if (!c) {
        unlock(s);
        return INVALID_ARGUMENT;
    }
    c->active = c->is_kernel = 1;
    c->compute = compute_s;
    c->memory = memory_s;
    c->progress = 0;
    update(g, now);
    kernel_t k = {.start_ns = now, .start_j = energy_at(g, now), .compute_s = compute_s, .memory_s = memory_s, .pid = getpid(), .gpu = (uint32_t)gpu};
    for (int64_t left = remaining_ns(g, c); left > 0 && !g->lost; left = remaining_ns(g, c)) {
        unlock(s);
        sleep_ns(left < 10000000 ? left : 10000000); /* short naps: the clock may change meanwhile */
        lock(s);
        update(g, now_ns());
    }
    k.end_ns = g->t_ns;
    k.end_j = energy_at(g, g->t_ns);
    k.clock_mhz = g->clock_mhz;
    k.reasons = g->reasons;
    k.seq = s->n_kernels;
    code = g->lost ? GPU_IS_LOST : OK;
    c->used = c->active = 0;
    update(g, g->t_ns);
    if (!code)
        s->kernels[s->n_kernels++ % KERNEL_RING] = k;
    unlock(s);
    return code;
}
