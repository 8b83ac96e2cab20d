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

// answers are the errors of a server after which it has certainly not executed the script, by the
// word that they begin with. Scripts read before they write, and what is written first is what a
// server refuses that is full, read-only or not allowed to write.
var answers = map[string]string{
	"NOSCRIPT":    "the server doesn't know the script",
	"MOVED":       "the key has moved to another server of the cluster",
	"CLUSTERDOWN": "the cluster doesn't serve this key",
	"MASTERDOWN":  "the server has lost its master",
	"LOADING":     "the server is loading its data",
	"READONLY":    "the server is a replica, or was made one: name the master, or the Sentinels that know it",
	"OOM":         "the server has no memory left: raise maxmemory",
	"MISCONF":     "the server takes no writes, as it can't save them: its log says why",
	"NOREPLICAS":  "the server takes no writes, as it has too few replicas: see min-replicas-to-write",
	"BUSY":        "the server is busy with somebody's script",
	"NOAUTH":      "the server wants a password: the URL has to have one",
	"WRONGPASS":   "the server refuses the user or the password: see those in the URL",
	"NOPERM":      "the user may not do that: see the commands in docs/cluster.md",
}

// errDenied says that the user may not do what a script does. It may have done something before.
var errDenied = errors.New("the user may not do that: see the commands in docs/cluster.md")

// foreigners are the answers about a key that something else has written to.
var foreigners = []string{"WRONGTYPE", "FOREIGN"}

// moving are the answers about a key that is on its way to another server of the cluster.
var moving = []string{"ASK", "TRYAGAIN"}

// explained is the error of a command as package store wants it.
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

// denied reports whether a script was refused a command, in the words of version 7.0 and before,
// or of 7.2.
func denied(err error) bool {
	if !isAnswer(err) {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "user executing the script can't run this command") ||
		strings.HasPrefix(text, "NOPERM ") && strings.Contains(text, "user_script")
}

// wordOf is the answer's name, if it has one that is known. Servers before 7.0 put what a command
// within a script was answered behind words of their own.
func wordOf(err error) string {
	if !isAnswer(err) {
		return ""
	}
	text := err.Error()
	if strings.Contains(text, "unauthenticated") { // a batch that is too large for one who hasn't said who it is
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

// isAnswer reports whether the error is what the server said, as opposed to one on the way.
func isAnswer(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// refused is the answer to what sets a connection up: the user, the password or the database. No command was
// sent.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

// unsent reports whether there was no connection to send the command by.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, new(refused)) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted)
}
