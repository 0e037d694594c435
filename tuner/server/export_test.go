package server

import "google.golang.org/grpc"

// ServiceInfo is what is registered.
func (s *Server) ServiceInfo() map[string]grpc.ServiceInfo { return s.grpc.GetServiceInfo() }

// CheckComplete holds services against the table of permissions.
func CheckComplete(services map[string]grpc.ServiceInfo) error {
	return checkComplete(services, permissions())
}
