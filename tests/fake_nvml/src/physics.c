/* What the fake GPUs do: clock, power, energy and sensors. All functions expect the state to be locked.
 *
 * Power is piecewise constant between changes of load, lock, cap or heat, so that energy is exact and every sensor
 * (an average over some window, read at some tick) follows from a list of change points.
 */
#include "state.h"

#include <math.h>
#include <string.h>
#include <stddef.h>

/* dynamic part ~ f V(f)^2 with a voltage that falls with the clock down to a floor */
static double dynamic_w(const profile_t *p, double mhz)
{
    double x = mhz / p->max_mhz, v = fmax(p->v_floor, 1 - p->v_slope * (1 - x));
    return p->dynamic_w * x * v * v;
}

/* `compute` and `memory` are the shares of time spent in either phase. */
double power_w(const profile_t *p, double mhz, double compute, double memory)
{
    double d = dynamic_w(p, mhz);
    return p->context_w + compute * d + memory * (p->memory_w + p->memory_sm_share * d);
}

double seconds_at(const profile_t *p, uint32_t mhz, double compute_s, double memory_s)
{
    return compute_s * p->max_mhz / mhz + memory_s;
}

uint32_t snap_clock(const profile_t *p, uint32_t mhz)
{
    for (uint32_t i = 0; i < p->n_clocks; i++)
        if (p->clocks[i] <= mhz)
            return p->clocks[i];
    return p->n_clocks ? p->clocks[p->n_clocks - 1] : p->default_mhz;
}

/* Shares of time of all active clients together; several take turns. */
static uint32_t load_at(const gpu_t *g, uint32_t mhz, double *compute, double *memory)
{
    uint32_t n = 0;
    *compute = *memory = 0;
    for (int i = 0; i < MAX_CLIENTS; i++) {
        const client_t *c = &g->clients[i];
        if (!c->used || !c->active)
            continue;
        double total = c->is_kernel ? seconds_at(&g->profile, mhz, c->compute, c->memory) : 1;
        double phase = c->is_kernel ? c->compute * g->profile.max_mhz / mhz : c->compute;
        *compute += phase / total;
        *memory += c->memory / total;
        n++;
    }
    if (n) {
        *compute /= n;
        *memory /= n;
    }
    return n;
}

static void drop_dead_clients(gpu_t *g, int64_t now)
{
    if (now - g->reaped_ns < 50000000)
        return;
    g->reaped_ns = now;
    for (int i = 0; i < MAX_CLIENTS; i++) {
        client_t *c = &g->clients[i];
        uint64_t start = c->used ? start_time_of(c->pid) : 0;
        if (c->used && (!start || start != c->start_time))
            c->used = 0;
    }
}

void integrate(gpu_t *g, int64_t now)
{
    double dt = now > g->t_ns ? (double)(now - g->t_ns) : 0, compute, memory;
    uint32_t n = load_at(g, g->clock_mhz ? g->clock_mhz : g->profile.max_mhz, &compute, &memory);
    for (int i = 0; n && i < MAX_CLIENTS; i++) {
        client_t *c = &g->clients[i];
        if (c->used && c->active && c->is_kernel)
            c->progress += dt / 1e9 / n / seconds_at(&g->profile, g->clock_mhz, c->compute, c->memory);
    }
    const uint32_t bits[4] = {R_POWER_CAP, R_SW_THERMAL, R_HW_THERMAL, R_HW_BRAKE};
    for (int i = 0; i < 4; i++)
        if (g->busy && g->reasons & bits[i])
            g->reason_ns[i] += dt;
    /* the die follows its power with a time constant of 8 s */
    double steady = 28 + 45 * g->power_w / (g->profile.max_limit_mw / 1e3);
    g->temperature_c = steady + (g->temperature_c - steady) * exp(-dt / 8e9);
    if (now > g->t_ns)
        g->t_ns = now;
}

