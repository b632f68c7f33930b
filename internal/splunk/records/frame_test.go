// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseFrame(t *testing.T) {
	for line, want := range map[string]frame{
		// The specification's own forms.
		"  at com.shop.Cart.total(Cart.java:12)":   {function: "com.shop.Cart.total", file: "Cart.java", line: 12},
		"\tat cart.total(/srv/shop/cart.js:12:34)": {function: "cart.total", file: "/srv/shop/cart.js", line: 12, column: 34},
		"cart.total(cart.js:12)":                   {function: "cart.total", file: "cart.js", line: 12},
		"\t cart.total(cart.js:12)\r":              {function: "cart.total", file: "cart.js", line: 12},
		"at com.shop.Cart.total(unknown:0)":        {function: "com.shop.Cart.total"},

		// What the JVM writes.
		"\tat java.lang.Thread.run(java.base@11.0.9.1/Thread.java:834)": {function: "java.lang.Thread.run",
			file: "Thread.java", line: 834},
		"\tat java.lang.Object.wait(java.base@11.0.9.1/Native Method)": {function: "java.lang.Object.wait"},
		"\tat sun.misc.Unsafe.park(Native Method)":                     {function: "sun.misc.Unsafe.park"},
		"\tat jdk.internal.misc.Unsafe.park(Unknown Source)":           {function: "jdk.internal.misc.Unsafe.park"},
		"\tat jdk.proxy2.$Proxy23.get(jdk.proxy2/Unknown Source)":      {function: "jdk.proxy2.$Proxy23.get"},
		"\tat Cart.lambda$total$0(Cart.java)":                          {function: "Cart.lambda$total$0", file: "Cart.java"},
		"\tat Cart$Inner.<init>(Cart.java:7)": {function: "Cart$Inner.<init>", file: "Cart.java",
			line: 7},
		"\tat Cart.total(Cart.java:-1)": {function: "Cart.total", file: "Cart.java"},
		"\tat java.base/java.lang.Thread.run(Thread.java:834)": {function: "java.base/java.lang.Thread.run",
			file: "Thread.java", line: 834},
		"\tat Cart.total(Cart.java:12) [shop.jar:1.0]": {function: "Cart.total", file: "Cart.java", line: 12},
		"\tat Cart.total(Cart.java:12) ~[?:?]":         {function: "Cart.total", file: "Cart.java", line: 12},

		// What .NET and Node write.
		"\tat System.Threading.Thread.Sleep(unknown:0)": {function: "System.Threading.Thread.Sleep"},
		"\tat Shop.Cart.Total(System.Int32, System.String)(unknown:0)": {
			function: "Shop.Cart.Total(System.Int32, System.String)"},
		"\tat Shop.Cart.Total(C:\\src\\Cart.cs:12)": {function: "Shop.Cart.Total", file: "C:\\src\\Cart.cs",
			line: 12},
		"\tat Shop.Cart.Total(C:\\Program Files\\Cart.cs:12)": {function: "Shop.Cart.Total",
			file: "C:\\Program Files\\Cart.cs", line: 12},
		"at listOnTimeout(node:internal/timers:557:17)": {function: "listOnTimeout", file: "node:internal/timers",
			line: 557, column: 17},
		"at total(file:///srv/cart.js:12:3)": {function: "total", file: "file:///srv/cart.js", line: 12,
			column: 3},
		"at total(http://localhost:8080/cart.js:12)": {function: "total", file: "http://localhost:8080/cart.js",
			line: 12},
		"at total(/srv/app/(shop)/page.js:12:3)": {function: "total", file: "/srv/app/(shop)/page.js", line: 12,
			column: 3},
		"at Object.total [as x](cart.js:12:3)": {function: "Object.total [as x]", file: "cart.js", line: 12,
			column: 3},
		"at total(/srv/node_modules/@shop/cart/index.js:12:3)": {function: "total",
			file: "/srv/node_modules/@shop/cart/index.js", line: 12, column: 3},
		"at global.total(cart.js:12)":        {function: "global.total", file: "cart.js", line: 12},
		"at unknown.(anonymous)(cart.js:12)": {function: "unknown.(anonymous)", file: "cart.js", line: 12},
		"at (program)(unknown:0)":            {function: "(program)"},
		"at größe(größe.js:12)":              {function: "größe", file: "größe.js", line: 12},
		"at (cart.js:12)":                    {file: "cart.js", line: 12},
		"at total":                           {function: "total"},

		// Two lines, with columns behind a space.
		"at total(cart.js:12:14 5)":                {function: "total", file: "cart.js", line: 12, column: 5},
		"at total(cart.js:12:14 5-9)":              {function: "total", file: "cart.js", line: 12, column: 5},
		"at total(cart.js:12:14 5:9)":              {function: "total", file: "cart.js", line: 12, column: 5},
		"at total(cart.js:12 5-9)":                 {function: "total", file: "cart.js", line: 12, column: 5},
		"at total(cart.js:12-14 5-9)":              {function: "total", file: "cart.js", line: 12, column: 5},
		"at total(cart.js:12-14)":                  {function: "total", file: "cart.js", line: 12},
		"at total(my cart 12:3)":                   {function: "total", file: "my cart 12", line: 3},
		"at total(a:1:2:3)":                        {function: "total", file: "a:1", line: 2, column: 3},
		"at total(cart.js:1234567890123456789012)": {function: "total", file: "cart.js:1234567890123456789012"},
		"at total(cart.js:)":                       {function: "total", file: "cart.js:"},

		// A parenthesis too many or too few.
		"at total)(cart.js:12)": {function: "total)", file: "cart.js", line: 12},
		"at total(car)t.js:12)": {function: "total", file: "car)t.js", line: 12},
	} {
		got, ok := parseFrame(line)
		assert.True(t, ok, line)
		assert.Equal(t, want, got, line)
	}
	for _, line := range []string{
		"", "\t", "at ", "at", "- locked <0x000000076ab2c8a8> (a java.lang.Object)",
		"\t- waiting on <0x000000076ab2c8a8> (a java.lang.Object)", "\t- parking to wait for  <0x7> (a Lock)",
		"   Locked ownable synchronizers:", "\t- None", "... 12 more", "at ()", ")", "()", "at )", "no frame", "Caused by: x",
	} {
		got, ok := parseFrame(line)
		assert.False(t, ok, "%q reads as %+v", line, got)
	}
}
