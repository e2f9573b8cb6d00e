/* Entry points about the use of a GPU: memory, processes, MIG slices. */
#include "api.h"

#include <string.h>

#define CONTEXT_BYTES (512ull << 20)

static unsigned long long used_bytes(const gpu_t *g)
{
    unsigned long long used = 600ull << 20; /* the driver's own */
    for (int i = 0; i < MAX_CLIENTS; i++)
        used += g->clients[i].used ? CONTEXT_BYTES : 0;
    for (int i = 0; i < MAX_FOREIGN; i++)
        used += g->foreign[i].used ? g->foreign[i].memory_bytes : 0;
    return used < g->profile.memory_bytes ? used : g->profile.memory_bytes;
}

ret_t nvmlDeviceGetMemoryInfo(device_t d, memory_t *out)
{
    BEGIN_FOR(d, 1);
    *out = (memory_t){g->profile.memory_bytes, g->profile.memory_bytes - used_bytes(g), used_bytes(g)};
    END(OK);
}

ret_t nvmlDeviceGetMemoryInfo_v2(device_t d, memory_v2_t *out)
{
    BEGIN_FOR(d, 1);
    if (out->version != (sizeof(memory_v2_t) | 2u << 24))
        END(ARGUMENT_VERSION_MISMATCH);
    unsigned long long reserved = 600ull << 20, used = used_bytes(g);
    *out = (memory_v2_t){out->version, g->profile.memory_bytes, reserved, g->profile.memory_bytes - used, used - reserved};
    END(OK);
}

ret_t nvmlDeviceGetComputeRunningProcesses_v3(device_t d, uint32_t *count, process_t *out)
{
    BEGIN_FOR(d, 1);
    process_t all[MAX_CLIENTS + MAX_FOREIGN];
    uint32_t n = 0, room = *count;
    for (int i = 0; i < MAX_CLIENTS; i++) {
        const client_t *c = &g->clients[i];
        uint32_t seen = !c->used;
        for (uint32_t k = 0; k < n && !seen; k++)
            seen = all[k].pid == (uint32_t)c->pid; /* threads of one process */
        if (!seen)
            all[n++] = (process_t){(uint32_t)c->pid, CONTEXT_BYTES, 0xffffffff, 0xffffffff};
    }
    for (int i = 0; i < MAX_FOREIGN; i++)
        if (g->foreign[i].used)
            all[n++] = (process_t){(uint32_t)g->foreign[i].pid, g->foreign[i].memory_bytes, 0xffffffff, 0xffffffff};
    *count = n;
    if (n && (!out || room < n))
        END(INSUFFICIENT_SIZE);
    if (n)
        memcpy(out, all, n * sizeof *out);
    END(OK);
}

ret_t nvmlDeviceGetGraphicsRunningProcesses_v3(device_t d, uint32_t *count, process_t *out)
{
    (void)out;
    BEGIN_FOR(d, 1);
    *count = 0;
    END(OK);
}

ret_t nvmlDeviceGetMigMode(device_t d, uint32_t *current, uint32_t *pending)
{
    BEGIN(d);
    *current = g->mig_current;
    *pending = g->mig_pending;
    END(g->profile.has_mig ? OK : NOT_SUPPORTED);
}

ret_t nvmlDeviceGetMaxMigDeviceCount(device_t d, uint32_t *count)
{
    BEGIN(d);
    *count = g->profile.has_mig ? 7 : 0;
    END(OK);
}

ret_t nvmlDeviceGetMigDeviceHandleByIndex(device_t d, uint32_t index, device_t *out)
{
    BEGIN(d);
    if (!g->profile.has_mig)
        END(NOT_SUPPORTED);
    if (!g->mig_current || index >= g->mig_instances)
        END(NOT_FOUND);
    *out = (device_t)(uintptr_t)(MIG_HANDLE + 0x100 * (uint32_t)gpu_index(d) + index);
    END(OK);
}

ret_t nvmlDeviceIsMigDeviceHandle(device_t d, uint32_t *yes)
{
    BEGIN_FOR(d, 1);
    *yes = (uint32_t)is_mig(d);
    END(OK);
}

ret_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device_t d, device_t *out)
{
    BEGIN_FOR(d, 1);
    *out = (device_t)(uintptr_t)(GPU_HANDLE + (uint32_t)gpu_index(d));
    END(is_mig(d) ? OK : INVALID_ARGUMENT);
}

/* No process is ever sampled: the fake has no notion of shares of an SM. */
ret_t nvmlDeviceGetProcessUtilization(device_t d, void *out, uint32_t *count, unsigned long long since)
{
    (void)out, (void)since;
    BEGIN(d);
    *count = 0;
    END(NOT_FOUND);
}

ret_t nvmlDeviceGetTotalEccErrors(device_t d, uint32_t kind, uint32_t counter, unsigned long long *errors)
{
    (void)kind, (void)counter;
    BEGIN(d);
    *errors = 0;
    END(OK);
}

/* Passively cooled. */
ret_t nvmlDeviceGetFanSpeed(device_t d, uint32_t *percent)
{
    (void)percent;
    BEGIN(d);
    END(NOT_SUPPORTED);
}
