/* How every entry point begins and ends; entry points about the system and about what a GPU is. */
#define _GNU_SOURCE
#include "api.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static int references; /* nvmlInit calls of this process that are still open */

int is_mig(device_t d) { return (uintptr_t)d >= MIG_HANDLE; }

int gpu_index(device_t d)
{
    uintptr_t h = (uintptr_t)d;
    return is_mig(d) ? (int)((h - MIG_HANDLE) / 0x100) : h >= GPU_HANDLE ? (int)(h - GPU_HANDLE) : -1;
}

ret_t api_started(const char *function)
{
    state_t *s = state_of_process();
    double delay_s;
    if (!s)
        return DRIVER_NOT_LOADED;
    lock(s);
    int code = rules_apply(s, function, -1, &delay_s);
    unlock(s);
    sleep_ns((int64_t)(delay_s * 1e9));
    return (ret_t)code;
}

ret_t enter(const char *function, device_t device, int mig_too, state_t **s, gpu_t **g)
{
    double delay_s;
    int i = device ? gpu_index(device) : -1;
    *g = NULL;
    *s = state_of_process();
    if (!*s || !__atomic_load_n(&references, __ATOMIC_SEQ_CST))
        return UNINITIALIZED;
    if (device && (i < 0 || i >= (int)(*s)->n_gpus))
        return INVALID_ARGUMENT;
    lock(*s);
    int code = rules_apply(*s, function, i, &delay_s);
    if (delay_s > 0) { /* others go on meanwhile */
        unlock(*s);
        sleep_ns((int64_t)(delay_s * 1e9));
        lock(*s);
    }
    if (!code && device) {
        *g = &(*s)->gpus[i];
        if ((*g)->lost)
            code = GPU_IS_LOST;
        else if (is_mig(device) && !mig_too)
            code = NOT_SUPPORTED;
        else
            update(*g, now_ns());
    }
    if (code)
        unlock(*s);
    return (ret_t)code;
}

ret_t leave(state_t *s, ret_t code)
{
    unlock(s);
    return code;
}

static ret_t put(char *out, uint32_t size, const char *text)
{
    if (!out)
        return INVALID_ARGUMENT;
    if (strlen(text) + 1 > size)
        return INSUFFICIENT_SIZE;
    memcpy(out, text, strlen(text) + 1);
    return OK;
}

ret_t nvmlInitWithFlags(uint32_t flags)
{
    (void)flags;
    ret_t code = api_started(__func__);
    if (code)
        return code;
    state_t *s = state_of_process();
    lock(s);
    __atomic_add_fetch(&references, 1, __ATOMIC_SEQ_CST);
    record(s, AUDIT_INIT, 0, 0, 0, OK);
    unlock(s);
    return OK;
}

ret_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

ret_t nvmlInit(void) { return nvmlInitWithFlags(0); }

ret_t nvmlShutdown(void)
{
    BEGIN(NULL);
    __atomic_sub_fetch(&references, 1, __ATOMIC_SEQ_CST);
    record(s, AUDIT_SHUTDOWN, 0, 0, 0, OK);
    END(OK);
}

