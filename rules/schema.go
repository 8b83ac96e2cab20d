package rules

import (
	_ "embed"
	"slices"
)

//go:generate go run ./internal/schemagen

//go:embed schema.json
var schema []byte

// SchemaURL is where the schema of the latest version is published. An editor with a YAML
// language server checks a file, and completes what is typed, if the file begins with
//
//	# yaml-language-server: $schema=https://raw.githubusercontent.com/penstock-go/penstock/main/docs/rules.schema.json
const SchemaURL = "https://raw.githubusercontent.com/penstock-go/penstock/main/docs/rules.schema.json"

// Schema returns the JSON Schema (draft 7) of native rule files, for editors and other tools.
// Whatever it refuses, [Parse] refuses too. It lets through what a schema can't say: that a
// duration is too long, that buckets don't divide an interval, that an expression is invalid,
// that an id occurs twice, and ways to write a value that JSON doesn't have. The slice is the
// caller's own.
func Schema() []byte { return slices.Clone(schema) }
