package sharing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"io"
)

// Key is the name under which members share the limit that these parts identify: which rule, on
// which resource, for which caller. Parts that differ in number or length never have the same key.
// The key has the namespace in plain text, and is all hash tag, so that it lies on one shard.
func (m *Member) Key(parts ...string) string {
	return "{penstock:" + m.cfg.Namespace + ":" + digest(nil, parts) + "}"
}

// ValueKey is the key of one value under the key of a hotspot rule. Without [cluster.Config].Secret the
// value can't be recovered from it.
func (m *Member) ValueKey(key, value string) string {
	return "{penstock:" + m.cfg.Namespace + ":" + digest([]byte(m.cfg.Secret), []string{key, value})[:valueDigits] + "}"
}

// valueDigits is how many digits of a hash name a value: 132 bits.
const valueDigits = 22

// digest is a hash of texts, each with its length.
func digest(secret []byte, parts []string) string {
	h := hmac.New(sha256.New, secret)
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		_, _ = h.Write(length[:]) // a hash takes all
		_, _ = io.WriteString(h, part)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// phaseOf is where the buckets of a key begin, in whole microseconds, so that those of different keys
// begin at different times.
func phaseOf(key string, width int64) int64 {
	h := sha256.Sum256([]byte(key))
	const microsecond = 1000
	return int64(binary.BigEndian.Uint64(h[:])%uint64(max(1, width/microsecond))) * microsecond
}
