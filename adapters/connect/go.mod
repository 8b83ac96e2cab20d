// The adapter of connectrpc.com/connect. A module of its own, so that nothing of connect reaches those
// who require the engine.
module github.com/penstock-go/penstock/adapters/connect

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	github.com/penstock-go/penstock v0.0.0
	github.com/stretchr/testify v1.12.1
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.13.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/penstock-go/penstock => ../..
