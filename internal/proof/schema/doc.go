// Package schema holds the JSON Schema of rule files against the loader, by a validator that knows
// nothing of either: what the loader takes the schema must take, and what the schema takes the
// loader may refuse only for a reason that no schema can give, each of which is listed. And it
// holds the rule files of this repository against the schema.
package schema
