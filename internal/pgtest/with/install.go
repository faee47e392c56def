package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// createcluster.d is read by Debian's packages: our file keeps them from making and starting
// a server of their own. Tests bring theirs.
const createclusterConf = "/etc/postgresql-common/createcluster.d/no-main-cluster.conf"

func install() error {
	if os.Geteuid() != 0 {
		return errors.New("installing it takes root")
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return errors.New("there is no apt-get to install it with")
	}
	fmt.Fprintln(os.Stderr, "PostgreSQL is missing: installing Debian's package postgresql (no server will be started)")
	if err := os.MkdirAll(filepath.Dir(createclusterConf), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(createclusterConf, []byte("create_main_cluster = false\n"), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"update", "-qq"},
		{"install", "-y", "-qq", "--no-install-recommends", "postgresql"},
	} {
		cmd := exec.Command(apt, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		// Standard output belongs to the command that we run later.
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("apt-get %s: %w", args[0], err)
		}
	}
	return nil
}
