/* A C program: static, inlined and exported functions. */
#include <stdio.h>
#include <stdlib.h>

static inline int half(int n) { return n / 2 + 1; }

static __attribute__((noinline)) int quarter(int n) { return half(half(n)) ^ n; }

__attribute__((noinline)) int exported(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += quarter(i);
  return sum;
}

static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(int argc, char **argv) {
  int values[100];
  for (int i = 0; i < 100; i++) values[i] = exported(i * argc);
  qsort(values, 100, sizeof(int), by_value);
  printf("%d %s\n", values[50], argv[0]);
  return 0;
}
