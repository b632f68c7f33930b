// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package servicename

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func TestFromCommand(t *testing.T) {
	for command, want := range map[string]string{
		"nginx -g daemon": "nginx",
		"python3":         "python3",
		"python3 app.py":  "app.py",
		"python3.11 -u -X dev -W ignore /srv/shop/app.py --port 1": "app.py",
		"python3 -Werror app.py":                                   "app.py",
		"python3 -m http.server 80":                                "http.server",
		"python3 -um gunicorn shop:app":                            "gunicorn",
		"python3 -mcelery worker":                                  "celery",
		"python3 -c import":                                        "python3",
		"python3 -Ic import":                                       "python3",
		"python3 -":                                                "python3",
		"python3 --check-hash-based-pycs always app.py":            "app.py",
		"python3 /srv/shop/__main__.py":                            "shop",
		"python3 __main__.py":                                      "__main__.py",
		"python3 /usr/bin/gunicorn shop:app":                       "gunicorn",
		"pypy3 app.py":                                             "app.py",
		"python3 -m":                                               "python3",
		"node server.js":                                           "server.js",
		"node":                                                     "node",
		"node --inspect --require ./tracing.js -r x server.js": "server.js",
		"node --max-old-space-size=4096 /srv/shop/index.js":    "shop",
		"node ./index.js":                                                   "index.js",
		"node -e process.exit()":                                            "node",
		"bun run server.ts":                                                 "server.ts",
		"deno run --allow-net server.ts":                                    "server.ts",
		"java -Xmx1g -jar /srv/shop.jar --port 1":                           "shop.jar",
		"java -cp lib/* -Dx=y com.example.Shop run":                         "com.example.Shop",
		"java --add-opens java.base/java.lang=ALL-UNNAMED com.example.Shop": "com.example.Shop",
		"java -p mods -m shop/com.example.Shop":                             "shop",
		"java --module=shop":                                                "shop",
		"java @arguments":                                                   "java",
		"java Shop.java":                                                    "Shop.java",
		"java -jar":                                                         "java",
		"ruby -W -I lib -rbundler app.rb":                                   "app.rb",
		"ruby -e puts":                                                      "ruby",
		"perl -MIO::Socket -w /usr/bin/exim":                                "exim",
		"perl -ne print":                                                    "perl",
		"php -d memory_limit=1G artisan queue:work":                         "artisan",
		"php -f app.php":                                                    "app.php",
		"php -S localhost:80":                                               "php",
		"bash -eu -o pipefail /usr/bin/backup.sh":                           "backup.sh",
		"bash -euo pipefail backup.sh":                                      "backup.sh",
		"bash -lc make":                                                     "bash",
		"sh -c make":                                                        "sh",
		"sh -- run.sh":                                                      "run.sh",
		"sh -s":                                                             "sh",
		"dotnet exec --runtimeconfig x.json /srv/shop.dll":                  "shop.dll",
		"dotnet run":                                                        "dotnet",
		"php-fpm8.2 -F":                                                     "php-fpm8.2",
	} {
		arguments := strings.Fields(command)
		assert.Equal(t, want, FromCommand(Command{Executable: arguments[0], Arguments: arguments}), command)
		assert.Equal(t, arguments[0], FromCommand(Command{Executable: arguments[0], Arguments: nil}), "without arguments")
	}
	assert.Equal(t, "gunicorn",
		FromCommand(Command{Executable: "python3", Arguments: []string{"gunicorn: worker [shop]"}}))
	assert.Equal(t, "celeryd",
		FromCommand(Command{Executable: "python3", Arguments: []string{"[celeryd: celery@host:MainProcess]"}}))
	assert.Equal(t, "python3", FromCommand(Command{Executable: "python3", Arguments: []string{"what the program likes"}}))
	assert.Equal(t, "run.sh", FromCommand(Command{Executable: "busybox", Arguments: []string{"-sh", "run.sh"}}))
	assert.Equal(t, "runc", FromCommand(Command{Executable: "memfd:runc_cloned:", Arguments: []string{"runc", "init"}}))
	assert.Equal(t, "shop.js",
		FromCommand(Command{Executable: "memfd:sealed-91173221a7ea", Arguments: []string{"/usr/bin/node", "shop.js"}}))
	assert.Equal(t, "shop", FromCommand(Command{Executable: "memfd:sealed-91173221a7ea", Name: "shop"}))
	assert.Equal(t, "shop",
		FromCommand(Command{Executable: "memfd:sealed-91173221a7ea", Name: "shop", Arguments: []string{"/proc/self/fd/7"}}))
	assert.Equal(t, "shop",
		FromCommand(Command{Executable: "memfd:sealed-91173221a7ea", Name: "shop", Arguments: []string{"", "x"}}))
	assert.Empty(t,
		FromCommand(Command{Executable: "memfd:sealed-91173221a7ea", Name: "7",
			Arguments: []string{"/proc/self/exe", "init"}}))
	assert.Empty(t, FromCommand(Command{Executable: "memfd:sealed-91173221a7ea"}))
	assert.Equal(t, "busybox", FromCommand(Command{Executable: "busybox", Name: "main"}))
	assert.Equal(t, "helper", FromCommand(Command{Executable: "3", Arguments: []string{"/usr/lib/helper"}}))
	assert.Equal(t, "httpd", FromCommand(Command{Executable: "busybox", Arguments: []string{"/bin/httpd", "-f"}}))
	assert.Equal(t, "python3", FromCommand(Command{Executable: "python3", Arguments: []string{"python3", "/"}}))
	assert.Equal(t, "python3", FromCommand(Command{Executable: "python3", Arguments: []string{"python3", ""}}))
}

