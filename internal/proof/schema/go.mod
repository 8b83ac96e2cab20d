// The schema of rule files against the loader, and the library that validates. A module of its
// own, so that nothing of it reaches those who require the engine.
module github.com/penstock-go/penstock/internal/proof/schema

go 1.26.0

require (
	github.com/penstock-go/penstock v0.0.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	github.com/stretchr/testify v1.12.1
	gopkg.in/yaml.v3 v3.0.1
)

require (
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.13.0 // indirect
	golang.org/x/text v0.14.0 // indirect
)

replace github.com/penstock-go/penstock => ../../..
