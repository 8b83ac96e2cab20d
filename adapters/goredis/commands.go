package penstockgoredis

import (
	"strings"
	"sync"
)

// command returns the command's name if Redis or one of its modules has it: a program may send
// whatever a user has typed.
func command(name string) string {
	if known, ok := commands()[name]; ok {
		return known
	}
	return Other
}

// commands maps the names of the commands of Redis 8 and its modules to copies that share no memory
// with arguments.
var commands = sync.OnceValue(func() map[string]string {
	all := make(map[string]string, 500)
	for name := range strings.FieldsSeq(commandNames) {
		all[name] = name
	}
	return all
})

const commandNames = `
	acl append arcount ardel ardelrange arget argetrange arinfo arinsert arlen armget armset
	arnext arop arring arseek arset asking auth bf.add bf.card bf.exists bf.info bf.insert
	bf.loadchunk bf.madd bf.mexists bf.reserve bf.scandump bgrewriteaof bgsave bitcount bitfield
	bitfield_ro bitop bitpos blmove blmpop blpop brpop brpoplpush bzmpop bzpopmax bzpopmin cf.add
	cf.addnx cf.count cf.del cf.exists cf.info cf.insert cf.insertnx cf.loadchunk cf.mexists
	cf.reserve cf.scandump client cluster cms.incrby cms.info cms.initbydim cms.initbyprob
	cms.merge cms.query command config copy dbsize debug decr decrby del delex digest discard dump
	echo eval eval_ro evalsha evalsha_ro exec exists expire expireat expiretime failover fcall
	fcall_ro flushall flushdb ft._list ft.aggregate ft.aliasadd ft.aliasdel ft.aliaslist
	ft.aliasupdate ft.alter ft.config ft.create ft.cursor ft.dictadd ft.dictdel ft.dictdump
	ft.dropindex ft.explain ft.hybrid ft.profile ft.search ft.spellcheck ft.syndump ft.synupdate
	ft.tagvals function geoadd geodist geohash geopos georadius georadius_ro georadiusbymember
	georadiusbymember_ro geosearch geosearchstore get getbit getdel getex getrange getset hdel
	hello hexists hexpire hexpireat hexpiretime hget hgetall hgetdel hgetex himport hincrby
	hincrbyfloat hkeys hlen hmget hmset hotkeys hpersist hpexpire hpexpireat hpexpiretime hpttl
	hrandfield hscan hset hsetex hsetnx hstrlen httl hvals incr incrby incrbyfloat info
	json.arrappend json.arrindex json.arrinsert json.arrlen json.arrpop json.arrtrim json.clear
	json.del json.forget json.get json.merge json.mget json.mset json.numincrby json.objkeys
	json.objlen json.set json.strappend json.strlen json.toggle json.type keys lastsave latency
	lcs lindex linsert llen lmove lmpop lolwut lpop lpos lpush lpushx lrange lrem lset ltrim
	memory mget migrate module monitor move mset msetex msetnx multi object persist pexpire
	pexpireat pexpiretime pfadd pfcount pfdebug pfmerge pfselftest ping psetex psubscribe psync
	pttl publish pubsub punsubscribe quit randomkey readonly readwrite rename renamenx replconf
	replicaof reset restore restore-asking role rpop rpoplpush rpush rpushx sadd save scan scard
	script sdiff sdiffstore select set setbit setex setnx setrange shutdown sinter sintercard
	sinterstore sismember slaveof slowlog smembers smismember smove sort sort_ro spop spublish
	srandmember srem sscan ssubscribe strlen subscribe substr sunion sunionstore sunsubscribe
	swapdb sync tdigest.add tdigest.byrank tdigest.byrevrank tdigest.cdf tdigest.create
	tdigest.info tdigest.max tdigest.merge tdigest.min tdigest.quantile tdigest.rank tdigest.reset
	tdigest.revrank tdigest.trimmed_mean time topk.add topk.count topk.incrby topk.info topk.list
	topk.query topk.reserve touch ts.add ts.alter ts.create ts.createrule ts.decrby ts.del
	ts.deleterule ts.get ts.incrby ts.info ts.madd ts.mget ts.mrange ts.mrevrange ts.queryindex
	ts.querylabels ts.range ts.read ts.revrange ttl type unlink unsubscribe unwatch vadd vcard
	vdim vemb vgetattr vinfo vismember vlinks vrandmember vrange vrem vsetattr vsim wait waitaof
	watch xack xackdel xadd xautoclaim xclaim xdel xdelex xgroup xinfo xlen xpending xrange xread
	xreadgroup xrevrange xsetid xtrim zadd zcard zcount zdiff zdiffstore zincrby zinter zintercard
	zinterstore zlexcount zmpop zmscore zpopmax zpopmin zrandmember zrange zrangebylex
	zrangebyscore zrangestore zrank zrem zremrangebylex zremrangebyrank zremrangebyscore zrevrange
	zrevrangebylex zrevrangebyscore zrevrank zscan zscore zunion zunionstore`
