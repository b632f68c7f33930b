// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command compose reads a compose file by the library of the compose specification, which validates it by the
// specification's schema, and prints it as JSON, with defaults and absolute paths: the services of all profiles.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	options, err := cli.NewProjectOptions(os.Args[1:2], cli.WithWorkingDirectory(filepath.Dir(os.Args[1])),
		cli.WithProfiles([]string{"*"}))
	if err == nil {
		project, fault := options.LoadProject(context.Background())
		if err = fault; err == nil {
			err = json.NewEncoder(os.Stdout).Encode(project)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
