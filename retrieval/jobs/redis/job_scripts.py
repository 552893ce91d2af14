"""Scripts about jobs and their runs. Their first word back says how it went."""

from __future__ import annotations

from retrieval.caching.redis.scripting import Script
from retrieval.jobs.redis.lua import COMMON, ITEMS, LETTERS

PUT_JOB = Script(
    COMMON
    + r"""
call('HSET', job, 'spec', ARGV[1], 'base_folder', ARGV[2], 'updated_at', ARGV[3], 'paused', ARGV[4])
"""
)
"""spec, base folder, seconds, paused."""

GET_JOB = Script(COMMON + "return call('HMGET', job, 'spec', 'base_folder', 'updated_at', 'paused')\n")

ACTIVE = Script(COMMON + "return call('HGET', job, 'active') or ''\n")
"""Gives the run that has not ended."""

REMOVE_JOB = Script(
    COMMON
    + r"""
if call('EXISTS', job) == 0 then return {'not_found'} end
local active = call('HGET', job, 'active')
if active and active ~= '' then return {'active', active} end
local runs = call('ZRANGE', job .. ':runs', 0, -1)
for _, id in ipairs(runs) do
    forget_rows(run_key(id))
    call('DEL', run_key(id))
end
call('UNLINK', job, job .. ':runs', job .. ':kept', job .. ':dead', job .. ':places', job .. ':documents',
    job .. ':values')
table.insert(runs, 1, 'removed')
return runs
"""
)

SUBMIT = Script(
    COMMON
    + r"""
local id, request, failures, now = ARGV[1], ARGV[2], ARGV[3] == '1', clock(ARGV[4])
local found = call('HMGET', job, 'spec', 'base_folder', 'active')
if not found[1] then return {'not_found'} end
local run = run_key(id)
if found[3] == id then return {'queued', call('HGETALL', run)} end -- the reply was lost, and it is asked again
if found[3] and found[3] ~= '' then return {'active', found[3]} end
local offered, last = 0, nil
if failures then
    for _, place in ipairs(call('ZRANGE', job .. ':places', 0, -1)) do
        local uri = string.sub(place, 1, string.find(place, '%z') - 1)
        local letter = cmsgpack.unpack(call('HGET', job .. ':dead', place))
        local name = letter[7]
        -- A folder that could not be listed is nothing that can be opened. It has a slash at the end of URI and name
        -- (the root has no name); a page has one at the end of its URI at most.
        local folder = string.sub(uri, -1) == '/' and (name == '' or string.sub(name, -1) == '/')
        if uri ~= last and not folder then
            offered = offered + 1
            call('HSET', run .. ':items', uri,
                cmsgpack.pack({offered, name, letter[8], letter[9], 'queued', '', 0, 0, 0}))
            call('ZADD', run .. ':queue', offered, uri)
        end
        last = uri
    end
    if offered == 0 then return {'nothing'} end
end
call('HSET', run, 'spec', found[1], 'base_folder', found[2], 'request', request, 'state', 'queued',
    'created_at', exact(now), 'scanned', ARGV[3], 'fence', 0)
count(run, 'item:queued', offered)
call('HSET', job, 'active', id)
call('ZADD', job .. ':runs', 0, id)
call('ZADD', job .. ':kept', 0, id)
return {'queued', call('HGETALL', run)}
"""
)
"""run id, request, whether only failures (0 or 1), moment."""

GET_RUN = Script(COMMON + "return call('HGETALL', run_key(ARGV[1]))\n")

LIST_RUNS = Script(
    COMMON
    + r"""
local last = ARGV[1] == '' and '+' or '(' .. ARGV[1]
return call('ZREVRANGEBYLEX', job .. ':runs', last, '-', 'LIMIT', 0, ARGV[2])
"""
)
"""the id that all must be below, limit."""

CLAIM = Script(
    COMMON
    + r"""
local id, worker, now = ARGV[1], ARGV[2], clock(ARGV[4])
local run = run_key(id)
local found = call('HMGET', run, 'state', 'claimed_until', 'started_at')
local lapsed = found[1] == 'running' and tonumber(found[2]) <= now
if found[1] ~= 'queued' and not lapsed then return {'taken'} end
call('HSET', run, 'state', 'running', 'worker', worker, 'claimed_until', exact(now + tonumber(ARGV[3])),
    'started_at', found[3] or exact(now))
call('HINCRBY', run, 'fence', 1)
return {'claimed', call('HGETALL', run)}
"""
)
"""run id, worker, seconds, moment."""

RENEW_RUN = Script(
    COMMON
    + r"""
local run = run_key(ARGV[1])
if not claimed(run, ARGV[2]) then return {'lost'} end
call('HSET', run, 'claimed_until', exact(clock(ARGV[4]) + tonumber(ARGV[3])))
return {'renewed', call('HGETALL', run)}
"""
)
"""run id, fence, seconds, moment."""

MARK_SCANNED = Script(
    COMMON
    + r"""
local run = run_key(ARGV[1])
if not claimed(run, ARGV[2]) then return {'lost'} end
call('HSET', run, 'scanned', 1)
return {'noted'}
"""
)
"""run id, fence."""

