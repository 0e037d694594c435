package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// module is a dependency that a program links.
type module struct {
	path, version, sum string
	licences           []string // SPDX identifiers
	texts              []file   // licences and notices, for the archive
}

// modules returns what a program links with its licences, Go's library first.
func (r *release) modules(ctx context.Context, info *buildinfo.BuildInfo) ([]module, error) {
	root, err := output(ctx, r.root, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	std := module{path: "std", version: strings.TrimPrefix(info.GoVersion, "go")}
	if err := std.read(root, false); err != nil {
		return nil, err
	}
	list := []module{std}
	args := []string{"list", "-m", "-f", "{{.Dir}}"}
	for _, d := range info.Deps {
		if d.Replace != nil {
			return nil, fmt.Errorf("module %s is replaced by %s: a release must not have replaced modules", d.Path, d.Replace.Path)
		}
		args = append(args, d.Path)
	}
	if len(info.Deps) == 0 {
		return list, nil
	}
	dirs, err := output(ctx, r.root, nil, "go", args...)
	if err != nil {
		return nil, err
	}
	for i, dir := range strings.Split(dirs, "\n") {
		d := info.Deps[i]
		m := module{path: d.Path, version: d.Version, sum: d.Sum}
		if err := m.read(dir, true); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// writeLicences writes the licences of what a program links, one directory for each
// module.
func (r *release) writeLicences(ctx context.Context, info *buildinfo.BuildInfo) error {
	modules, err := r.modules(ctx, info)
	if err != nil {
		return err
	}
	for _, m := range modules {
		for _, f := range m.texts {
			path := filepath.Join(r.out, filepath.FromSlash(strings.TrimPrefix(f.name, "licenses/")))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, f.data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|ftl)([-_.].*)?$`)

// read fills in the licences of a module from the files in its directory.
func (m *module) read(dir string, deep bool) error {
	if dir == "" {
		return fmt.Errorf("module %s %s is not in the module cache: run go mod download", m.path, m.version)
	}
	known := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		parent, _, below := strings.Cut(rel, "/")
		if e.IsDir() {
			// Licences of vendored code are in directories of this kind.
			if rel != "." && (!deep || !licenceDir(parent)) {
				return fs.SkipDir
			}
			return nil
		}
		if !e.Type().IsRegular() || !legal.MatchString(e.Name()) && (!below || strings.HasPrefix(e.Name(), "gpl")) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		m.texts = append(m.texts, file{name: "licenses/" + m.path + "@" + m.version + "/" + rel, data: text})
		id := spdx(string(text))
		if id != "" && !known[id] && !below {
			known[id] = true
			m.licences = append(m.licences, id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(m.licences) == 0 {
		return fmt.Errorf("module %s %s: no known licence in %s", m.path, m.version, dir)
	}
	return nil
}

// licenceDir tells whether a directory holds licences. Gonum has THIRD_PARTY_LICENSES
// and freetype has licenses.
func licenceDir(name string) bool {
	return name == "licenses" || name == "THIRD_PARTY_LICENSES"
}

// spdx returns the identifier of a licence from its text, empty for other texts.
func spdx(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	has := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case has("SIL OPEN FONT LICENSE") || has("SIL Open Font License"):
		return "OFL-1.1"
	case has("Creative Commons Attribution 4.0"):
		return "CC-BY-4.0"
	case has("The FreeType License"):
		return "FTL" // the other choice is the GPL
	case has("MIT License") && has("Apache") && has("Redistribution and use"):
		return "BSD-3-Clause AND MIT AND Apache-2.0"
	case has("MIT License") && has("Apache"):
		return "MIT AND Apache-2.0"
	case has("Apache License Version 2.0, January 2004"):
		return "Apache-2.0"
	case has("Permission is hereby granted, free of charge"):
		return "MIT"
	case has("Redistribution and use in source and binary forms") && (has("Neither the name") || has("names of its contributors may be used") || has("used to endorse")):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms") || has("Redistributions in binary form must reproduce"):
		return "BSD-2-Clause"
	}
	return ""
}
