package bo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
)

// peerProgram describes how a peer is run.
type peerProgram struct {
	name   string // of the peer in script
	python string // interpreter that has the peer's packages
	script string // text of a program with the protocol of bench/bo/peers.py
	// patience is the time limit of one answer, 0 for none.
	patience time.Duration
}

// peerProcess runs a peer on one problem in a separate process, which it asks and tells in
// lines of JSON. It is used by one goroutine at a time. After an error it cannot be used.
type peerProcess struct {
	program peerProgram
	space   *space.Space
	version string
	seconds float64 // of the last ask

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	lines  *bufio.Reader
	stderr tail
	ended  bool
}

var (
	_ Timed   = (*peerProcess)(nil)
	_ Limiter = (*peerProcess)(nil)
	_ Several = (*peerProcess)(nil)
)

// PeerError is an error in a peer's process or in its communication.
type PeerError struct {
	Peer   string
	Op     string // start, ask, tell or end
	Err    error
	Stderr string // the end of it
}

func (e *PeerError) Error() string {
	text := fmt.Sprintf("%s: %s: %v", e.Peer, e.Op, e.Err)
	if e.Stderr != "" {
		text += "; it wrote:\n" + e.Stderr
	}
	return text
}

// Unwrap returns the cause.
func (e *PeerError) Unwrap() error { return e.Err }

// errImpatient is in the error of a peer that took longer than patience.
var errImpatient = errors.New("no answer in time")

// start runs the peer. Its answers follow from the seed, as far as the peer respects it.
// When ctx ends before an answer, the process is killed. The same holds in Ask and Tell.
// The errors are *[UnsupportedError], *[MissingError], *[PeerError], and that of ctx.
func (p peerProgram) start(ctx context.Context, s Setup) (*peerProcess, error) {
	form, err := s.Space.MarshalJSON()
	if err != nil {
		return nil, err
	}
	q := &peerProcess{program: p, space: s.Space, cmd: exec.Command(p.python, "-c", p.script, p.name)}
	// Sets of strings have the same order in every run.
	q.cmd.Env = append(os.Environ(), "PYTHONHASHSEED=0")
	q.cmd.Stderr = &q.stderr
	q.cmd.WaitDelay = grace
	if q.in, err = q.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if q.out, err = q.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	q.lines = bufio.NewReader(q.out)
	if err := q.cmd.Start(); errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		return nil, &MissingError{Contestant: p.name, Reason: err.Error()}
	} else if err != nil {
		return nil, &PeerError{Peer: p.name, Op: "start", Err: err}
	}
	a, err := q.call(ctx, message{"op": "start", "space": json.RawMessage(form), "seed": s.Seed, "trials": s.Trials, "objectives": max(s.Objectives, 1)})
	switch {
	case err != nil:
		return nil, err
	case a.Unsupported != "":
		return nil, errors.Join(&UnsupportedError{Contestant: p.name, Reason: a.Unsupported}, q.Close())
	case a.Missing != "":
		return nil, errors.Join(&MissingError{Contestant: p.name, Reason: a.Missing}, q.Close())
	}
	q.version = a.Version
	return q, nil
}

// AskSeconds implements [Timed].
func (p *peerProcess) AskSeconds() float64 { return p.seconds }

// Ask implements [Optimiser].
func (p *peerProcess) Ask(ctx context.Context) (space.Config, error) {
	a, err := p.call(ctx, message{"op": "ask"})
	if err != nil {
		return space.Config{}, err
	}
	c, err := p.space.ParseConfig(a.Config)
	if err != nil {
		return space.Config{}, errors.Join(&PeerError{Peer: p.program.name, Op: "ask", Err: fmt.Errorf("not in the space: %s: %w", a.Config, err)}, p.Close())
	}
	p.seconds = a.Seconds
	return c, nil
}

// Tell implements [Optimiser]. A value that is not finite counts as a failure.
func (p *peerProcess) Tell(ctx context.Context, c space.Config, value float64, ok bool) error {
	config, err := c.MarshalJSON()
	if err != nil {
		return err
	}
	m := message{"op": "tell", "config": json.RawMessage(config), "ok": false}
	if ok && !math.IsNaN(value) && !math.IsInf(value, 0) {
		m["ok"], m["value"] = true, value
	}
	_, err = p.call(ctx, m)
	return err
}