func TestClean(t *testing.T) {
	assert.Equal(t, "a b", Clean(" a\nb\x00 "))
	assert.Equal(t, "a\ufffd", Clean("a\xff\xfe"))
	assert.Len(t, Clean(strings.Repeat("x", 1000)), MaxBytes)
	assert.Equal(t, strings.Repeat("ä", MaxBytes/2), Clean(strings.Repeat("ä", 1000)))
	assert.Empty(t, Clean("\n\t"))
}

func TestEnvironment(t *testing.T) {
	assert.Equal(t, "shop", FromEnvironment("shop", "service.name=cart"))
	assert.Equal(t, "my shop", FromEnvironment("", "a=b,service.name=x, service.name = my%20shop ,service.name=%zz"))
	assert.Equal(t, "c++", FromEnvironment("", "service.name=c+%2B"))
	assert.Empty(t, FromEnvironment("", "service.name,=x,service.name=%zz"))
	assert.Equal(t, "cart", FromEnvironment("unknown_service:java", "service.name=cart"))
	assert.Equal(t, "cart", FromEnvironment("", "service.name=unknown_service,service.name=cart"))
	assert.Empty(t, FromEnvironment("unknown_service", "service.name=unknown_service:node"))
	assert.Equal(t, "shop", FromJavaProperty([]string{"java", "-Dotel.service.name=shop"}))
	assert.Equal(t, "cart", FromJavaProperty([]string{"java", "-Dotel.service.name=shop", "-Dotel.service.name=cart"}))
	assert.Empty(t, FromJavaProperty([]string{"java"}))
	assert.Empty(t, FromJavaProperty([]string{"java", "-Dotel.service.name=unknown_service:java"}))
}

func TestRules(t *testing.T) {
	rules := []Rule{
		{Executable: regexp.MustCompile(`^beam`), CommandLine: regexp.MustCompile(`-sname (\S+)`), Template: "erlang-$1"},
		{CommandLine: regexp.MustCompile(`--app=(?P<app>\S+)`), Template: "${app}"},
		{Executable: regexp.MustCompile(`^worker-(\d+)$`), Template: "worker"},
		{Executable: regexp.MustCompile(`^(.*)-prod$`), Template: "$1"},
	}
	for _, rule := range append(rules, Rule{Executable: regexp.MustCompile(`a(b)`), Template: "$$x-${0}-${1}x"}) {
		assert.Empty(t, rule.MissingGroup())
	}
	assert.Equal(t, "erlang-rabbit", Match(rules, "beam.smp", []string{"beam.smp", "-sname", "rabbit"}))
	assert.Equal(t, "shop", Match(rules, "beam.smp", []string{"beam.smp", "--app=shop"}))
	assert.Equal(t, "worker", Match(rules, "worker-17", nil))
	assert.Equal(t, "shop", Match(rules, "shop-prod", nil))
	assert.Empty(t, Match(rules, "beam.smp", nil))
	assert.Empty(t, Match(nil, "worker-17", nil))
}

func FuzzNames(f *testing.F) {
	f.Add("python3", "python3\x00-u\x00app.py", "a=b,service.name=%20")
	f.Add("java", "java\x00-jar\x00shop.jar", "")
	f.Add("busybox", "-sh\x00run.sh", "")
	f.Add("bash", "bash\x00-euo\x00pipefail\x00+x\x00--\x00x", "")
	f.Add("perl", "perl\x00-\xffe", "\xff=\xff")
	f.Fuzz(func(t *testing.T, executable, commandLine, attributes string) {
		requireBoundedNames(t, executable, commandLine, attributes)
	})
}

func requireBoundedNames(t testing.TB, executable, commandLine, attributes string) {
	rules := []Rule{{Executable: regexp.MustCompile(`(a*)*b`), CommandLine: regexp.MustCompile(`(.*)x(.*)`),
		Template: "$1$2"}}
	var names []string
	profiletest.RequireCost(t, profiletest.BoundOf(len(executable)+len(commandLine)+len(attributes), 8<<20, 64), func() {
		arguments := strings.Split(commandLine, "\x00")
		names = []string{
			FromCommand(Command{Executable: executable, Arguments: arguments}), FromEnvironment(executable, attributes),
			FromJavaProperty(arguments),
			Match(rules, Clean(executable), arguments),
		}
		for _, language := range []string{"python3", "node", "java", "ruby", "perl", "php", "sh", "dotnet", "busybox"} {
			names = append(names, FromCommand(Command{Executable: language, Arguments: arguments}))
		}
	})
	for _, name := range names {
		require.True(t, utf8.ValidString(name))
		require.LessOrEqual(t, len(name), MaxBytes)
		require.NotContains(t, name, "\n")
	}
}

func TestNamesAreBounded(t *testing.T) {
	const size = 1 << 20
	for _, piece := range []string{"a", "-", "-x", "\x00", "-o\x00", ",", "a=b,", "%20", "\xff", "/", "-e", "+"} {
		text := strings.Repeat(piece, size/len(piece))
		requireBoundedNames(t, text, text, text)
	}
}
