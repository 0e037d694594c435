//go:build !unix

package runner

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func terminate(p *os.Process) { _ = p.Kill() }

func kill(p *os.Process) { _ = p.Kill() }

func lockFile(*os.File) (ok bool, err error) { return true, nil }
