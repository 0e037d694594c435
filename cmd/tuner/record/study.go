package record

import (
	"encoding/json"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Study is a study as it is written.
type Study struct {
	Name       string            `json:"name"`
	Status     string            `json:"status"`
	Finished   string            `json:"finished,omitempty"` // why
	Detail     string            `json:"detail,omitempty"`
	Objectives []Objective       `json:"objectives"`
	Trials     int               `json:"trials"`
	Added      int               `json:"added,omitempty"` // trials that do not count towards max_trials
	Counts     map[string]int    `json:"counts,omitempty"`
	Cost       Number            `json:"cost,omitempty"`
	MaxTrials  int               `json:"max_trials,omitempty"`
	Timeout    string            `json:"timeout,omitempty"`
	MaxCost    Number            `json:"max_cost,omitempty"`
	Lease      string            `json:"lease"`
	MaxRetries int               `json:"max_retries"`
	Seed       uint64            `json:"seed,string"`
	Proposer   *Component        `json:"proposer,omitempty"`
	Pruner     *Component        `json:"pruner,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Created    time.Time         `json:"created"`
	Position   uint64            `json:"position"`
	Space      *space.Space      `json:"space"`
}

// Objective is one of a study's.
type Objective struct {
	Name      string `json:"name"`
	Direction string `json:"direction"`
}

// Component is a proposer or pruner.
type Component struct {
	Name    string          `json:"name"`
	Options json.RawMessage `json:"options,omitempty"`
}

// Unread is a study that could not be read.
type Unread struct {
	Name   string `json:"name"`
	Status string `json:"status"` // unread
	Reason string `json:"reason"`
}

// OfUnread returns the written form of a study that could not be read.
func OfUnread(s tuner.Study) Unread { return Unread{s.Name, "unread", s.Unread} }

// OfStudy returns the written form of a study.
func OfStudy(s tuner.Study) Study {
	r := Study{
		Name: s.Name, Status: s.Status.String(), Trials: s.Trials, Added: s.Added, Cost: Number(s.Cost),
		MaxTrials: s.Spec.MaxTrials, MaxCost: Number(s.Spec.MaxCost), Lease: s.Spec.Lease.String(),
		MaxRetries: s.Spec.MaxRetries, Seed: s.Spec.Seed, Attributes: s.Attributes,
		Proposer: ofComponent(s.Spec.Proposer), Pruner: ofComponent(s.Spec.Pruner),
		Created: s.Created, Position: uint64(s.Position), Space: s.Spec.Space,
	}
	if s.Status == study.StatusFinished {
		r.Finished, r.Detail = s.Finished.Reason.String(), s.Finished.Detail
	}
	if s.Spec.Timeout > 0 {
		r.Timeout = s.Spec.Timeout.String()
	}
	for _, o := range s.Spec.Objectives {
		r.Objectives = append(r.Objectives, Objective{o.Name, o.Direction.String()})
	}
	for state, n := range s.Counts {
		if r.Counts == nil {
			r.Counts = make(map[string]int)
		}
		r.Counts[state.String()] = n
	}
	return r
}

func ofComponent(c study.Component) *Component {
	if c.Name == "" {
		return nil
	}
	return &Component{c.Name, json.RawMessage(c.Options)}
}
