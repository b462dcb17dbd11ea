"""The Lua scripts of `wmkit.queue.redis`: each one is a transition of a job, all or nothing.

They are not a queue by themselves; the adapter names the keys and reads the answers. Redis
runs a script without interleaving anything else, and every script here may be run twice
with the same arguments (a client that lost the answer sends it again) to the same effect.
"""

# KEYS jobs requested counts; ARGV limit, then (job_id, phase, job) for each job.
# -> {1, submitted} or {0, outstanding}. The length of the stream is pending + lag, because
# every entry that ended was deleted. Nothing is submitted when the batch does not fit.
SUBMIT = """
local fresh, seen = {}, {}
for i = 2, #ARGV, 3 do
  local id = ARGV[i]
  if not seen[id] and redis.call('SISMEMBER', KEYS[2], id) == 0 then
    seen[id] = true
    fresh[#fresh + 1] = i
  end
end
local outstanding = redis.call('XLEN', KEYS[1])
if outstanding + #fresh > tonumber(ARGV[1]) then
  return {0, outstanding}
end
for _, i in ipairs(fresh) do
  redis.call('SADD', KEYS[2], ARGV[i])
  redis.call('HINCRBY', KEYS[3], 'requested ' .. ARGV[i + 1], 1)
  redis.call('XADD', KEYS[1], '*', 'job', ARGV[i + 2])
end
return {1, #fresh}
"""

# KEYS jobs, then the ledger of each delivery's run; ARGV group, worker, then
# (entry_id, deliveries, job_id) for each delivery.
# -> entry ids that are no longer this worker's, or whose job was ended by someone else.
# XPENDING first: a plain XCLAIM by a worker that was asleep would steal the job back from
# the one that took over.
RENEW = """
local lost = {}
for n = 2, #KEYS do
  local i = 3 * n - 3
  local held = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1)[1]
  if not held or held[2] ~= ARGV[2] or held[4] ~= tonumber(ARGV[i + 1]) then
    lost[#lost + 1] = ARGV[i]
  elseif redis.call('HEXISTS', KEYS[n], ARGV[i + 2]) == 1 then
    lost[#lost + 1] = ARGV[i]
    redis.call('XACK', KEYS[1], ARGV[1], ARGV[i])
    redis.call('XDEL', KEYS[1], ARGV[i])
  else
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'JUSTID')
  end
end
return lost
"""

# KEYS jobs requested ledger results counts; ARGV group, entry_id, job_id, status, nonce,
# phase, result. -> 1 when this call ended the job, 0 when it had ended (or was never
# requested). The nonce makes a repeated call return 1 again.
FINISH = """
local mine = ARGV[4] .. ' ' .. ARGV[5]
if redis.call('SISMEMBER', KEYS[2], ARGV[3]) == 1
    and redis.call('HSETNX', KEYS[3], ARGV[3], mine) == 1 then
  redis.call('XADD', KEYS[4], '*', 'result', ARGV[7])
  redis.call('HINCRBY', KEYS[5], ARGV[4] .. ' ' .. ARGV[6], 1)
end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
if redis.call('HGET', KEYS[3], ARGV[3]) == mine then return 1 end
return 0
"""

# KEYS jobs; ARGV group, entry_id, deliveries, job. -> 1 when handed back, 0 when the entry is
# someone else's or gone. The delivery count is the fence: it grows when a claim changes hands.
# XADD comes first: it alone can be refused (out of memory), and then nothing has happened.
RETRY = """
local held = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)[1]
if not held or held[4] ~= tonumber(ARGV[3]) then return 0 end
redis.call('XADD', KEYS[1], '*', 'job', ARGV[4])
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
return 1
"""

# KEYS jobs; ARGV group, worker, min_idle_ms, count, cursor.
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
