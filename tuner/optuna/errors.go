package optuna

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/optuna"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/runner/metric"
)

// The client of Optuna knows four codes. NOT_FOUND becomes KeyError, FAILED_PRECONDITION
// becomes UpdateFinishedTrialError, INVALID_ARGUMENT becomes ValueError where a parameter
// is set, and ALREADY_EXISTS becomes DuplicatedStudyError. All other codes end a script
// with the error of gRPC.

func invalid(field string, value any, rule, remedy string) error {
	return status.Errorf(codes.InvalidArgument, "%s = %v: %s; %s", field, value, rule, remedy)
}

func invalidState(field string, s pb.TrialState) error {
	return invalid(field, int(s), "must be 0 (RUNNING), 1 (COMPLETE), 2 (PRUNED), 3 (FAIL) or 4 (WAITING)", "use a client of Optuna 4.2 or later")
}

// checkAttribute refuses a value that no client could read, because it would hide all
// studies from them. Python's JSON also has NaN and infinities.
func checkAttribute(field, value string) error {
	if !json.Valid(metric.QuoteWords([]byte(value))) {
		return invalid(field, fmt.Sprintf("%.60q", value), "must be JSON", "send json.dumps(value)")
	}
	return nil
}

// checkValues refuses values that are not one for each direction. Trials that are not
// complete may have none.
func checkValues(field string, s pb.TrialState, values, directions int) error {
	if values == 0 && s == pb.TrialState_COMPLETE {
		return invalid("len("+field+")", 0, fmt.Sprintf("a COMPLETE trial must have %d, the number of directions of the study", directions), "send one value for each direction, or the state FAIL")
	}
	if values != 0 && values != directions {
		return invalid("len("+field+")", values, fmt.Sprintf("must be %d, the number of directions of the study", directions), "send one value for each direction")
	}
	return nil
}

func checkTime(field, text string) error {
	if text == "" {
		return nil
	}
	if _, err := time.Parse(timeFormat, text); err != nil {
		return invalid(field, fmt.Sprintf("%.60q", text), "must be a time such as 2026-03-01 12:30:00.123456", "send strftime('%Y-%m-%d %H:%M:%S.%f')")
	}
	return nil
}

// missingStudy is the error of a study that is not there.
type missingStudy struct{ id int64 }

func (e *missingStudy) Error() string { return e.GRPCStatus().Message() }

// GRPCStatus is for package status.
func (e *missingStudy) GRPCStatus() *status.Status {
	return status.Newf(codes.NotFound, "study_id = %d: must be the id of a study of Optuna; it may have been deleted, so load it by name", e.id)
}

// isMissing tells whether an error is about a study that is not there.
func isMissing(err error) bool {
	none := (*missingStudy)(nil)
	return errors.As(err, &none)
}

func noStudyNamed(name string) error {
	return status.Errorf(codes.NotFound, "study_name = %.100q: must be the name of a study of Optuna; create it, or list the names with tuner studies", name)
}

func noTrial(id int64) error {
	return status.Errorf(codes.NotFound, "trial_id = %d: must be the id of a trial; its study may have been deleted, so load the study by name", id)
}

func noNumber(number int64, trials int) error {
	return status.Errorf(codes.NotFound, "trial_number = %d: must be that of a trial, and the study has %d; numbers begin at 0", number, trials)
}

func finished(id int64, s pb.TrialState) error {
	return status.Errorf(codes.FailedPrecondition, "trial_id = %d: the trial must be running or waiting, and is %s; finished trials cannot change", id, s)
}

func duplicate(name, inStore string) error {
	return status.Errorf(codes.AlreadyExists, "study_name = %.100q: must be new, and the store has a study %s; use load_if_exists=True, or another name", name, inStore)
}

// notFound tells whether an error of the service means that there is no such study of
// Optuna.
func notFound(err error) bool {
	none := (*store.NotFoundError)(nil)
	return errors.As(err, &none) || errors.Is(err, engine.ErrNotForeign)
}
