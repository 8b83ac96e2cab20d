package sharing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"io"
)

// Key returns the store key of the limit that the parts identify: rule, resource, caller. Parts
// that differ in number or length never collide. The key shows the namespace in plain text, and is
// a single hash tag, so it lies on one shard.
func (m *Member) Key(parts ...string) string {
	return "{penstock:" + m.cfg.Namespace + ":" + digest(nil, parts) + "}"
}

// ValueKey returns the key of one value under a hotspot rule's key. With [cluster.Config].Secret
// set, the value can't be recovered from it.
func (m *Member) ValueKey(key, value string) string {
	return "{penstock:" + m.cfg.Namespace + ":" + digest([]byte(m.cfg.Secret), []string{key, value})[:valueDigits] + "}"
}

// valueDigits is the length of a value's hash in a key: 132 bits.
const valueDigits = 22

// digest returns a hash of the parts, each preceded by its length.
func digest(secret []byte, parts []string) string {
	h := hmac.New(sha256.New, secret)
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		_, _ = h.Write(length[:]) // a hash never fails
		_, _ = io.WriteString(h, part)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// phaseOf returns the offset of a key's buckets, in whole microseconds, so that the buckets of
// different keys begin at different times.
func phaseOf(key string, width int64) int64 {
	h := sha256.Sum256([]byte(key))
	const microsecond = 1000
	return int64(binary.BigEndian.Uint64(h[:])%uint64(max(1, width/microsecond))) * microsecond
}
