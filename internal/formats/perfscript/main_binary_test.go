// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscript

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
)

// Readers of pprof take the first mapping for the main binary. Stacks of perf begin with the leaf, in the kernel or in
// a library.
func TestMainBinaryIsFirst(t *testing.T) {
	const kernelThread = "kworker 9/9 9.4: 1000 cpu-clock:\n\tffffffff81 worker_thread+0x1 ([kernel.kallsyms])\n\n"
	const frames = "\t55 main+0x1 (/srv/shop)\n\n"
	for name, leaf := range map[string]string{
		"alone":                  "",
		"a library":              "\t7f00 __read+0x4 (/lib/libc.so.6)\n",
		"the kernel and library": "\tffffffff81 do_syscall_64+0x1 ([kernel.kallsyms])\n\t7f00 __read+0x4 (/lib/libc.so.6)\n",
	} {
		for _, before := range []string{"", kernelThread} {
			pd, _, err := Decode([]byte(before+"shop 12/12 9.5: 1000 cpu-clock:\n"+leaf+frames), events.Options{})
			require.NoError(t, err)
			d := pd.Dictionary()
			require.Equal(t, "/srv/shop", d.StringTable().At(int(d.MappingTable().At(1).FilenameStrindex())), name)
		}
	}
}
