/* The fake driver's state: one memory-mapped file that every process using the fake shares.
 *
 * Times are CLOCK_MONOTONIC nanoseconds. Every function that touches the state locks `mutex` and unlocks it on
 * every path; the mutex is robust, so that a process killed inside does not block the others.
 */
#ifndef FAKE_STATE_H
#define FAKE_STATE_H

#include <pthread.h>
#include <stdint.h>

#define FAKE_MAGIC 0x70664e564d4c0001ULL
#define MAX_GPUS 16
#define MAX_CLOCKS 320
#define MAX_MEM_CLOCKS 4
#define MAX_CLIENTS 64
#define MAX_FOREIGN 16
#define MAX_RULES 64
#define MAX_CALLS 96
#define HISTORY 8192
#define AUDIT_RING 8192
#define KERNEL_RING 16384

/* Return codes of NVML, by number. */
enum {
    OK = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    GPU_IS_LOST = 15,
    NO_DATA = 21,
    ARGUMENT_VERSION_MISMATCH = 25,
};

/* Clock event reasons, by bit. */
enum { R_IDLE = 0x1, R_POWER_CAP = 0x4, R_HW_SLOWDOWN = 0x8, R_SW_THERMAL = 0x20, R_HW_THERMAL = 0x40, R_HW_BRAKE = 0x80 };

/* What a kind of GPU is. control.py fills this in; the layout is mirrored there field by field. */
typedef struct {
    char name[96];
    uint32_t architecture, cc_major, cc_minor, brand, pci_device_id;
    uint32_t has_energy_counter, has_locks, has_instant_power, has_mig;
    uint32_t n_clocks, clocks[MAX_CLOCKS]; /* MHz, descending */
    uint32_t n_mem_clocks, mem_clocks[MAX_MEM_CLOCKS];
    uint32_t default_mhz, max_mhz, idle_mhz;
    uint32_t limit_mw, default_limit_mw, min_limit_mw, max_limit_mw;
    uint32_t slowdown_c, noisy_idle_reasons;
    uint64_t memory_bytes;
    double idle_w, context_w, dynamic_w, memory_w, memory_sm_share; /* see power_w() */
    double v_floor, v_slope;
    double sensor_period_s, usage_window_s, instant_window_s, average_window_s;
    double energy_period_s;
    uint64_t energy_quantum_mj, energy_offset_mj;
} profile_t;

typedef struct {
    int64_t t_ns;
    double energy_j, power_w; /* energy up to t_ns, power from then on */
} point_t;

/* A process that holds a context; with `active` it also loads the GPU. */
typedef struct {
    int32_t pid, tid;
    uint64_t start_time; /* of the process, so that a reused pid is not taken for it */
    uint32_t used, active, is_kernel;
    double compute, memory; /* kernel: seconds at the top clock, and seconds whatever the clock; else: shares of time */
    double progress;        /* of the kernel, 0..1 */
} client_t;

typedef struct {
    int32_t pid;
    uint32_t used;
    uint64_t memory_bytes;
} foreign_t;

typedef struct {
    profile_t profile;
    char uuid[96], serial[32];
    uint32_t bus;
    uint32_t lost, locked, lock_min_mhz, lock_max_mhz, locks_ignored;
    uint32_t limit_mw, mig_current, mig_pending, mig_instances, virtualization;
    uint32_t thermal_mhz, thermal_reason; /* a clock ceiling for another reason than power, and its bits */
    uint32_t power_override_on, power_override_mw;
    double sensor_gain; /* of the power readings; the energy counter tells the truth */
    int32_t temperature_override; /* < 0: from the power */
    foreign_t foreign[MAX_FOREIGN];
    client_t clients[MAX_CLIENTS];
    /* what follows is derived: set by refresh(), integrated by advance() */
    double power_w, temperature_c;
    uint32_t clock_mhz, reasons, busy;
    int64_t t_ns, reaped_ns;
    double counted_j; /* true energy at the last reset of the counter */
    uint64_t counter_base_mj;
    double reason_ns[4]; /* power, software thermal, hardware thermal, power brake */
    uint64_t n_history;
    point_t history[HISTORY];
} gpu_t;

/* The next `times` calls (0: all) after the first `after` of `function` sleep, then return `code` if it is not 0. */
typedef struct {
    char function[64];
    uint32_t used, code;
    int32_t gpu, pid; /* -1: any */
    uint64_t after, times, seen;
    double delay_s;
} rule_t;

typedef struct {
    char function[64];
    uint64_t count;
} calls_t;

enum { AUDIT_LOCK = 1, AUDIT_RESET = 2, AUDIT_LIMIT = 3, AUDIT_INIT = 4, AUDIT_SHUTDOWN = 5 };

typedef struct {
    uint64_t seq;
    int64_t t_ns;
    int32_t pid;
    uint32_t kind, gpu, low, high, code;
} audit_t;

typedef struct {
    uint64_t seq;
    int64_t start_ns, end_ns;
    double start_j, end_j; /* true energy of the GPU at both times */
    double compute_s, memory_s;
    int32_t pid;
    uint32_t gpu, clock_mhz, reasons;
} kernel_t;

typedef struct {
    uint64_t magic, size;
    pthread_mutex_t mutex;
    char driver[80], nvml[80];
    int32_t cuda;
    uint32_t n_gpus, n_calls;
    int64_t created_ns;
    gpu_t gpus[MAX_GPUS];
    rule_t rules[MAX_RULES];
    calls_t calls[MAX_CALLS];
    uint64_t n_audit, n_kernels;
    audit_t audit[AUDIT_RING];
    kernel_t kernels[KERNEL_RING];
} state_t;

/* state.c */
state_t *state_of_process(void); /* the file $FAKE_NVML_STATE, mapped once; NULL if there is none */
void lock(state_t *s);
void unlock(state_t *s);
int64_t now_ns(void);
void sleep_ns(int64_t ns);
uint64_t start_time_of(int32_t pid); /* 0: no such live process */
void record(state_t *s, uint32_t kind, uint32_t gpu, uint32_t low, uint32_t high, uint32_t code);
int rules_apply(state_t *s, const char *function, int gpu, double *delay_s); /* locked; returns the injected code */

/* physics.c: all with the state locked */
double power_w(const profile_t *p, double mhz, double compute, double memory);
void update(gpu_t *g, int64_t now);  /* integrate up to now, then settle clock and power anew */
void integrate(gpu_t *g, int64_t now); /* only the first half, before a change */
double energy_at(const gpu_t *g, int64_t t);
double mean_power(const gpu_t *g, int64_t from, int64_t to);
uint32_t snap_clock(const profile_t *p, uint32_t mhz); /* the highest supported clock that is not above */
double reading_w(gpu_t *g, int64_t now, double window_s);
uint64_t counter_mj(const gpu_t *g, int64_t now);
client_t *client_of(gpu_t *g, int32_t pid, int32_t tid); /* NULL: table full */
double seconds_at(const profile_t *p, uint32_t mhz, double compute_s, double memory_s);

#endif