/* The clock and power that the present lock, load, cap and heat lead to. */
static void settle(gpu_t *g)
{
    const profile_t *p = &g->profile;
    uint32_t clients = 0, ceiling = g->locked && !g->locks_ignored ? g->lock_max_mhz : p->default_mhz, wanted;
    double compute, memory;
    for (int i = 0; i < MAX_CLIENTS; i++)
        clients += g->clients[i].used;
    wanted = snap_clock(p, ceiling);
    g->reasons = 0;
    if (g->thermal_reason && g->thermal_mhz < wanted) {
        wanted = snap_clock(p, g->thermal_mhz);
        g->reasons |= g->thermal_reason;
    }
    g->busy = load_at(g, wanted, &compute, &memory);
    if (!g->busy) {
        g->reasons |= R_IDLE;
        if (g->locked && !g->locks_ignored)
            g->clock_mhz = snap_clock(p, g->lock_min_mhz);
        else
            g->clock_mhz = clients ? wanted : p->idle_mhz;
        g->power_w = clients ? p->context_w : p->idle_w;
        return;
    }
    uint32_t i = 0;
    while (i < p->n_clocks && p->clocks[i] > wanted)
        i++;
    g->clock_mhz = wanted;
    g->power_w = power_w(p, wanted, compute, memory);
    for (; g->power_w * 1e3 > g->limit_mw && i + 1 < p->n_clocks; i++) {
        g->reasons |= R_POWER_CAP;
        g->clock_mhz = p->clocks[i + 1];
        load_at(g, g->clock_mhz, &compute, &memory);
        g->power_w = power_w(p, g->clock_mhz, compute, memory);
    }
}

void update(gpu_t *g, int64_t now)
{
    double before = g->power_w, e = energy_at(g, now);
    integrate(g, now);
    drop_dead_clients(g, now);
    settle(g);
    if (g->n_history && g->power_w == before)
        return;
    g->history[g->n_history % HISTORY] = (point_t){g->t_ns, e, g->power_w};
    g->n_history++;
}

/* True energy since the state was made. Before the oldest point kept, its power is carried backwards. */
double energy_at(const gpu_t *g, int64_t t)
{
    if (!g->n_history)
        return 0;
    uint64_t i = g->n_history - 1, oldest = g->n_history > HISTORY ? g->n_history - HISTORY : 0;
    while (i > oldest && g->history[i % HISTORY].t_ns > t)
        i--;
    const point_t *p = &g->history[i % HISTORY];
    double e = p->energy_j + p->power_w * (double)(t - p->t_ns) / 1e9;
    return e > 0 ? e : 0;
}

double mean_power(const gpu_t *g, int64_t from, int64_t to)
{
    return to > from ? (energy_at(g, to) - energy_at(g, from)) / ((double)(to - from) / 1e9) : g->power_w;
}

/* The last tick of a clock with this period; GPUs are out of step with each other. */
static int64_t last_tick(const gpu_t *g, int64_t now, double period_s)
{
    int64_t period = (int64_t)(period_s * 1e9), phase = (int64_t)g->bus * 7919773;
    return period > 0 ? now - (now - phase) % period : now;
}

double reading_w(gpu_t *g, int64_t now, double window_s)
{
    int64_t tick = last_tick(g, now, g->profile.sensor_period_s), from = tick - (int64_t)(window_s * 1e9);
    int64_t first = g->n_history ? g->history[0].t_ns : tick; /* nothing is known before the state was made */
    if (g->n_history <= HISTORY && from < first)
        from = first;
    if (tick > from)
        return mean_power(g, from, tick);
    return g->n_history ? g->history[0].power_w : g->power_w; /* not one tick yet: what it showed when it was made */
}

uint64_t counter_mj(const gpu_t *g, int64_t now)
{
    double mj = (energy_at(g, last_tick(g, now, g->profile.energy_period_s)) - g->counted_j) * 1e3;
    uint64_t q = g->profile.energy_quantum_mj ? g->profile.energy_quantum_mj : 1;
    return g->counter_base_mj + (mj > 0 ? (uint64_t)(mj / (double)q) * q : 0);
}

client_t *client_of(gpu_t *g, int32_t pid, int32_t tid)
{
    client_t *free_slot = NULL;
    for (int i = 0; i < MAX_CLIENTS; i++) {
        client_t *c = &g->clients[i];
        if (c->used && c->pid == pid && c->tid == tid)
            return c;
        if (!c->used && !free_slot)
            free_slot = c;
    }
    if (free_slot) {
        memset(free_slot, 0, sizeof *free_slot);
        free_slot->pid = pid;
        free_slot->tid = tid;
        free_slot->start_time = start_time_of(pid);
        free_slot->used = 1; /* last: the process may be killed on any line */
    }
    return free_slot;
}
