/* How every entry point begins and ends, and the structs that pass. Structs are laid out as in the ctypes of nvidia-ml-py. */
#ifndef FAKE_API_H
#define FAKE_API_H

#include "state.h"

typedef uint32_t ret_t;
typedef void *device_t;

/* A handle is 0x1000 + GPU index, or 0x100000 + 0x100 * GPU index + instance for a MIG slice. */
#define GPU_HANDLE 0x1000u
#define MIG_HANDLE 0x100000u

/* Counts the call, applies injected faults and delays. On OK the state is locked and must be left by leave().
 * `device` may be NULL for calls about no GPU. MIG slices pass only with `mig_too`. */
ret_t enter(const char *function, device_t device, int mig_too, state_t **s, gpu_t **g);
ret_t leave(state_t *s, ret_t code);
ret_t api_started(const char *function); /* for nvmlInit: state there, faults applied; not locked */
int is_mig(device_t device);
int gpu_index(device_t device);

#define BEGIN_FOR(device, mig_too)                                  \
    state_t *s;                                                     \
    gpu_t *g;                                                       \
    ret_t code_ = enter(__func__, (device), (mig_too), &s, &g);     \
    if (code_)                                                      \
        return code_;                                               \
    (void)g
#define BEGIN(device) BEGIN_FOR(device, 0)
#define END(code) return leave(s, (code))

#define ALL_GPUS_OF(s, i) for (uint32_t i = 0; i < (s)->n_gpus; i++)

typedef struct {
    char bus_id_legacy[16];
    uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} pci_info_t;

typedef struct {
    unsigned long long total, free, used;
} memory_t;

typedef struct {
    uint32_t version;
    unsigned long long total, reserved, free, used;
} memory_v2_t;

typedef struct {
    uint32_t pid;
    unsigned long long used_memory;
    uint32_t gpu_instance, compute_instance;
} process_t;

typedef struct {
    uint32_t gpu, memory;
} utilization_t;

typedef struct {
    uint32_t version, sensor;
    int32_t temperature;
} temperature_v1_t;

typedef struct {
    uint32_t field, scope;
    int64_t timestamp, latency_us;
    uint32_t value_type, code;
    union {
        double d;
        uint32_t ui;
        unsigned long long ull;
    } value;
} field_t;

#endif
