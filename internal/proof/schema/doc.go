// Package schema checks the JSON Schema of rule files against the loader, with a validator that
// knows neither: the schema must accept every file that the loader accepts, and the loader may
// refuse files that the schema accepts only for listed reasons that no schema can express. It also
// checks the rule files of this repository against the schema.
package schema
