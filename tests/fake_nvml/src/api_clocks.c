/* Entry points about clocks, power, energy and heat. */
#define _GNU_SOURCE
#include "api.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static ret_t list(uint32_t *count, uint32_t *out, const uint32_t *values, uint32_t n)
{
    uint32_t room = *count;
    *count = n;
    if (!n)
        return OK;
    if (!out || room < n)
        return INSUFFICIENT_SIZE;
    memcpy(out, values, n * sizeof *out);
    return OK;
}

ret_t nvmlDeviceGetSupportedMemoryClocks(device_t d, uint32_t *count, uint32_t *out)
{
    BEGIN(d);
    END(list(count, out, g->profile.mem_clocks, g->profile.n_mem_clocks));
}

/* Every memory clock but the lowest of several goes with the whole list; that one only with the idle end of it. */
ret_t nvmlDeviceGetSupportedGraphicsClocks(device_t d, uint32_t memory_mhz, uint32_t *count, uint32_t *out)
{
    BEGIN(d);
    const profile_t *p = &g->profile;
    uint32_t k = 0, skip = 0;
    while (k < p->n_mem_clocks && p->mem_clocks[k] != memory_mhz)
        k++;
    if (k == p->n_mem_clocks)
        END(NOT_FOUND);
    if (k && k + 1 == p->n_mem_clocks)
        while (skip < p->n_clocks && p->clocks[skip] > 420)
            skip++;
    END(list(count, out, p->clocks + skip, p->n_clocks - skip));
}

ret_t nvmlDeviceGetClockInfo(device_t d, uint32_t type, uint32_t *mhz)
{
    BEGIN(d);
    if (type > 3)
        END(INVALID_ARGUMENT);
    *mhz = type == 2 ? g->profile.mem_clocks[0] : type == 3 ? g->clock_mhz * 9 / 10 : g->clock_mhz;
    END(OK);
}

ret_t nvmlDeviceGetMaxClockInfo(device_t d, uint32_t type, uint32_t *mhz)
{
    BEGIN(d);
    if (type > 3)
        END(INVALID_ARGUMENT);
    *mhz = type == 2 ? g->profile.mem_clocks[0] : type == 3 ? g->profile.max_mhz * 9 / 10 : g->profile.max_mhz;
    END(OK);
}

ret_t nvmlDeviceGetClock(device_t d, uint32_t type, uint32_t id, uint32_t *mhz)
{
    if (id == 0)
        return nvmlDeviceGetClockInfo(d, type, mhz);
    BEGIN(d);
    if (id == 3)
        *mhz = type == 2 ? g->profile.mem_clocks[0] : g->profile.max_mhz;
    END(id == 3 ? OK : NOT_SUPPORTED); /* application clocks are gone */
}

static ret_t set_lock(gpu_t *g, uint32_t low, uint32_t high)
{
    const profile_t *p = &g->profile;
    if (!p->has_locks || !p->n_clocks)
        return NOT_SUPPORTED;
    if (low > high || high > p->max_mhz)
        return INVALID_ARGUMENT;
    int64_t now = now_ns();
    integrate(g, now);
    g->locked = 1;
    g->lock_min_mhz = low;
    g->lock_max_mhz = high;
    update(g, now);
    return OK;
}

ret_t nvmlDeviceSetGpuLockedClocks(device_t d, uint32_t low, uint32_t high)
{
    state_t *s;
    gpu_t *g;
    ret_t code = enter(__func__, d, 0, &s, &g);
    if (code) { /* refused tries are in the audit as well */
        if (s && code != UNINITIALIZED && gpu_index(d) >= 0) {
            lock(s);
            record(s, AUDIT_LOCK, (uint32_t)gpu_index(d), low, high, code);
            unlock(s);
        }
        return code;
    }
    code = set_lock(g, low, high);
    record(s, AUDIT_LOCK, (uint32_t)gpu_index(d), low, high, code);
    END(code);
}

