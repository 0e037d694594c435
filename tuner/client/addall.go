package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// AddAll implements [tuner.Service]. It makes one call if the trials fit into a message,
// else several, one after another. The end of ctx interrupts between calls.
func (c *Client) AddAll(ctx context.Context, name string, commands []study.Command) ([]int, error) {
	if err := tuner.CheckAddAll(commands); err != nil {
		return nil, err
	}
	parent, err := wire.StudyName(name)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for {
		trials, refused := c.pack(commands[len(numbers):])
		if len(trials) > 0 || refused == nil {
			part, err := call(ctx, c, writes, c.stub.AddTrials, &pb.AddTrialsRequest{Parent: parent, Trials: trials}, func(m *pb.AddTrialsResponse) ([]int, error) {
				return wire.DecodeAdded(m, len(trials))
			})
			if err != nil {
				return nil, after(len(numbers), err)
			}
			numbers = append(numbers, part...)
		}
		if refused != nil {
			return nil, &tuner.CommandError{Index: len(numbers), Err: refused}
		}
		if len(numbers) == len(commands) {
			return numbers, nil
		}
	}
}

// pack encodes as many of the commands as fit well into one message. It stops before a
// command that cannot be sent and returns the reason.
func (c *Client) pack(commands []study.Command) (trials []*pb.NewTrial, refused error) {
	room := c.maxSend / 2 // the server's limit may be lower
	for _, command := range commands {
		t, err := wire.EncodeNew(command)
		if err != nil {
			return trials, err
		}
		size := proto.Size(t)
		if size > c.maxSend-overhead {
			return trials, &study.InvalidError{
				Field: "trial", Value: fmt.Sprintf("%d bytes", size), Rule: fmt.Sprintf("must be at most %d bytes as a message", c.maxSend-overhead),
				Remedy: "shorten its attributes or its reports",
			}
		}
		if room -= size; room < 0 && len(trials) > 0 {
			return trials, nil
		}
		trials = append(trials, t)
	}
	return trials, nil
}

// overhead is the most bytes of a request besides its trials.
const overhead = 128

// after is the error of trials that follow others which are stored already.
func after(done int, err error) error {
	if at := (*tuner.CommandError)(nil); errors.As(err, &at) {
		return &tuner.CommandError{Index: done + at.Index, Err: at.Err}
	}
	if done == 0 {
		return err
	}
	return &tuner.CommandError{Index: done, Err: err}
}
