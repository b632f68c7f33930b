// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

#include <stdint.h>
#include <time.h>

static volatile uint64_t sink;

#define WORK for (uint64_t i = 0; i < n; i++) sink += i * i;

__attribute__((noinline)) void hotWork(uint64_t n) { WORK }

__attribute__((noinline)) void coldWork(uint64_t n) { WORK }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

int main(void) {
  for (double end = now() + 180; now() < end;) {
    double began = now();
    hotWork(3000000);
    coldWork(1000000);
    double rest = 3 * (now() - began);
    struct timespec t = {(time_t)rest, (long)((rest - (time_t)rest) * 1e9)};
    nanosleep(&t, 0);
  }
}
