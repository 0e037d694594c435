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

	"github.com/bkbtuner/bkb/tuner/wire"
)

// methods returns all methods by their full names. A method that is not there is refused.
func methods() map[string]wire.Method {
	all := map[string]wire.Method{
		healthpb.Health_Check_FullMethodName:                                   {Need: wire.NeedNothing},
		healthpb.Health_List_FullMethodName:                                    {Need: wire.NeedNothing},
		healthpb.Health_Watch_FullMethodName:                                   {Need: wire.NeedNothing},
		reflectionpb.ServerReflection_ServerReflectionInfo_FullMethodName:      {Need: wire.NeedAny},
		reflectionalphapb.ServerReflection_ServerReflectionInfo_FullMethodName: {Need: wire.NeedAny},
	}
	for _, m := range wire.Methods {
		all[m.FullName()] = m
	}
	return all
}

// checkComplete returns an error that names the methods without a permission.
func checkComplete(services map[string]grpc.ServiceInfo, table map[string]wire.Method) error {
	var missing []string
	for _, service := range slices.Sorted(maps.Keys(services)) {
		for _, m := range services[service].Methods {
			if name := "/" + service + "/" + m.Name; table[name].Need == 0 {
				missing = append(missing, name)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the table of methods lacks %s", strings.Join(missing, ", "))
	}
	return nil
}

// permits reports whether a scope permits a request.
func (s Scope) permits(n wire.Need, request any) bool {
	switch {
	case n == wire.NeedNothing, n == wire.NeedAny, s.Role == RoleAdmin:
		return n != 0
	case n == wire.NeedRead && s.Role == RoleRead, n == wire.NeedReadAll && s.Role == RoleRead:
		return true
	case s.Role != RoleWorker:
		return false
	}
	switch n {
	case wire.NeedRead, wire.NeedWork:
		return s.Studies == nil || s.coversRequest(request)
	case wire.NeedWorkTrials:
		_, _, err := wire.ParseTrialName(resourceOf(request))
		return err == nil && s.coversRequest(request)
	case wire.NeedReadAll:
		return s.Studies == nil
	default:
		return false
	}
}

// denied is the error of a request that the scope does not permit. It names the scopes
// that do.
func (s Scope) denied(n wire.Need, request any) error {
	worker := Scope{Role: RoleWorker}
	if study, ok := wire.StudyOf(resourceOf(request)); ok && n != wire.NeedReadAll {
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
