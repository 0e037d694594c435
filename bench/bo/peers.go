package bo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
)

// peers are the optimisers of other projects. bench/README.md describes their setup.
var peers = []Contestant{
	peer("optuna-tpe", "optuna", "Optuna's TPE with defaults, which since Optuna 5 models all parameters together", false),
	peer("optuna-tpe-uni", "optuna", "Optuna's TPE with multivariate=False, the default before, which models each parameter separately", false),
	peer("optuna-gp", "optuna", "Optuna's GPSampler", true),
	peer("skopt", "skopt", "scikit-optimize's GP with its hedge of acquisitions", true),
	peer("hebo", "hebo", "HEBO", true),
	peer("smac", "smac", "SMAC3's facade for hyper-parameters, with random forest and log EI", true),
	peer("smac-bb", "smac", "SMAC3's facade for black boxes, with GP and EI", true),
	peer("cma-es", "cma-es", "pycma, CMA-ES with restarts of growing populations (IPOP)", false),
	peer("ax", "ax", "Ax with the BoTorch method that it chooses", true),
	peer("vizier", "vizier", "GP-UCB-PE, the default designer of OSS Vizier", true),
}

// NSGA2 is a peer for several objectives, which reports of one leave out.
var NSGA2 = peer("optuna-nsga2", "optuna", "Optuna's NSGA-II", false)

// patience is the time limit of a peer's answer. No useful peer takes minutes, but the
// first ask may compile.
const patience = 30 * time.Minute

// peer returns a peer of bench/bo/peers.py. The environment is the directory of its packages,
// made by make bench-bo-peers.
func peer(name, environment, title string, slow bool) Contestant {
	start := func(ctx context.Context, s Setup) (*peerProcess, error) {
		python, err := interpreter(s.Python, environment)
		if err != nil {
			return nil, &MissingError{Contestant: name, Reason: err.Error()}
		}
		return peerProgram{name: name, python: python, script: script, patience: patience}.start(ctx, s)
	}
	return Contestant{
		Name: name, Kind: Peer, Title: title, Slow: slow,
		New: func(ctx context.Context, s Setup) (Optimiser, error) {
			p, err := start(ctx, s)
			if err != nil {
				return nil, err // not a nil *peerProcess
			}
			return p, nil
		},
		Version: func(ctx context.Context, s Setup) (string, error) {
			var err error
			if s.Space, err = space.New(space.NewFloat("x", 0, 1)); err != nil {
				return "", err
			}
			p, err := start(ctx, s)
			if err != nil {
				return "", err
			}
			return p.version, p.Close()
		},
	}
}

// interpreter finds the Python of an environment. The argument python is an interpreter for
// all of them, or the directory in which each has one of its own.
func interpreter(python, environment string) (string, error) {
	if python == "" {
		return "", errors.New("no Python with peers is named; see make bench-bo-peers")
	}
	info, err := os.Stat(python)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return python, nil
	}
	folder := filepath.Join(python, environment)
	if _, err := os.Stat(filepath.Join(folder, "ready")); errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("make bench-bo-peers has not installed it in " + folder)
	} else if err != nil {
		return "", err
	}
	if runtime.GOOS == "windows" {
		return filepath.Join(folder, "Scripts", "python.exe"), nil
	}
	return filepath.Join(folder, "bin", "python"), nil
}
