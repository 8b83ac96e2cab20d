package rules

import (
	_ "embed"
	"slices"
)

//go:generate go run ./internal/schemagen

//go:embed schema.json
var schema []byte

// SchemaURL is the URL of the latest version of the schema. An editor with a YAML language
// server checks and completes a file that begins with
//
//	# yaml-language-server: $schema=https://raw.githubusercontent.com/penstock-go/penstock/main/docs/rules.schema.json
const SchemaURL = "https://raw.githubusercontent.com/penstock-go/penstock/main/docs/rules.schema.json"

// Schema returns the JSON Schema (draft 7) of native rule files, for editors and other tools.
// [Parse] refuses everything that it refuses. It accepts some errors that a schema can't express: a
// duration that is too long, buckets that don't divide an interval, an invalid expression, a
// repeated id, and spellings of a value that JSON doesn't have. The slice is the caller's own.
func Schema() []byte { return slices.Clone(schema) }