_END = r"""
-- The rows of items that are left are out of everybody's reach, since only a running run leases, settles and renews.
local function finish(id, state, reason, report, now)
    local run = run_key(id)
    call('UNLINK', run .. ':queue', run .. ':later', run .. ':leased', run .. ':holders')
    call('HDEL', run, 'item:queued', 'item:leased')
    call('HSET', run, 'state', state, 'reason', reason, 'report', report, 'ended_at', exact(now),
        'claimed_until', 0, 'worker', '')
    if call('HGET', job, 'active') == id then call('HSET', job, 'active', '') end
end
"""

END_RUN = Script(
    COMMON
    + LETTERS
    + _END
    + r"""
local id = ARGV[1]
if not claimed(run_key(id), ARGV[2]) then return {'lost'} end
finish(id, ARGV[3], ARGV[4], ARGV[5], clock(ARGV[7]))
-- After a whole run: what is no longer at the source, and failed rows that did not come by again.
if ARGV[6] == '1' then
    for _, place in ipairs(call('ZRANGE', job .. ':places', 0, -1)) do
        local letter = cmsgpack.unpack(call('HGET', job .. ':dead', place))
        if letter[1] ~= id then forget_letter(parted(place)) end
    end
end
return {'ended', call('HGETALL', run_key(id))}
"""
)
"""run id, fence, state, reason, report, whether everything came by (0 or 1), moment."""

CANCEL = Script(
    COMMON
    + _END
    + r"""
local id = ARGV[1]
local run = run_key(id)
local state = state_of(run)
if not state then return {'not_found'} end
if state == 'queued' or state == 'waiting' then
    finish(id, 'cancelled', ARGV[2], call('HGET', run, 'report') or '', clock(ARGV[3]))
end
if state == 'queued' or state == 'running' then call('HSET', run, 'cancel_requested', 1) end
return {'asked', call('HGETALL', run)}
"""
)
"""run id, reason, moment."""

HOLDERS = Script(
    COMMON
    + r"""
local id = call('HGET', job, 'active')
if not id or id == '' then return {} end
local found = call('HKEYS', run_key(id) .. ':holders')
found[#found + 1] = call('HGET', run_key(id), 'worker') or ''
return found
"""
)

RELEASE = Script(
    COMMON
    + LETTERS
    + ITEMS
    + r"""
local worker, died, now = ARGV[1], ARGV[2] == '1', clock(ARGV[3])
local id = call('HGET', job, 'active')
if not id or id == '' then return 0 end
local run = run_key(id)
local found = call('HMGET', run, 'state', 'worker')
if found[1] == 'running' and found[2] == worker then call('HSET', run, 'claimed_until', 0, 'worker', '') end
if call('HEXISTS', run .. ':holders', worker) == 0 then return 0 end
for _, uri in ipairs(call('ZRANGE', run .. ':leased', 0, -1)) do
    local item = item_of(run, uri)
    if item[WORKER] == worker then
        take_from_worker(run, uri, item)
        if died and item[ATTEMPT] >= item[ATTEMPTS] then
            fail(id, uri, item, DIED, 'worker_died', now)
        else
            turn(run, item, 'queued')
            if not died then item[ATTEMPT] = item[ATTEMPT] - 1 end
            call('ZADD', run .. ':queue', item[NUMBER], uri)
        end
        keep(run, uri, item)
    end
end
return 0
"""
)
"""worker, whether it died (0 or 1), moment."""

PRUNE = Script(
    COMMON
    + r"""
local newest = {}
for _, id in ipairs(call('ZREVRANGE', job .. ':runs', 0, tonumber(ARGV[1]) - 1)) do newest[id] = true end
for _, id in ipairs(call('ZRANGE', job .. ':kept', 0, -1)) do
    if not newest[id] then
        forget_rows(run_key(id))
        call('ZREM', job .. ':kept', id)
    end
end
"""
)
"""how many runs to keep, at least one."""

REMEMBER = Script(
    COMMON
    + r"""
if ARGV[2] == '' then
    call('HDEL', job .. ':values', ARGV[1])
else
    call('HSET', job .. ':values', ARGV[1], ARGV[2])
end
"""
)
"""name, value."""

RECALL = Script(
    COMMON
    + r"""
local found = {}
for number, name in ipairs(ARGV) do found[number] = call('HGET', job .. ':values', name) or '' end
return found
"""
)
"""names."""

FAILURES = Script(
    COMMON
    + LETTERS
    + r"""
local first = ARGV[1] == '' and '-' or '[' .. ARGV[1] .. '\1'
local found = {}
for _, place in ipairs(call('ZRANGEBYLEX', job .. ':places', first, '+', 'LIMIT', 0, ARGV[2])) do
    local uri, document = parted(place)
    found[#found + 1] = {uri, document, unpack(cmsgpack.unpack(call('HGET', job .. ':dead', place)), 1, 6)}
end
return found
"""
)
"""the URI that all must be above, limit."""
