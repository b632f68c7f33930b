# Copyright The otelcol-profiles Authors
# SPDX-License-Identifier: Apache-2.0

import time


def hotWork(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def coldWork(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


end = time.monotonic() + 180
while time.monotonic() < end:
    began = time.monotonic()
    hotWork(300000)
    coldWork(100000)
    time.sleep(3 * (time.monotonic() - began))