ret_t nvmlDeviceResetGpuLockedClocks(device_t d)
{
    state_t *s;
    gpu_t *g;
    ret_t code = enter(__func__, d, 0, &s, &g);
    if (code) {
        if (s && code != UNINITIALIZED && gpu_index(d) >= 0) {
            lock(s);
            record(s, AUDIT_RESET, (uint32_t)gpu_index(d), 0, 0, code);
            unlock(s);
        }
        return code;
    }
    code = g->profile.has_locks ? OK : NOT_SUPPORTED;
    if (!code) {
        g->locked = 0;
        update(g, now_ns());
    }
    record(s, AUDIT_RESET, (uint32_t)gpu_index(d), 0, 0, code);
    END(code);
}

static uint32_t power_mw(gpu_t *g, double window_s)
{
    if (g->power_override_on)
        return g->power_override_mw;
    return (uint32_t)lround(reading_w(g, now_ns(), window_s) * g->sensor_gain * 1e3);
}

ret_t nvmlDeviceGetPowerUsage(device_t d, uint32_t *mw)
{
    BEGIN(d);
    *mw = power_mw(g, g->profile.usage_window_s);
    END(OK);
}

ret_t nvmlDeviceGetTotalEnergyConsumption(device_t d, unsigned long long *mj)
{
    BEGIN(d);
    if (g->profile.has_energy_counter)
        *mj = counter_mj(g, now_ns());
    END(g->profile.has_energy_counter ? OK : NOT_SUPPORTED);
}

static ret_t limit_mw(state_t *s, uint32_t *out, uint32_t value)
{
    *out = value;
    return leave(s, OK);
}

ret_t nvmlDeviceGetPowerManagementLimit(device_t d, uint32_t *mw)
{
    BEGIN(d);
    return limit_mw(s, mw, g->limit_mw);
}

ret_t nvmlDeviceGetPowerManagementDefaultLimit(device_t d, uint32_t *mw)
{
    BEGIN(d);
    return limit_mw(s, mw, g->profile.default_limit_mw);
}

ret_t nvmlDeviceGetEnforcedPowerLimit(device_t d, uint32_t *mw)
{
    BEGIN(d);
    return limit_mw(s, mw, g->limit_mw);
}

ret_t nvmlDeviceGetPowerManagementLimitConstraints(device_t d, uint32_t *low, uint32_t *high)
{
    BEGIN(d);
    *low = g->profile.min_limit_mw;
    *high = g->profile.max_limit_mw;
    END(OK);
}

ret_t nvmlDeviceSetPowerManagementLimit(device_t d, uint32_t mw)
{
    BEGIN(d);
    ret_t code = mw < g->profile.min_limit_mw || mw > g->profile.max_limit_mw ? INVALID_ARGUMENT : OK;
    if (!code) {
        g->limit_mw = mw;
        update(g, now_ns());
    }
    record(s, AUDIT_LIMIT, (uint32_t)gpu_index(d), mw, mw, code);
    END(code);
}

static int temperature_c(const gpu_t *g)
{
    return g->temperature_override >= 0 ? g->temperature_override : (int)lround(g->temperature_c);
}

ret_t nvmlDeviceGetTemperature(device_t d, uint32_t sensor, uint32_t *celsius)
{
    BEGIN(d);
    if (sensor)
        END(INVALID_ARGUMENT);
    *celsius = (uint32_t)temperature_c(g);
    END(OK);
}

ret_t nvmlDeviceGetTemperatureV(device_t d, temperature_v1_t *out)
{
    BEGIN(d);
    if (out->version != (sizeof(temperature_v1_t) | 1u << 24))
        END(ARGUMENT_VERSION_MISMATCH);
    out->temperature = temperature_c(g);
    END(OK);
}

