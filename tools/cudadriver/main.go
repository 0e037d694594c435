// Cudadriver writes the header and the symbol table of package driver. It reads the interface of
// the CUDA driver from the module gorgonia.org/cu, which ships one for its own generator.
//
//	include/cuda.h    the types, constants and functions that gorgonia.org/cu uses
//	forward.h       one forwarding function for each of them
//
// That interface has no version suffixes, which are part of the names of symbols in the
// driver. The list below adds them.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	out := "../internal/gpu/cuda/driver"
	if len(os.Args) > 1 {
		out = os.Args[1]
	}
	if err := generate(out); err != nil {
		fmt.Fprintln(os.Stderr, "cudadriver:", err)
		os.Exit(1)
	}
}

func generate(out string) error {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "gorgonia.org/cu")
	list.Dir = ".." // the product, which imports it
	dir, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list -m gorgonia.org/cu: %w; run go mod download first", err)
	}
	a, err := read(strings.TrimSpace(string(dir)))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(out, "include"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "include", "cuda.h"), []byte(a.header()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "forward.h"), []byte(a.forwarders()), 0o644)
}

// versions are the functions whose symbols have a suffix.
var versions = map[string]string{
	"_v2": `Array3DCreate Array3DGetDescriptor ArrayCreate ArrayGetDescriptor CtxCreate CtxDestroy
		CtxPopCurrent CtxPushCurrent DevicePrimaryCtxRelease DevicePrimaryCtxReset
		DevicePrimaryCtxSetFlags DeviceTotalMem EventDestroy LinkAddData LinkAddFile LinkCreate
		MemAlloc MemAllocPitch MemFree MemGetAddressRange MemGetInfo Memcpy2DAsync
		Memcpy2DUnaligned Memcpy2D Memcpy3DAsync Memcpy3D MemcpyAtoA MemcpyAtoD MemcpyAtoHAsync
		MemcpyAtoH MemcpyDtoA MemcpyDtoDAsync MemcpyDtoD MemcpyDtoHAsync MemcpyDtoH
		MemcpyHtoAAsync MemcpyHtoA MemcpyHtoDAsync MemcpyHtoD MemsetD16 MemsetD2D16 MemsetD2D32
		MemsetD2D8 MemsetD32 MemsetD8 ModuleGetGlobal StreamDestroy StreamWaitValue32
		StreamWriteValue32 TexRefGetAddress TexRefSetAddress`,
	"_v3": `TexRefSetAddress2D`,
}

// lost are macros that preprocessing took out of the interface.
var lost = map[string]int64{"CU_TRSF_READ_AS_INTEGER": 1, "CU_TRSF_NORMALIZED_COORDINATES": 2}

// declaration is one of the interface.
type declaration struct {
	name   string
	text   string   // with a final semicolon
	params []string // of a function
	types  string   // of its parameters, as they stand there
	values []constant
}

type constant struct {
	name  string
	value int64
}

type api struct {
	types     []*declaration // in the order of the file
	functions map[string]*declaration
	constants map[string]constant
	used      map[string]bool // identifiers in the sources of cu
}

var (
	identifier = regexp.MustCompile(`\b[A-Za-z_]\w*\b`)
	inGo       = regexp.MustCompile(`\bC\.(\w+)`)
	function   = regexp.MustCompile(`(?s)^CUresult (cu\w+)\s*\((.*)\);$`)
	enum       = regexp.MustCompile(`(?s)^typedef enum\s*\w*\s*\{(.*)\}\s*(\w+);$`)
	aggregate  = regexp.MustCompile(`(?s)^typedef (?:struct|union)\s*\w*\s*\{.*\}\s*(\w+);$`)
	callback   = regexp.MustCompile(`(?s)^typedef .*\(\s*\*\s*(\w+)\)\s*\(.*\);$`)
	plain      = regexp.MustCompile(`(?s)^typedef .*\b(\w+);$`)
	attribute  = regexp.MustCompile(`__attribute__\s*\(\(.*?\)\)`)
	spaces     = regexp.MustCompile(`\s+`)
)

func read(cu string) (*api, error) {
	text, err := os.ReadFile(filepath.Join(cu, "cmd", "genlib", "cuda.h"))
	if err != nil {
		return nil, err
	}
	a := &api{functions: map[string]*declaration{}, constants: map[string]constant{}, used: map[string]bool{}}
	_, text, ok := bytes.Cut(text, []byte("typedef uint32_t cuuint32_t;")) // the rest is of C's library
	if !ok {
		return nil, fmt.Errorf("%s: no interface of the driver begins with cuuint32_t", cu)
	}
	for _, d := range split(attribute.ReplaceAllString(string(text), "")) {
		if err := a.add(d); err != nil {
			return nil, err
		}
	}
	sources, err := filepath.Glob(filepath.Join(cu, "*.[gch]*"))
	if err != nil {
		return nil, err
	}
	for _, name := range sources {
		text, err := os.ReadFile(name)
		switch {
		case err != nil:
			return nil, err
		case strings.HasSuffix(name, "_test.go"):
		case strings.HasSuffix(name, ".go"):
			for _, m := range inGo.FindAllSubmatch(text, -1) {
				a.used[string(m[1])] = true
			}
		default:
			for _, id := range identifier.FindAll(text, -1) {
				a.used[string(id)] = true
			}
		}
	}
	return a, nil
}

// split returns the declarations at the top level, each with its semicolon.
func split(text string) []string {
	var out []string
	depth, from := 0, 0
	for i, c := range text {
		switch c {
		case '{', '(':
			depth++
		case '}', ')':
			depth--
		case ';':
			if depth == 0 {
				out = append(out, strings.TrimSpace(spaces.ReplaceAllString(text[from:i+1], " ")))
				from = i + 1
			}
		}
	}
	return out
}

