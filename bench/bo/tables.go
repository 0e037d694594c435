package bo

import "slices"

// tables has complete tables that other projects have measured. They are real response
// surfaces with their real noise and failures.
//
// The eight of the standard tier were chosen before any result was seen. They are one or
// two of every family, without conditions, which not all peers support.
var tables = Suite{
	Name: "table", Title: "Tables", Source: "real data, see MANIFEST.md of the folder of data",
	Problems: tableProblems(),
}

func tableProblems() []Listed {
	out := []Listed{
		fcnet(Standard, "naval_propulsion"),
		fcnet(Standard, "parkinsons_telemonitoring"),
		hpobench(Standard, "phoneme"),
		hpobench(Standard, "vehicle"),
		hpobench(Full, "car"),
		hpobench(Full, "credit_g"),
		nasbench(Standard),
		kernelTable("convolution-a100", Standard, "convolution_milo__A100", convolution),
		kernelTable("convolution-w6600", Full, "convolution_milo__W6600", convolution),
		kernelTable("dedispersion-a4000", Full, "dedispersion_milo__A4000", dedispersion),
		kernelTable("gemm-rtx3090", Standard, "gemm__RTX_3090", gemm),
		kernelTable("pnpoly-rtx3090", Full, "pnpoly__RTX_3090", pnpoly),
		reaction("suzuki", Smoke, "suzuki_edbo", -1, false, "electrophile", "nucleophile", "base", "ligand", "solvent"),
		reaction("perovskites", Full, "perovskites", 1, false, "organic", "cation", "anion"),
		reaction("dye-lasers", Full, "dye_lasers", -1, false, "fragment_a", "fragment_b", "fragment_c"),
		reaction("opv", Full, "mmli_opv", -1, false, "donor", "acceptor"),
		crossedBarrel(Full),
		structuredSVM(Full),
		reaction("fullerenes", Full, "fullerenes", -1, true, "reaction_time", "sultine", "temperature"),
	}
	for _, halide := range []string{"a", "c", "e"} {
		out = append(out, reaction("buchwald-"+halide, Full, "buchwald_"+halide, -1, false, "aryl_halide", "additive", "base", "ligand"))
	}
	for _, set := range []string{"A9A", "banana", "cod-rna", "kr-vs-k", "letter", "magic", "pendigits", "seismic", "sonar-scale", "vehicle"} {
		out = append(out, svm(Full, set))
	}
	return slices.Clip(out)
}
