package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionalphapb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	"github.com/bkbtuner/bkb/internal/planted"
	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// need is the permission that a method needs.
type need uint8

const (
	needNothing    need = iota + 1
	needAny             // any known caller
	needRead            // admin, read, or a worker of the study
	needReadAll         // admin, read, or a worker of all studies
	needWork            // admin, or a worker of the study
	needWorkTrials      // needWork for a trial, needAdmin for a study
	needAdmin
)

// permissions returns what each method needs. A method that is not listed is refused.
func permissions() map[string]need {
	return map[string]need{
		pb.Tuner_CreateStudy_FullMethodName:   needAdmin,
		pb.Tuner_GetStudy_FullMethodName:      needRead,
		pb.Tuner_ListStudies_FullMethodName:   needReadAll,
		pb.Tuner_DeleteStudy_FullMethodName:   needAdmin,
		pb.Tuner_PauseStudy_FullMethodName:    needAdmin,
		pb.Tuner_ResumeStudy_FullMethodName:   needAdmin,
		pb.Tuner_FinishStudy_FullMethodName:   needAdmin,
		pb.Tuner_SetAttributes_FullMethodName: needWorkTrials,
		pb.Tuner_Ask_FullMethodName:           needWork,
		pb.Tuner_Tell_FullMethodName:          needWork,
		pb.Tuner_Report_FullMethodName:        needWork,
		pb.Tuner_Heartbeat_FullMethodName:     needWork,
		pb.Tuner_EnqueueTrial_FullMethodName:  needWork,
		pb.Tuner_AddTrial_FullMethodName:      needWork,
		pb.Tuner_AddTrials_FullMethodName:     needWork,
		pb.Tuner_GetTrial_FullMethodName:      needRead,
		pb.Tuner_ListTrials_FullMethodName:    needRead,
		pb.Tuner_ListReports_FullMethodName:   needRead,
		pb.Tuner_GetBest_FullMethodName:       needRead,
		pb.Tuner_GetColumns_FullMethodName:    needRead,
		pb.Tuner_GetDiagnosis_FullMethodName:  needRead,
		pb.Tuner_Predict_FullMethodName:       needRead,
		pb.Tuner_GetImportance_FullMethodName: needRead,
		pb.Tuner_Watch_FullMethodName:         needRead,
		pb.Tuner_WatchStudies_FullMethodName:  needReadAll,
		pb.Tuner_GetCaller_FullMethodName:     needAny,
		pb.Tuner_Backup_FullMethodName:        needAdmin,

		healthpb.Health_Check_FullMethodName:                                   needNothing,
		healthpb.Health_List_FullMethodName:                                    needNothing,
		healthpb.Health_Watch_FullMethodName:                                   needNothing,
		reflectionpb.ServerReflection_ServerReflectionInfo_FullMethodName:      needAny,
		reflectionalphapb.ServerReflection_ServerReflectionInfo_FullMethodName: needAny,
	}
}

// checkComplete returns an error that names the methods without a permission.
func checkComplete(services map[string]grpc.ServiceInfo, table map[string]need) error {
	var missing []string
	for _, service := range slices.Sorted(maps.Keys(services)) {
		for _, m := range services[service].Methods {
			if name := "/" + service + "/" + m.Name; table[name] == 0 {
				missing = append(missing, name)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the permission table lacks %s", strings.Join(missing, ", "))
	}
	return nil
}

// permits reports whether a scope permits a request.
func (s Scope) permits(n need, request any) bool {
	switch {
	case planted.Is(planted.PermissionForgotten) && n == needAdmin && s.Role == RoleRead:
		return true
	case n == needNothing, n == needAny, s.Role == RoleAdmin:
		return n != 0
	case n == needRead && s.Role == RoleRead, n == needReadAll && s.Role == RoleRead:
		return true
	case s.Role != RoleWorker:
		return false
	}
	switch n {
	case needRead, needWork:
		return s.Studies == nil || s.coversRequest(request)
	case needWorkTrials:
		_, _, err := wire.ParseTrialName(resourceOf(request))
		return err == nil && s.coversRequest(request)
	case needReadAll:
		return s.Studies == nil
	default:
		return false
	}
}

// denied is the error of a request that the scope does not permit. It names the scopes
// that do.
func (s Scope) denied(n need, request any) error {
	worker := Scope{Role: RoleWorker}
	if study, ok := wire.StudyOf(resourceOf(request)); ok && n != needReadAll {
		worker.Studies = []string{study}
	}
	enough := string(RoleAdmin)
	if worker.permits(n, request) {
		enough = worker.String() + " or " + enough
	}
	if (Scope{Role: RoleRead}).permits(n, request) {
		enough = string(RoleRead) + ", " + enough
	}
	return wire.Denied(true, "the scope "+s.String()+" does not permit this call; it needs the scope "+enough).Err()
}

func (s Scope) coversRequest(request any) bool {
	study, ok := wire.StudyOf(resourceOf(request))
	return ok && s.covers(study)
}

// resourceOf returns the resource name in a request, or "" if it has none.
func resourceOf(request any) string {
	switch r := request.(type) {
	case interface{ GetParent() string }:
		return r.GetParent()
	case interface{ GetName() string }:
		return r.GetName()
	default:
		return ""
	}
}
