package penstockredis

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/cluster/store"
)

// answers explains the server errors after which the script has certainly not run, by their first
// word. Scripts read before they write, and a server that is full, read-only or not allowed to
// write rejects the first write.
var answers = map[string]string{
	"NOSCRIPT":    "the server doesn't know the script",
	"MOVED":       "the key has moved to another server of the cluster",
	"CLUSTERDOWN": "the cluster doesn't serve this key",
	"MASTERDOWN":  "the server has lost its master",
	"LOADING":     "the server is loading its data",
	"READONLY":    "the server is a replica: use the URL of the master, or of its Sentinels",
	"OOM":         "the server has no memory left: raise maxmemory",
	"MISCONF":     "the server rejects writes because it can't save them: see its log",
	"NOREPLICAS":  "the server rejects writes because it has too few replicas: see min-replicas-to-write",
	"BUSY":        "the server is busy with a long-running script",
	"NOAUTH":      "the server requires a password: add one to the URL",
	"WRONGPASS":   "the server rejects the user or the password: check them in the URL",
	"NOPERM":      "the user may not run a command: see the list in docs/cluster.md",
}

// errDenied means that the user may not run a command of the script. Earlier commands may have run.
var errDenied = errors.New("the user may not run a command: see the list in docs/cluster.md")

// foreigners are the errors for a key that something else has written to.
var foreigners = []string{"WRONGTYPE", "FOREIGN"}

// moving are the errors for a key that is being moved to another server of the cluster.
var moving = []string{"ASK", "TRYAGAIN"}

// explained returns a command's error as package store expects it.
func explained(err error) error {
	if denied(err) {
		return fmt.Errorf("%w (%w)", errDenied, err)
	}
	if word := wordOf(err); word != "" {
		if slices.Contains(foreigners, word) {
			return fmt.Errorf("%w (%w)", store.ErrForeign, err)
		}
		if slices.Contains(moving, word) {
			return fmt.Errorf("%w: %w (%w)", store.ErrMoving, store.ErrNotExecuted, err)
		}
		return fmt.Errorf("%s: %w (%w)", answers[word], store.ErrNotExecuted, err)
	}
	if unsent(err) {
		return fmt.Errorf("%w (%w)", store.ErrNotExecuted, err)
	}
	return err
}

// denied reports whether a script was denied a command, in the wording of version 7.0 and before,
// or of 7.2.
func denied(err error) bool {
	if !isAnswer(err) {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "user executing the script can't run this command") ||
		strings.HasPrefix(text, "NOPERM ") && strings.Contains(text, "user_script")
}

// wordOf returns the error's name, if it is known. Servers before 7.0 prefix the error of a command
// run in a script with other text.
func wordOf(err error) string {
	if !isAnswer(err) {
		return ""
	}
	text := err.Error()
	if strings.Contains(text, "unauthenticated") { // the batch is too large for an unauthenticated client
		return "NOAUTH"
	}
	first, rest, _ := strings.Cut(text, " ")
	if known(first) {
		return first
	}
	if first != "ERR" || !strings.Contains(rest, "script") {
		return ""
	}
	for word := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r < 'A' || r > 'Z' }) {
		if known(word) {
			return word
		}
	}
	return ""
}

func known(word string) bool {
	return answers[word] != "" || slices.Contains(foreigners, word) || slices.Contains(moving, word)
}

// isAnswer reports whether the error comes from the server, as opposed to the connection.
func isAnswer(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// refused is the rejection of a new connection: by user, password or database. No command was sent.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

// unsent reports whether the command was not sent for want of a connection.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, new(refused)) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted)
}
