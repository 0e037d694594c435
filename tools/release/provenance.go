package main

import (
	"encoding/json"
	"runtime"
	"strings"
	"time"
)

// The parts of an in-toto statement of SLSA provenance v1 that say what was built from which
// commit, how, and by what. See https://slsa.dev/spec/v1.0/provenance.
type (
	statement struct {
		Type          string     `json:"_type"`
		Subject       []artifact `json:"subject"`
		PredicateType string     `json:"predicateType"`
		Predicate     provenance `json:"predicate"`
	}
	artifact struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest"`
	}
	provenance struct {
		BuildDefinition struct {
			BuildType            string            `json:"buildType"`
			ExternalParameters   map[string]string `json:"externalParameters"`
			InternalParameters   map[string]string `json:"internalParameters"`
			ResolvedDependencies []artifact        `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder struct {
				ID string `json:"id"`
			} `json:"builder"`
			Metadata struct {
				FinishedOn string `json:"finishedOn"`
			} `json:"metadata"`
		} `json:"runDetails"`
	}
)

// provenanceOf describes the archives in the lines of SHA256SUMS. It names the commit and its
// time, and not the machine or the hour of the build, so that it is the same for everybody who
// builds that commit. A platform of CI that signs it gives its own name as builder.
func provenanceOf(v version, targets, builder string, sums []string) ([]byte, error) {
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, line := range sums {
		sum, name, _ := strings.Cut(line, "  ")
		s.Subject = append(s.Subject, artifact{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	build := &s.Predicate.BuildDefinition
	build.BuildType = "https://" + product + "/tools/release@v1"
	build.ExternalParameters = map[string]string{"source": "git+https://" + product, "targets": targets}
	build.InternalParameters = map[string]string{"go": runtime.Version()}
	build.ResolvedDependencies = []artifact{{URI: "git+https://" + product, Digest: map[string]string{"gitCommit": v.commit}}}
	s.Predicate.RunDetails.Builder.ID = builder
	s.Predicate.RunDetails.Metadata.FinishedOn = v.time.Format(time.RFC3339)
	text, err := json.Marshal(s) // a line of JSON Lines
	return append(text, '\n'), err
}
