package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// The parts of CycloneDX 1.6 that an SBOM of a Go program needs.
type (
	bom struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		SerialNumber string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licences   []licence  `json:"licenses,omitempty"`
		URL        string     `json:"purl,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	licence struct {
		Expression string `json:"expression"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
)

// sbom lists what an executable is made of.
func sbom(v version, info *buildinfo.BuildInfo, system, arch string, executable []byte, modules []module) ([]byte, error) {
	sum := sha256.Sum256(executable)
	main := component{
		Type: "application", Ref: packageURL(info.Main.Path, v.name), Name: "tuner", Version: v.name,
		Hashes:     []hash{{"SHA-256", fmt.Sprintf("%x", sum)}},
		Licences:   []licence{{"Apache-2.0"}},
		URL:        packageURL(info.Main.Path, v.name),
		Properties: []property{{"go:os", system}, {"go:arch", arch}, {"go:version", info.GoVersion}},
	}
	b := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		SerialNumber: "urn:uuid:" + uuid(sum), Metadata: metadata{v.time.Format(time.RFC3339), main},
	}
	whole := dependency{Ref: main.Ref}
	for _, m := range modules {
		c := component{
			Type: "library", Ref: packageURL(m.path, m.version), Name: m.path, Version: m.version,
			Licences: []licence{{strings.Join(m.licences, " AND ")}}, URL: packageURL(m.path, m.version),
		}
		if m.sum != "" {
			c.Properties = []property{{"go:sum", m.sum}}
		}
		b.Components = append(b.Components, c)
		b.Dependencies = append(b.Dependencies, dependency{Ref: c.Ref})
		whole.DependsOn = append(whole.DependsOn, c.Ref)
	}
	b.Dependencies = append([]dependency{whole}, b.Dependencies...)
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

// packageURL is the package URL of a Go module.
func packageURL(path, version string) string {
	return "pkg:golang/" + path + "@" + url.QueryEscape(version)
}

// uuid makes a version 8 UUID from a hash, so that the same program has the same number.
func uuid(sum [32]byte) string {
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
