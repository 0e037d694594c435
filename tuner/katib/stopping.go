package katib

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/katib"
	"github.com/bkbtuner/bkb/tuner/prune"
)

// The settings of the median rule, with Katib's names and defaults.
const (
	minTrialsSetting, defaultMinTrials = "min_trials_required", 3
	startStepSetting, defaultStartStep = "start_step", 4
)

// EarlyStopping is Katib's early stopping service with the median rule. A trial is stopped
// if, at its report number start_step, its best value so far is worse than the median of
// the values that the succeeded trials had at that report. It keeps no state but copies of
// these values, and is safe for concurrent use.
type EarlyStopping struct {
	pb.UnimplementedEarlyStoppingServer
	// Stop marks a trial in the cluster as stopped early, such as [Cluster.Stop].
	Stop func(ctx context.Context, trial string) error
	// Logger receives errors. Nil discards them.
	Logger *slog.Logger

	mu     sync.Mutex
	values map[valueKey]float64 // NaN if the trial did not report that often
}

type valueKey struct {
	trial, metric string
	step          int32
}

// rule has the settings of the median rule.
type rule struct{ minTrials, startStep int32 }

func ruleOf(s *pb.EarlyStoppingSpec) (rule, error) {
	r := rule{defaultMinTrials, defaultStartStep}
	seen := make(map[string]bool)
	for _, o := range s.GetAlgorithmSettings() {
		field := "spec.earlyStopping.algorithmSettings " + o.GetName()
		to := map[string]*int32{minTrialsSetting: &r.minTrials, startStepSetting: &r.startStep}[o.GetName()]
		if to == nil {
			return r, &FieldError{field, strconv.Quote(o.GetValue()), "is not a setting", "use " + minTrialsSetting + " or " + startStepSetting}
		}
		if seen[o.GetName()] {
			return r, &FieldError{field, strconv.Quote(o.GetValue()), "is given twice", "leave one out"}
		}
		seen[o.GetName()] = true
		n, err := strconv.ParseInt(o.GetValue(), 10, 32)
		if err != nil || n < 1 {
			return r, &FieldError{field, strconv.Quote(o.GetValue()), "must be a whole number of at least 1", "correct it"}
		}
		*to = int32(n)
	}
	return r, nil
}

// ValidateEarlyStoppingSettings checks the settings of the median rule.
func (s *EarlyStopping) ValidateEarlyStoppingSettings(_ context.Context, r *pb.ValidateEarlyStoppingSettingsRequest) (*pb.ValidateEarlyStoppingSettingsReply, error) {
	if _, err := ruleOf(r.GetEarlyStopping()); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return &pb.ValidateEarlyStoppingSettingsReply{}, nil
}

// GetEarlyStoppingRules returns the rule for new trials, or none as long as too few trials
// have succeeded.
func (s *EarlyStopping) GetEarlyStoppingRules(ctx context.Context, r *pb.GetEarlyStoppingRulesRequest) (*pb.GetEarlyStoppingRulesReply, error) {
	spec := r.GetExperiment().GetSpec()
	set, err := ruleOf(spec.GetEarlyStopping())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	out := &pb.EarlyStoppingRule{Name: spec.GetObjective().GetObjectiveMetricName(), StartStep: set.startStep}
	switch spec.GetObjective().GetType() {
	case pb.ObjectiveType_MINIMIZE:
		out.Comparison = pb.ComparisonType_GREATER
	case pb.ObjectiveType_MAXIMIZE:
		out.Comparison = pb.ComparisonType_LESS
	default:
		return nil, status.Error(codes.InvalidArgument, (&FieldError{"spec.objective.type", spec.GetObjective().GetType().String(), "must be minimize or maximize", "correct it"}).Error())
	}
	var values []float64
	var db pb.DBManagerClient
	for _, t := range r.GetTrials() {
		if t.GetStatus().GetCondition() != pb.TrialStatus_SUCCEEDED {
			continue
		}
		key := valueKey{t.GetName(), out.Name, set.startStep}
		s.mu.Lock()
		x, known := s.values[key]
		s.mu.Unlock()
		if !known {
			if db == nil {
				conn, err := grpc.NewClient(r.GetDbManagerAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
				if err != nil {
					return nil, status.Errorf(codes.Unavailable, "db_manager_address %q: %v", r.GetDbManagerAddress(), err)
				}
				defer conn.Close()
				db = pb.NewDBManagerClient(conn)
			}
			if x, err = s.read(ctx, db, key); err != nil {
				return nil, err
			}
		}
		if !math.IsNaN(x) {
			values = append(values, x)
		}
	}
	median, ok := prune.MedianOf(values)
	if !ok || len(values) < int(set.minTrials) || math.IsInf(median, 0) {
		return &pb.GetEarlyStoppingRulesReply{}, nil
	}
	out.Value = strconv.FormatFloat(median, 'g', -1, 64)
	return &pb.GetEarlyStoppingRulesReply{EarlyStoppingRules: []*pb.EarlyStoppingRule{out}}, nil
}

// read reads a report of a succeeded trial, whose reports no longer change.
func (s *EarlyStopping) read(ctx context.Context, db pb.DBManagerClient, key valueKey) (float64, error) {
	reply, err := db.GetObservationLog(ctx, &pb.GetObservationLogRequest{TrialName: key.trial, MetricName: key.metric})
	if err != nil {
		return 0, status.Errorf(codes.Unavailable, "the metrics of trial %s cannot be read from Katib's DB manager: %v", key.trial, err)
	}
	x, step := math.NaN(), int32(0)
	for _, m := range reply.GetObservationLog().GetMetricLogs() {
		if m.GetMetric().GetName() != key.metric {
			continue
		}
		if step++; step < key.step {
			continue
		}
		if y, err := strconv.ParseFloat(m.GetMetric().GetValue(), 64); err == nil {
			x = y
		}
		break
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = make(map[valueKey]float64)
	}
	s.values[key] = x
	return x, nil
}

// SetTrialStatus marks a trial in the cluster as stopped early.
func (s *EarlyStopping) SetTrialStatus(ctx context.Context, r *pb.SetTrialStatusRequest) (*pb.SetTrialStatusReply, error) {
	if err := s.Stop(ctx, r.GetTrialName()); err != nil {
		err = fmt.Errorf("trial %q could not be marked as stopped early: %w", r.GetTrialName(), err)
		if s.Logger != nil {
			s.Logger.Error(err.Error())
		}
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &pb.SetTrialStatusReply{}, nil
}
