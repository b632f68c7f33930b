# Copyright The otelcol-profiles Authors
# SPDX-License-Identifier: Apache-2.0

import time


def hotWork():
    work(0.03)


def coldWork():
    work(0.01)


def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        total = 0
        for i in range(2000):
            total += i * i


end = time.monotonic() + 180
while time.monotonic() < end:
    began = time.monotonic()
    hotWork()
    coldWork()
    time.sleep(3 * (time.monotonic() - began))
