"""The Lua scripts of `wmkit.queue.redis`: each one is a transition of a job, all or nothing.

They are not a queue by themselves; the adapter names the keys and reads the answers. Redis
runs a script without interleaving anything else, and every script here but TAKE may be run
twice with the same arguments (a client that lost the answer sends it again) to the same
effect. What a lost TAKE handed out is a claim that nobody renews.
"""

# KEYS requested counts runs later, then the streams by priority; ARGV run, limit, then
# (job_id, phase, priority from 1, job) for each job.
# -> {1, submitted} or {0, outstanding}. The length of the streams is pending + lag, because
# every entry that ended was deleted. Nothing is submitted when the batch does not fit.
SUBMIT = """
local fresh, seen = {}, {}
for i = 3, #ARGV, 4 do
  local id = ARGV[i]
  if not seen[id] and redis.call('SISMEMBER', KEYS[1], id) == 0 then
    seen[id] = true
    fresh[#fresh + 1] = i
  end
end
local outstanding = redis.call('ZCARD', KEYS[4])
for n = 5, #KEYS do outstanding = outstanding + redis.call('XLEN', KEYS[n]) end
if outstanding + #fresh > tonumber(ARGV[2]) then
  return {0, outstanding}
end
for _, i in ipairs(fresh) do
  redis.call('SADD', KEYS[1], ARGV[i])
  redis.call('HINCRBY', KEYS[2], 'requested ' .. ARGV[i + 1], 1)
  redis.call('XADD', KEYS[4 + tonumber(ARGV[i + 2])], '*', 'job', ARGV[i + 3])
end
if #fresh > 0 then redis.call('SADD', KEYS[3], ARGV[1]) end
return {1, #fresh}
"""

# KEYS later, then the streams by priority; ARGV group, worker, count.
# -> {{priority from 1, entry_id, job}, ...}. Jobs whose pause is over go onto their stream
# first. XREADGROUP on all streams at once would take `count` from each of them.
TAKE = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, waiting in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 256)) do
  redis.call('XADD', KEYS[1 + tonumber(string.sub(waiting, 1, 1))], '*',
             'job', string.sub(waiting, 3))
  redis.call('ZREM', KEYS[1], waiting)
end
local taken = {}
for n = 2, #KEYS do
  local left = tonumber(ARGV[3]) - #taken
  local found = left > 0 and redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2],
                                        'COUNT', left, 'STREAMS', KEYS[n], '>')
  if found then
    for _, entry in ipairs(found[1][2]) do
      taken[#taken + 1] = {n - 1, entry[1], entry[2][2]}
    end
  end
end
return taken
"""

# KEYS (stream, ledger) of each delivery; ARGV group, worker, then (entry_id, deliveries,
# job_id) for each delivery.
# -> entry ids that are no longer this worker's, or whose job was ended by someone else.
# XPENDING first: a plain XCLAIM by a worker that was asleep would steal the job back from
# the one that took over.
RENEW = """
local lost = {}
for n = 1, #KEYS, 2 do
  local i = (3 * n + 3) / 2
  local held = redis.call('XPENDING', KEYS[n], ARGV[1], ARGV[i], ARGV[i], 1)[1]
  if not held or held[2] ~= ARGV[2] or held[4] ~= tonumber(ARGV[i + 1]) then
    lost[#lost + 1] = ARGV[i]
  elseif redis.call('HEXISTS', KEYS[n + 1], ARGV[i + 2]) == 1 then
    lost[#lost + 1] = ARGV[i]
    redis.call('XACK', KEYS[n], ARGV[1], ARGV[i])
    redis.call('XDEL', KEYS[n], ARGV[i])
  else
    redis.call('XCLAIM', KEYS[n], ARGV[1], ARGV[2], 0, ARGV[i], 'JUSTID')
  end
end
return lost
"""

# KEYS stream requested ledger results counts lost dead; ARGV group, entry_id, job_id, status,
# nonce, phase, result, letter ("" for none), letters kept. -> 1 when this call ended the job,
# 0 when it had ended (or was never requested). The nonce makes a repeated call return 1 again.
FINISH = """
local mine = ARGV[4] .. ' ' .. ARGV[5]
if redis.call('SISMEMBER', KEYS[2], ARGV[3]) == 1
    and redis.call('HSETNX', KEYS[3], ARGV[3], mine) == 1 then
  redis.call('XADD', KEYS[4], '*', 'result', ARGV[7])
  redis.call('HINCRBY', KEYS[5], ARGV[4] .. ' ' .. ARGV[6], 1)
  redis.call('HDEL', KEYS[6], ARGV[3])
  if ARGV[8] ~= '' then
    redis.call('XADD', KEYS[7], 'MAXLEN', '~', ARGV[9], '*', 'letter', ARGV[8])
  end
end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
if redis.call('HGET', KEYS[3], ARGV[3]) == mine then return 1 end
return 0
"""

# KEYS stream later lost; ARGV group, entry_id, deliveries, job_id, priority from 1, job,
# delay_ms, failed. -> 1 when handed back, 0 when the entry is someone else's or gone. The
# delivery count is the fence: it grows when a claim changes hands.
# The job is written first: that alone can be refused (out of memory), and then nothing has
# happened.
RETRY = """
local held = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)[1]
if not held or held[4] ~= tonumber(ARGV[3]) then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if tonumber(ARGV[7]) > 0 then
  redis.call('ZADD', KEYS[2], now + tonumber(ARGV[7]), ARGV[5] .. ' ' .. ARGV[6])
else
  redis.call('XADD', KEYS[1], '*', 'job', ARGV[6])
end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
if ARGV[8] == '1' then redis.call('HSETNX', KEYS[3], ARGV[4], now) end
return 1
"""

# KEYS stream; ARGV group, worker, min_idle_ms, count, cursor.
# -> {next cursor, {{entry_id, job, deliveries}, ...}}. XAUTOCLAIM does not tell how often an
# entry was delivered, so that is asked in the same breath.
RECLAIM = """
local page = redis.call('XAUTOCLAIM', KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[5],
                        'COUNT', ARGV[4])
local claimed = {}
for _, entry in ipairs(page[2]) do
  local held = redis.call('XPENDING', KEYS[1], ARGV[1], entry[1], entry[1], 1)[1]
  claimed[#claimed + 1] = {entry[1], entry[2][2], held[4]}
end
return {page[1], claimed}
"""

# KEYS lost; ARGV job ids. Those of which it is not known yet are marked as lost now.
LOSE = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, id in ipairs(ARGV) do redis.call('HSETNX', KEYS[1], id, now) end
return #ARGV
"""