const char *nvmlErrorString(ret_t code)
{
    switch (code) {
    case OK: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case 10: return "Timeout";
    case 13: return "Function Not Found";
    case GPU_IS_LOST: return "GPU is lost";
    case NO_DATA: return "No data";
    case ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

ret_t nvmlSystemGetDriverVersion(char *out, uint32_t size)
{
    BEGIN(NULL);
    END(put(out, size, s->driver));
}

ret_t nvmlSystemGetNVMLVersion(char *out, uint32_t size)
{
    BEGIN(NULL);
    END(put(out, size, s->nvml));
}

ret_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    BEGIN(NULL);
    *version = s->cuda;
    END(OK);
}

ret_t nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

ret_t nvmlDeviceGetCount_v2(uint32_t *count)
{
    BEGIN(NULL);
    *count = s->n_gpus;
    END(OK);
}

ret_t nvmlDeviceGetHandleByIndex_v2(uint32_t index, device_t *out)
{
    BEGIN(NULL);
    if (index >= s->n_gpus)
        END(INVALID_ARGUMENT);
    *out = (device_t)(uintptr_t)(GPU_HANDLE + index);
    END(s->gpus[index].lost ? GPU_IS_LOST : OK);
}

static void mig_uuid(const gpu_t *g, uint32_t instance, char *out, size_t size)
{
    snprintf(out, size, "MIG-%08x-%s", instance + 1, g->uuid + strlen("GPU-00000000-"));
}

ret_t nvmlDeviceGetHandleByUUID(const char *uuid, device_t *out)
{
    BEGIN(NULL);
    char slice[128];
    ALL_GPUS_OF(s, i)
    {
        const gpu_t *one = &s->gpus[i];
        if (!strcmp(one->uuid, uuid)) {
            *out = (device_t)(uintptr_t)(GPU_HANDLE + i);
            END(OK);
        }
        for (uint32_t k = 0; one->mig_current && k < one->mig_instances; k++) {
            mig_uuid(one, k, slice, sizeof slice);
            if (!strcmp(slice, uuid)) {
                *out = (device_t)(uintptr_t)(MIG_HANDLE + 0x100 * i + k);
                END(OK);
            }
        }
    }
    END(NOT_FOUND);
}

static void bus_id(const gpu_t *g, char *out, size_t size) { snprintf(out, size, "%08X:%02X:00.0", 0, g->bus); }

ret_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, device_t *out)
{
    BEGIN(NULL);
    char mine[32];
    ALL_GPUS_OF(s, i)
    {
        bus_id(&s->gpus[i], mine, sizeof mine);
        if (!strcasecmp(mine, id) || !strcasecmp(mine + 4, id)) { /* the domain has eight digits or four */
            *out = (device_t)(uintptr_t)(GPU_HANDLE + i);
            END(OK);
        }
    }
    END(NOT_FOUND);
}

ret_t nvmlDeviceGetPciInfo_v3(device_t d, pci_info_t *out)
{
    BEGIN_FOR(d, 1);
    memset(out, 0, sizeof *out);
    bus_id(g, out->bus_id, sizeof out->bus_id);
    snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "0000:%02X:00.0", g->bus & 0xff);
    out->bus = g->bus;
    out->pci_device_id = g->profile.pci_device_id;
    END(OK);
}

ret_t nvmlDeviceGetIndex(device_t d, uint32_t *index)
{
    BEGIN_FOR(d, 1);
    *index = is_mig(d) ? (uint32_t)((uintptr_t)d & 0xff) : (uint32_t)gpu_index(d);
    END(OK);
}

ret_t nvmlDeviceGetName(device_t d, char *out, uint32_t size)
{
    BEGIN_FOR(d, 1);
    END(put(out, size, g->profile.name));
}

ret_t nvmlDeviceGetUUID(device_t d, char *out, uint32_t size)
{
    BEGIN_FOR(d, 1);
    char slice[128];
    mig_uuid(g, (uint32_t)((uintptr_t)d & 0xff), slice, sizeof slice);
    END(put(out, size, is_mig(d) ? slice : g->uuid));
}

ret_t nvmlDeviceGetSerial(device_t d, char *out, uint32_t size)
{
    BEGIN(d);
    END(put(out, size, g->serial));
}

ret_t nvmlDeviceGetBrand(device_t d, uint32_t *brand)
{
    BEGIN(d);
    *brand = g->profile.brand;
    END(OK);
}

ret_t nvmlDeviceGetArchitecture(device_t d, uint32_t *architecture)
{
    BEGIN(d);
    *architecture = g->profile.architecture;
    END(OK);
}

ret_t nvmlDeviceGetCudaComputeCapability(device_t d, int *major, int *minor)
{
    BEGIN_FOR(d, 1);
    *major = (int)g->profile.cc_major;
    *minor = (int)g->profile.cc_minor;
    END(OK);
}

ret_t nvmlDeviceGetPersistenceMode(device_t d, uint32_t *mode)
{
    BEGIN(d);
    *mode = 1;
    END(OK);
}

ret_t nvmlDeviceGetVirtualizationMode(device_t d, unsigned long long *mode)
{
    BEGIN(d);
    *mode = g->virtualization; /* pynvml passes 8 bytes */
    END(OK);
}

/* There is none on Linux. */
ret_t nvmlDeviceGetDriverModel_v2(device_t d, uint32_t *current, uint32_t *pending)
{
    (void)current, (void)pending;
    BEGIN(d);
    END(NOT_SUPPORTED);
}

ret_t nvmlDeviceGetDriverModel(device_t d, uint32_t *current, uint32_t *pending) { return nvmlDeviceGetDriverModel_v2(d, current, pending); }