ret_t nvmlDeviceGetTemperatureThreshold(device_t d, uint32_t kind, uint32_t *celsius)
{
    BEGIN(d);
    *celsius = g->profile.slowdown_c + (kind == 0 ? 3 : 0);
    END(kind < 2 ? OK : NOT_SUPPORTED);
}

/* The bits of an idle GPU flicker on some boards. */
static unsigned long long reasons(const gpu_t *g)
{
    return g->reasons | (!g->busy && now_ns() / 100000000 % 2 ? g->profile.noisy_idle_reasons : 0);
}

ret_t nvmlDeviceGetCurrentClocksEventReasons(device_t d, unsigned long long *out)
{
    BEGIN(d);
    *out = reasons(g);
    END(OK);
}

ret_t nvmlDeviceGetCurrentClocksThrottleReasons(device_t d, unsigned long long *out)
{
    BEGIN(d);
    *out = reasons(g);
    END(OK);
}

ret_t nvmlDeviceGetSupportedClocksEventReasons(device_t d, unsigned long long *out)
{
    BEGIN(d);
    *out = 0x1ff;
    END(OK);
}

ret_t nvmlDeviceGetPerformanceState(device_t d, uint32_t *state)
{
    BEGIN(d);
    *state = g->clock_mhz > g->profile.idle_mhz ? 0 : 8;
    END(OK);
}

ret_t nvmlDeviceGetPowerState(device_t d, uint32_t *state) { return nvmlDeviceGetPerformanceState(d, state); }

ret_t nvmlDeviceGetUtilizationRates(device_t d, utilization_t *out)
{
    BEGIN(d);
    *out = (utilization_t){g->busy ? 100 : 0, g->busy ? 40 : 0};
    END(OK);
}

static ret_t field_value(gpu_t *g, field_t *f)
{
    const profile_t *p = &g->profile;
    f->value.ull = 0;
    f->value_type = 1; /* unsigned int */
    switch (f->field) {
    case 185: /* average over a second or so */
    case 186: /* instant */
        f->value.ui = power_mw(g, f->field == 185 ? p->average_window_s : p->instant_window_s);
        return p->has_instant_power ? OK : NOT_SUPPORTED;
    case 187: f->value.ui = p->min_limit_mw; return OK;
    case 188: f->value.ui = p->max_limit_mw; return OK;
    case 189: f->value.ui = p->default_limit_mw; return OK;
    case 190:
    case 192: f->value.ui = g->limit_mw; return OK;
    case 83:
    case 74:
    case 75:
    case 269:
    case 270:
    case 271: break;
    default: return NOT_SUPPORTED;
    }
    f->value_type = 3; /* unsigned long long */
    if (f->field == 83) {
        f->value.ull = counter_mj(g, now_ns());
        return p->has_energy_counter ? OK : NOT_SUPPORTED;
    }
    int i = f->field == 74 ? 0 : f->field == 271 ? 3 : f->field == 270 ? 2 : 1;
    f->value.ull = (unsigned long long)g->reason_ns[i];
    return f->field >= 269 && p->architecture < 7 ? NOT_SUPPORTED : OK;
}

/* Each field has its own return code. A fault for one of them is injected as "field:186". */
ret_t nvmlDeviceGetFieldValues(device_t d, int32_t n, field_t *fields)
{
    BEGIN(d);
    for (int32_t i = 0; i < n; i++) {
        field_t *f = &fields[i];
        char name[] = "field:0000000000";
        double ignored;
        uint32_t id = f->field, digits = 1;
        for (uint32_t k = id; k >= 10; k /= 10)
            digits++;
        name[6 + digits] = 0;
        for (uint32_t k = 6 + digits; k > 6; k--, id /= 10)
            name[k - 1] = (char)('0' + id % 10);
        f->timestamp = now_ns() / 1000;
        f->latency_us = 0;
        f->code = field_value(g, f);
        int code = rules_apply(s, name, gpu_index(d), &ignored);
        if (code)
            f->code = (uint32_t)code;
    }
    END(OK);
}
