// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

#include <stdint.h>
#include <time.h>

static volatile uint64_t sink;

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

#define WORK(seconds)                                                                \
  for (double end = now(CLOCK_THREAD_CPUTIME_ID) + seconds; now(CLOCK_THREAD_CPUTIME_ID) < end;) \
    for (uint64_t i = 0; i < 100000; i++) sink += i * i;

__attribute__((noinline)) void hotWork(void) { WORK(0.03) }

__attribute__((noinline)) void coldWork(void) { WORK(0.01) }

int main(void) {
  for (double end = now(CLOCK_MONOTONIC) + 180; now(CLOCK_MONOTONIC) < end;) {
    double began = now(CLOCK_MONOTONIC);
    hotWork();
    coldWork();
    double rest = 3 * (now(CLOCK_MONOTONIC) - began);
    struct timespec t = {(time_t)rest, (long)((rest - (time_t)rest) * 1e9)};
    nanosleep(&t, 0);
  }
}
