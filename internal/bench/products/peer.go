//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// python is the Python process of one number of threads.
type python struct {
	in       io.Writer
	out      *bufio.Scanner
	versions string // what it has
}

func startPython(binary, script string, threads int) (*python, error) {
	cmd := exec.Command(binary, script, fmt.Sprint(threads))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &python{in: in, out: bufio.NewScanner(out)}
	if !p.out.Scan() {
		return nil, fmt.Errorf("%s %s: %w", binary, script, cmd.Wait())
	}
	p.versions = p.out.Text()
	return p, nil
}

// time has a library run a case once. ok is false if it is not there or does not
// know the case.
func (p *python) time(library, name string) (wall, processor float64, ok bool) {
	if p == nil {
		return 0, 0, false
	}
	if _, err := fmt.Fprintln(p.in, library, name); err != nil || !p.out.Scan() {
		return 0, 0, false
	}
	n, _ := fmt.Sscan(p.out.Text(), &wall, &processor)
	return wall, processor, n == 2
}