func (a *api) add(text string) error {
	text = strings.TrimPrefix(strings.ReplaceAll(text, " ;", ";"), "extern ")
	d := &declaration{text: text}
	if m := function.FindStringSubmatch(text); m != nil {
		d.name, d.types = m[1], strings.TrimSpace(m[2])
		if d.types != "void" {
			for p := range strings.SplitSeq(d.types, ",") {
				ids := identifier.FindAllString(p, -1)
				d.params = append(d.params, ids[len(ids)-1])
			}
		}
		a.functions[d.name] = d
		return nil
	}
	for _, form := range []*regexp.Regexp{enum, aggregate, callback, plain} {
		m := form.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		d.name = m[len(m)-1]
		if form == enum {
			var err error
			if d.values, err = constants(m[1]); err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
			for _, c := range d.values {
				a.constants[c.name] = c
			}
		}
		if strings.HasPrefix(strings.ToUpper(d.name), "CU") {
			a.types = append(a.types, d)
		}
		return nil
	}
	return nil
}

// constants returns the names of an enumeration with their values.
func constants(body string) ([]constant, error) {
	var out []constant
	next := int64(0)
	for item := range strings.SplitSeq(body, ",") {
		name, text, given := strings.Cut(strings.TrimSpace(item), "=")
		if name == "" {
			continue
		}
		if given {
			left, right, shifted := strings.Cut(strings.TrimSpace(text), "<<")
			v, err := strconv.ParseInt(strings.TrimSpace(left), 0, 64)
			if err != nil {
				return nil, err
			}
			if shifted {
				by, err := strconv.Atoi(strings.TrimSpace(right))
				if err != nil {
					return nil, err
				}
				v <<= by
			}
			next = v
		}
		out = append(out, constant{strings.TrimSpace(name), next})
		next++
	}
	return out, nil
}

// symbols returns the functions that cu uses, with the names of their symbols.
func (a *api) symbols() (names []string, symbol map[string]string) {
	symbol = map[string]string{}
	suffixed := map[string]string{}
	for suffix, list := range versions {
		for base := range strings.FieldsSeq(list) {
			suffixed["cu"+base] = suffix
		}
	}
	for name := range a.functions {
		if a.used[name] {
			names = append(names, name)
			symbol[name] = name + suffixed[name]
		}
	}
	slices.Sort(names)
	return names, symbol
}

// needed returns the types of the functions and sources, with those that they are made of.
func (a *api) needed() []*declaration {
	byName := map[string]*declaration{}
	for _, t := range a.types {
		byName[t.name] = t
	}
	want := map[*declaration]bool{}
	var add func(text string)
	add = func(text string) {
		for _, id := range identifier.FindAllString(text, -1) {
			if t := byName[id]; t != nil && !want[t] {
				want[t] = true
				if t.values == nil {
					add(t.text)
				}
			}
		}
	}
	names, _ := a.symbols()
	add("CUresult")
	for _, n := range names {
		add(a.functions[n].types)
	}
	for id := range a.used {
		add(id)
	}
	var out []*declaration
	for _, t := range a.types {
		if want[t] {
			out = append(out, t)
		}
	}
	return out
}

const notice = "/* Code generated by gen from gorgonia.org/cu. DO NOT EDIT. */\n"

func (a *api) header() string {
	var b strings.Builder
	b.WriteString(notice + `#ifndef BKB_CUDA_H
#define BKB_CUDA_H
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#define CUDA_VERSION 11000
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
`)
	written := map[string]bool{}
	for _, t := range a.needed() {
		if t.values == nil {
			fmt.Fprintln(&b, t.text)
			continue
		}
		var kept []string
		for _, c := range t.values {
			if a.used[c.name] {
				kept = append(kept, fmt.Sprintf("%s = %d", c.name, c.value))
				written[c.name] = true
			}
		}
		if kept == nil { // C has no empty enumerations
			kept = []string{fmt.Sprintf("%s = %d", t.values[0].name, t.values[0].value)}
		}
		fmt.Fprintf(&b, "typedef enum { %s } %s;\n", strings.Join(kept, ", "), t.name)
	}
	var rest []string
	for name, c := range a.constants {
		if a.used[name] && !written[name] {
			rest = append(rest, fmt.Sprintf("%s = %d", name, c.value))
		}
	}
	for name, v := range lost {
		rest = append(rest, fmt.Sprintf("%s = %d", name, v))
	}
	slices.Sort(rest)
	fmt.Fprintf(&b, "enum { %s };\n", strings.Join(rest, ", "))
	names, symbol := a.symbols()
	for _, n := range names {
		if symbol[n] != n {
			fmt.Fprintf(&b, "#define %s %s\n", n, symbol[n])
		}
	}
	for _, n := range names {
		fmt.Fprintf(&b, "CUresult %s(%s);\n", n, a.functions[n].types)
	}
	b.WriteString("#endif\n")
	return b.String()
}

// forwarders has SYMBOL(name) and FORWARD(name, parameters, arguments) for each function
// except cuInit.
func (a *api) forwarders() string {
	var b strings.Builder
	b.WriteString(notice)
	names, symbol := a.symbols()
	for _, n := range names {
		if n == "cuInit" {
			continue
		}
		d := a.functions[n]
		fmt.Fprintf(&b, "FORWARD(%s, (%s), (%s))\n", symbol[n], d.types, strings.Join(d.params, ", "))
	}
	return b.String()
}
