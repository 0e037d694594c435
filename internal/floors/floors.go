// Package floors checks the layers of docs/architecture.md. It reads the tables there and
// checks the imports of every package of the module against them.
package floors

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Module is the path of the module whose layers these are.
const Module = "github.com/bkbtuner/bkb"

// House is the content of docs/architecture.md about imports.
type House struct {
	Rows  []Row
	Homes []Home
}

// Row is one line of the table of floors.
type Row struct {
	Floor   int
	Package string   // path within the module, which includes its subtree
	Also    []string // packages it may import although they are not below it
	Not     []Ban    // packages it must not import although they are below it
}

// Ban is an entry of the last column of the table of floors. Of a package of this module it
// holds through all imports.
type Ban struct {
	Package  string
	Directly bool // it may be imported through other packages
	Tests    bool // tests may import it
}

// Home is one line of the table of third-party modules.
type Home struct {
	Module string
	In     []string // packages with their subtrees, or "tests" for tests only
}

// Package is a package of the module with its imports.
type Package struct {
	Path        string // within the module
	Imports     []string
	TestImports []string
}

// wings are names for several packages in the last column of the table.
var wings = map[string][]string{
	"maths":   {"gp", "sketch", "bandit", "learners"},
	"service": {"tuner", "store"},
}

// Parse reads the tables of the architecture page.
func Parse(page io.Reader) (House, error) {
	var h House
	lines := bufio.NewScanner(page)
	for n := 1; lines.Scan(); n++ {
		cells := strings.Split(strings.Trim(strings.TrimSpace(lines.Text()), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if floor, err := strconv.Atoi(cells[0]); err == nil && len(cells) == 5 {
			h.Rows = append(h.Rows, Row{floor, strings.Trim(cells[1], "`"), list(cells[3]), bans(cells[4])})
		} else if len(cells) == 2 && strings.HasPrefix(cells[0], "`") {
			h.Homes = append(h.Homes, Home{strings.Trim(cells[0], "`"), list(cells[1])})
		}
	}
	if err := lines.Err(); err != nil {
		return h, err
	}
	if len(h.Rows) == 0 || len(h.Homes) == 0 {
		return h, fmt.Errorf("the page has %d rows of floors and %d of modules; both tables are required", len(h.Rows), len(h.Homes))
	}
	return h, nil
}

// list splits a cell such as "`proto`, maths".
func list(cell string) []string {
	var out []string
	for item := range strings.SplitSeq(cell, ",") {
		item = strings.Trim(strings.TrimSpace(item), "`")
		switch {
		case item == "":
		case wings[item] != nil:
			out = append(out, wings[item]...)
		default:
			out = append(out, item)
		}
	}
	return out
}

// bans splits a cell such as "maths directly, `tuner/engine` outside of tests".
func bans(cell string) []Ban {
	var out []Ban
	for item := range strings.SplitSeq(cell, ",") {
		item, directly := strings.CutSuffix(item, " directly")
		item, tests := strings.CutSuffix(item, " outside of tests")
		for _, p := range list(item) {
			out = append(out, Ban{p, directly, tests})
		}
	}
	return out
}

// Check returns a sentence for each import that the house does not allow.
func (h House) Check(packages []Package) []string {
	var faults []string
	imports := make(map[string][]string)
	for _, p := range packages {
		imports[p.Path] = p.Imports
	}
	for _, p := range packages {
		row, ok := h.row(p.Path)
		if !ok {
			faults = append(faults, fmt.Sprintf("%s: no row of the table of floors matches this package", p.Path))
			continue
		}
		isTest := strings.HasSuffix(p.Path, "test")
		for _, imp := range p.Imports {
			faults = append(faults, h.fault(p.Path, row, imp, isTest)...)
		}
		for _, imp := range p.TestImports {
			faults = append(faults, h.fault(p.Path, row, imp, true)...)
		}
		if !isTest {
			faults = append(faults, through(p.Path, row, imports)...)
		}
	}
	slices.Sort(faults)
	return slices.Compact(faults)
}

// through returns a sentence for each package that must not be imported and is, through
// other packages.
func through(from string, row Row, imports map[string][]string) (faults []string) {
	via := map[string]string{from: ""} // from a package to the one that imports it
	for next := []string{from}; len(next) > 0; next = next[1:] {
		for _, imp := range imports[next[0]] {
			to, ours := strings.CutPrefix(imp, Module+"/")
			if _, seen := via[to]; !ours || seen {
				continue
			}
			via[to] = next[0]
			next = append(next, to)
		}
	}
	for to, first := range via {
		banned := slices.ContainsFunc(row.Not, func(b Ban) bool { return !b.Directly && within(to, b.Package) })
		if !banned || first == from || first == "" || within(to, row.Also...) {
			continue
		}
		path := to
		for ; first != ""; first = via[first] {
			path = first + " → " + path
		}
		faults = append(faults, fmt.Sprintf("%s: %s must not depend on %s", path, row.Package, to))
	}
	return faults
}

// bans reports whether the row forbids an import.
func (r Row) bans(path string, inTest bool) bool {
	return slices.ContainsFunc(r.Not, func(b Ban) bool { return within(path, b.Package) && !(inTest && b.Tests) })
}

func (h House) fault(from string, row Row, imp string, inTest bool) []string {
	to, ours := strings.CutPrefix(imp, Module+"/")
	first, _, _ := strings.Cut(imp, "/")
	switch {
	case ours:
	case strings.Contains(first, "."):
		return h.homeFault(from, imp, inTest)
	case row.bans(imp, inTest) && !inTest:
		return []string{fmt.Sprintf("%s imports %s: %s must not use it", from, imp, row.Package)}
	default:
		return nil
	}
	target, ok := h.row(to)
	switch {
	case !ok, within(to, row.Also...), inTest && strings.HasSuffix(to, "test"):
		return nil
	case row.bans(to, inTest):
		return []string{fmt.Sprintf("%s imports %s: %s must not depend on it", from, to, row.Package)}
	case target.Package == "proto" && row.Package != "proto":
		return []string{fmt.Sprintf("%s imports %s: only packages named in the table may import the wire", from, to)}
	case target.Floor < row.Floor, target.Floor == row.Floor && target.Package == row.Package:
		return nil
	}
	return []string{fmt.Sprintf("%s (floor %d) imports %s (floor %d): a package imports lower floors only", from, row.Floor, to, target.Floor)}
}

// homeFault checks the import of a third-party module.
func (h House) homeFault(from, imp string, inTest bool) []string {
	for _, home := range h.Homes {
		switch {
		case !within(imp, home.Module):
		case within(from, home.In...), inTest && slices.Contains(home.In, "tests"):
			return nil
		default:
			return []string{fmt.Sprintf("%s imports %s: allowed only in %s", from, imp, strings.Join(home.In, ", "))}
		}
	}
	return []string{fmt.Sprintf("%s imports %s: no row of the table of modules allows it", from, imp)}
}

// row returns the row whose package is the longest prefix of path.
func (h House) row(path string) (Row, bool) {
	var best Row
	for _, r := range h.Rows {
		if within(path, r.Package) && len(r.Package) > len(best.Package) {
			best = r
		}
	}
	return best, best.Package != ""
}

// within reports whether path is one of the folders or below one.
func within(path string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		return path == f || strings.HasPrefix(path, f+"/")
	})
}
