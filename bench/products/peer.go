//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// python is the Python process for one number of threads.
type python struct {
	in       io.WriteCloser
	out      *bufio.Scanner
	end      func() error // waits for the process
	versions string       // of Python and its packages
	ended    bool
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
	p := &python{in: in, out: bufio.NewScanner(out), end: cmd.Wait}
	if !p.out.Scan() {
		if err := cmd.Wait(); err != nil {
			return nil, fmt.Errorf("%s %s: %w", binary, script, err)
		}
		return nil, fmt.Errorf("%s %s: it ended without output", binary, script)
	}
	p.versions = p.out.Text()
	return p, nil
}

// time runs a case once in a library. If the library is missing, does not know the case, or
// has ended, ok is false. The end is reported once.
func (p *python) time(library, name string) (wall, processor float64, ok bool) {
	if p == nil || p.ended {
		return 0, 0, false
	}
	if _, err := fmt.Fprintln(p.in, library, name); err != nil || !p.out.Scan() {
		log.Printf("Python ended at the case %s of %s; the following cases are without it", name, library)
		p.ended = true
		return 0, 0, false
	}
	return seconds(p.out.Text())
}

// seconds reads an answer, which has wall and CPU seconds, both above 0.
func seconds(answer string) (wall, processor float64, ok bool) {
	fields := strings.Fields(answer)
	if len(fields) != 2 {
		return 0, 0, false
	}
	wall, err1 := strconv.ParseFloat(fields[0], 64)
	processor, err2 := strconv.ParseFloat(fields[1], 64)
	good := func(s float64) bool { return s > 0 && !math.IsInf(s, 1) }
	if err1 != nil || err2 != nil || !good(wall) || !good(processor) {
		return 0, 0, false
	}
	return wall, processor, true
}

// close ends Python.
func (p *python) close() {
	if p == nil {
		return
	}
	p.in.Close()
	if err := p.end(); err != nil {
		log.Print("Python: ", err)
	}
}
