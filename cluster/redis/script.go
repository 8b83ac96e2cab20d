package penstockredis

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

// clock gives all scripts the time.
//
//go:embed lua/clock.lua
var clock string

// text precedes the scripts that store numbers as text.
//
//go:embed lua/text.lua
var text string

//go:embed lua/take.lua
var takeBody string

//go:embed lua/turn.lua
var turnBody string

//go:embed lua/tokens.lua
var tokensBody string

//go:embed lua/permits.lua
var permitsBody string

//go:embed lua/presence.lua
var presenceBody string

// script is a Lua script and its SHA1, which is its name on a server.
type script struct{ text, sha string }

// scripts holds one script for each kind of command.
type scripts struct{ take, turn, tokens, permits, presence script }

// makeScripts returns the scripts, each with the prelude before it.
func makeScripts(prelude string) *scripts {
	return &scripts{
		take: makeScript(prelude, takeBody), turn: makeScript(prelude+text, turnBody), tokens: makeScript(prelude+text, tokensBody),
		permits: makeScript(prelude+text, permitsBody), presence: makeScript(prelude+text, presenceBody),
	}
}

func makeScript(prelude, body string) script {
	text := prelude + body
	sum := sha1.Sum([]byte(text))
	return script{text: text, sha: hex.EncodeToString(sum[:])}
}
