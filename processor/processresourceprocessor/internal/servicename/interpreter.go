// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package servicename

import (
	"path"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Command is what is known of what a process runs. Empty fields are unknown.
type Command struct {
	// Executable is the name of the program's file.
	Executable string
	// Name is what the kernel calls the process, of which it keeps 15 bytes.
	Name      string
	Arguments []string
}

// FromCommand returns the name of what a process runs: its executable's, or, if that is an interpreter, the script's,
// module's or archive's. It returns "" if nothing is left but the name of an anonymous file.
func FromCommand(c Command) string {
	name := c.program()
	program := interpreters[strings.TrimRight(name, "0123456789.-")]
	if program == nil || len(c.Arguments) == 0 {
		return name
	}
	if title := titleOf(c.Arguments); title != "" {
		return title
	}
	if run := Clean(program(c.Arguments[1:])); run != "" {
		return run
	}
	return name
}

// program returns the name of the executable, or of the first argument or the process if they name it better: the
// executable contains many programs, or was started from memory or an open file.
func (c *Command) program() string {
	name := Clean(c.Executable)
	isMulticall := name == "busybox" || name == "toybox" || name == "coreutils"
	if !isMulticall && !isAnonymous(name) {
		return name
	}
	if len(c.Arguments) > 0 {
		if first := Clean(strings.TrimPrefix(path.Base(c.Arguments[0]), "-")); !isAnonymous(first) {
			return first
		}
	}
	switch process := Clean(c.Name); {
	case isMulticall:
		return name
	case isAnonymous(process):
		return ""
	default:
		return process
	}
}

// isAnonymous reports whether a name is that of no file, such as memfd:sealed-91173221a7ea, or the number of an open
// one in /proc/self/fd.
func isAnonymous(name string) bool {
	return strings.HasPrefix(name, "memfd:") || strings.Trim(name, "0123456789") == "" || name == "exe" || name == "." ||
		name == "/"
}

// titleOf returns the first word of a title that a program wrote over its arguments: `gunicorn: worker [shop]`.
func titleOf(arguments []string) string {
	if len(arguments) != 1 {
		return ""
	}
	title, _, ok := strings.Cut(arguments[0], ": ")
	if !ok || strings.ContainsAny(title, "/ ") {
		return ""
	}
	return Clean(strings.TrimPrefix(title, "["))
}

// interpreters read the arguments of an interpreter, by its executable's name without the version. They return the name
// of what is run, or "" if it has none.
var interpreters = map[string]func(arguments []string) string{
	"python": python.program, "pypy": python.program,
	"node": node.program, "nodejs": node.program, "bun": node.program, "deno": node.program,
	"java":   java.program,
	"php":    php.program,
	"dotnet": dotnet,
	"ruby":   ruby.program,
	"perl":   perl.program,
	"sh":     shell.program, "bash": shell.program, "dash": shell.program, "ksh": shell.program, "zsh": shell.program,
}

// options describes the arguments of an interpreter whose options are words: the first that is not an option is what it
// runs. The value of an option is the next argument, or what follows a =.
type options struct {
	inline  []string // what they run has no name
	files   []string // their value is the file
	modules []string // their value is a module, perhaps with a class after a slash
	values  []string // their value is something else
	verb    string   // a word before what is run
}

var (
	// `node --require ./tracing.js server.js`, `deno run app.ts`
	node = options{
		verb: "run", inline: []string{"-e", "--eval", "-p", "--print", "-pe", "-"},
		values: []string{
			"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--title", "--env-file",
			"--icu-data-dir", "--openssl-config", "--redirect-warnings", "--trace-event-categories", "--diagnostic-dir",
			"--inspect-port", "--input-type", "--max-http-header-size", "--unhandled-rejections", "--dns-result-order",
			"--config", "-c", "--cwd", "--preload", "--import-map", "--lock", "--cert", "--location", "--v8-flags",
		},
	}
	// `java -jar shop.jar`, `java -cp lib/* com.example.Shop`, `java -m shop/com.example.Shop`
	java = options{
		files: []string{"-jar"}, modules: []string{"-m", "--module"},
		values: []string{
			"-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path", "--add-modules",
			"--add-opens", "--add-exports", "--add-reads", "--limit-modules", "--patch-module", "--enable-native-access",
			"--source",
		},
	}
	// `php -d memory_limit=1G artisan`, `php -f app.php`. The server of -S has no name.
	php = options{
		inline: []string{"-r", "-S", "--"}, files: []string{"-f"}, values: []string{"-d", "-c", "-z", "-t"},
	}
)

func (o options) program(arguments []string) string {
	for i := 0; i < len(arguments); i++ {
		argument := arguments[i]
		option, value, _ := strings.Cut(argument, "=")
		if option == argument && i+1 < len(arguments) {
			value = arguments[i+1]
		}
		switch {
		case slices.Contains(o.inline, argument):
			return ""
		case slices.Contains(o.files, option) && value != "":
			return fileName(value)
		case slices.Contains(o.modules, option) && value != "":
			module, _, _ := strings.Cut(value, "/")
			return module
		case slices.Contains(o.values, argument):
			i++
		case argument == o.verb, strings.HasPrefix(argument, "-"), strings.HasPrefix(argument, "@"): // @: a file of arguments
		default:
			return fileName(argument)
		}
	}
	return ""
}

// dotnet: `dotnet exec --runtimeconfig shop.json shop.dll`.
func dotnet(arguments []string) string {
	for _, argument := range arguments {
		if strings.HasSuffix(argument, ".dll") {
			return fileName(argument)
		}
	}
	return ""
}

// script describes the arguments of an interpreter whose options are letters: the first that is not an option is the
// script.
type script struct {
	inline   string   // letters with code to run instead of a file
	module   string   // letters with the name of what to run
	value    string   // letters whose value is the rest of the argument, or the next one
	attached string   // letters whose value is the rest of the argument
	values   []string // long options whose value is the next argument
}

var (
	// `python -u -X dev app.py`, `python -m http.server`
	python = script{inline: "c", module: "m", value: "WX", values: []string{"--check-hash-based-pycs"}}
	ruby   = script{inline: "e", value: "rICE", attached: "FTxKW"}
	perl   = script{inline: "eE", value: "I", attached: "mMFxilCDV0"}
	shell  = script{inline: "cs", value: "oO"}
)

func (s script) program(arguments []string) string {
	for i := 0; i < len(arguments); i++ {
		argument := arguments[i]
		switch {
		case argument == "--" && i+1 < len(arguments):
			return fileName(arguments[i+1])
		case argument == "-" || argument == "--":
			return ""
		case strings.HasPrefix(argument, "--"):
			if slices.Contains(s.values, argument) {
				i++
			}
		case argument != "" && (argument[0] == '-' || argument[0] == '+'):
			option := strings.IndexAny(argument, s.inline+s.module+s.value+s.attached)
			if option < 0 {
				continue
			}
			letter, rest := argument[option:option+1], argument[option+1:]
			switch {
			case strings.Contains(s.inline, letter):
				return ""
			case strings.Contains(s.module, letter) && rest != "":
				return rest
			case strings.Contains(s.module, letter) && i+1 < len(arguments):
				return arguments[i+1]
			case strings.Contains(s.value, letter) && rest == "":
				i++
			}
		default:
			return fileName(argument)
		}
	}
	return ""
}

// fileName returns the last element of a path, or the folder's name if that element has a fixed name, such as
// __main__.py.
func fileName(file string) string {
	file = dictionary.CutUTF8(file, 4<<10)
	name := path.Base(file)
	switch name {
	case "__main__.py", "index.js", "index.mjs", "index.cjs":
		if folder := path.Base(path.Dir(file)); strings.Trim(folder, "./") != "" {
			return folder
		}
	case ".", "/", "..":
		return ""
	}
	return name
}