// TellLimited implements [Limiter]. A trial beyond a limit has ok false and a value. A
// metric that is not finite makes it a failure without a value.
func (p *peerProcess) TellLimited(ctx context.Context, c space.Config, value float64, metrics []float64) error {
	for _, v := range append([]float64{value}, metrics...) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return p.Tell(ctx, c, 0, false)
		}
	}
	config, err := c.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = p.call(ctx, message{"op": "tell", "config": json.RawMessage(config), "ok": keeps(metrics), "value": value, "metrics": metrics})
	return err
}

// TellSeveral implements [Several].
func (p *peerProcess) TellSeveral(ctx context.Context, c space.Config, values, metrics []float64) error {
	config, err := c.MarshalJSON()
	if err != nil {
		return err
	}
	m := message{"op": "tell", "config": json.RawMessage(config), "ok": values != nil && keeps(metrics)}
	if values != nil {
		m["value"] = values
	}
	if metrics != nil {
		m["metrics"] = metrics
	}
	_, err = p.call(ctx, m)
	return err
}

// grace is how long a process may take to end after its stdin has. It is long because the
// machine may be busy.
const grace = time.Minute

// Close implements [Optimiser]. It ends the process and waits for it.
func (p *peerProcess) Close() error {
	if p.ended {
		return nil
	}
	p.ended = true
	_ = p.in.Close() // broken if the process is gone, which Wait reports
	timer := time.AfterFunc(grace, p.kill)
	defer timer.Stop()
	if err := p.cmd.Wait(); err != nil {
		return &PeerError{Peer: p.program.name, Op: "end", Err: err, Stderr: p.stderr.String()}
	}
	return nil
}

// kill ends the process and every read and write that waits for it at once.
func (p *peerProcess) kill() {
	_ = p.cmd.Process.Kill() // fails if the process has ended
	_ = p.in.Close()
	_ = p.out.Close()
}

// message is a message to the peer, with op and its arguments.
type message map[string]any

// answer is the peer's answer. See bench/bo/peers.py.
type answer struct {
	OK          bool            `json:"ok"`
	Version     string          `json:"version"`
	Config      json.RawMessage `json:"config"`
	Seconds     float64         `json:"seconds"`
	Unsupported string          `json:"unsupported"`
	Missing     string          `json:"missing"`
	Error       string          `json:"error"`
}

// call sends a message and waits for its answer.
func (p *peerProcess) call(ctx context.Context, m message) (answer, error) {
	if p.ended {
		return answer{}, &PeerError{Peer: p.program.name, Op: fmt.Sprint(m["op"]), Err: os.ErrProcessDone}
	}
	if p.program.patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, p.program.patience, errImpatient)
		defer cancel()
	}
	stop := context.AfterFunc(ctx, p.kill)
	a, err := p.exchange(m)
	if !stop() { // killed, or about to be
		err = context.Cause(ctx)
	}
	if err != nil {
		return answer{}, p.fail(ctx, m, err)
	}
	return a, nil
}

func (p *peerProcess) exchange(m message) (a answer, err error) {
	line, err := json.Marshal(m)
	if err != nil {
		return a, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return a, err
	}
	if line, err = p.lines.ReadBytes('\n'); err != nil {
		return a, fmt.Errorf("the process ended without an answer: %w", err)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("the answer %.200q: %w", line, err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// fail ends the process, so that its stderr is complete, and makes the error.
func (p *peerProcess) fail(ctx context.Context, m message, err error) error {
	p.ended = true
	_ = p.in.Close()
	timer := time.AfterFunc(grace, p.kill)
	defer timer.Stop()
	status := p.cmd.Wait()
	if err := ctx.Err(); err != nil && !errors.Is(context.Cause(ctx), errImpatient) {
		return context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) {
		err = errors.Join(err, status)
	}
	return &PeerError{Peer: p.program.name, Op: fmt.Sprint(m["op"]), Err: err, Stderr: p.stderr.String()}
}

// tail keeps the end of the text written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 4 << 10

func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(text), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}
