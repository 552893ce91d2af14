"""Scripts about the items and documents of a run; the first argument is its id, and lists come at the end."""

from __future__ import annotations

from retrieval.caching.redis.scripting import Script
from retrieval.jobs.redis.lua import COMMON, ITEMS, LETTERS

OFFER = Script(
    COMMON
    + r"""
local run = run_key(ARGV[1])
if not claimed(run, ARGV[2]) then return {'lost'} end
local known = call('HLEN', run .. ':items')
local number = known
for at = 3, #ARGV, 4 do
    local item = cmsgpack.pack({number + 1, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], 'queued', '', 0, 0, 0})
    if call('HSETNX', run .. ':items', ARGV[at], item) == 1 then
        number = number + 1
        call('ZADD', run .. ':queue', number, ARGV[at])
    end
end
count(run, 'item:queued', number - known)
return {'offered'}
"""
)
"""run id, fence; URI, name, fingerprint and bytes of each item."""

NOTE_SCANNED = Script(
    COMMON
    + LETTERS
    + r"""
local id, uri, name, state, reason, kind = ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local run = run_key(id)
if not claimed(run, ARGV[2]) then return {'lost'} end
local item = cmsgpack.pack({call('HLEN', run .. ':items') + 1, name, '', '0', state, '', 0, 1, 0})
if call('HSETNX', run .. ':items', uri, item) == 0 then return {'known'} end
count(run, 'item:' .. state, 1)
if state == 'failed' then
    count(run, 'failure:' .. kind, 1)
    call('SADD', run .. ':failed', uri)
    note_letter(uri, '', {id, name, reason, kind, 1, exact(clock(ARGV[8])), name, '', '0'})
end
return {'noted'}
"""
)
"""run id, fence, URI, name, state, reason, kind, moment."""

LEASE = Script(
    COMMON
    + LETTERS
    + ITEMS
    + r"""
local id, worker, limit, attempts, seconds = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local run, now = run_key(id), clock(ARGV[6])
if state_of(run) ~= 'running' then return {} end
local due = {}
for _, uri in ipairs(call('ZRANGEBYSCORE', run .. ':leased', '-inf', now)) do
    local item = item_of(run, uri)
    if item[ATTEMPT] >= attempts then
        take_from_worker(run, uri, item)
        fail(id, uri, item, DIED, 'worker_died', now)
        keep(run, uri, item)
    else
        due[#due + 1] = {uri, item}
    end
end
for _, uri in ipairs(call('ZRANGEBYSCORE', run .. ':later', '-inf', now, 'LIMIT', 0, 1000)) do
    call('ZREM', run .. ':later', uri)
    call('ZADD', run .. ':queue', item_of(run, uri)[NUMBER], uri)
end
for _, uri in ipairs(call('ZRANGE', run .. ':queue', 0, limit - 1)) do due[#due + 1] = {uri, item_of(run, uri)} end
table.sort(due, function(one, other) return one[2][NUMBER] < other[2][NUMBER] end)
local leases = {}
for at = 1, math.min(limit, #due) do
    local uri, item = due[at][1], due[at][2]
    if item[STATE] == 'leased' then take_from_worker(run, uri, item) end
    call('ZREM', run .. ':queue', uri)
    turn(run, item, 'leased')
    item[WORKER], item[FENCE], item[ATTEMPT], item[ATTEMPTS] = worker, item[FENCE] + 1, item[ATTEMPT] + 1, attempts
    keep(run, uri, item)
    call('ZADD', run .. ':leased', now + seconds, uri)
    call('HINCRBY', run .. ':holders', worker, 1)
    leases[at] = {uri, item[NAME], item[FINGERPRINT], item[BYTES], item[FENCE], item[ATTEMPT]}
end
return leases
"""
)
"""run id, worker, limit (at least 1), attempts, seconds, moment."""

RENEW_ITEMS = Script(
    COMMON
    + LETTERS
    + ITEMS
    + r"""
local run, until_ = run_key(ARGV[1]), clock(ARGV[3]) + tonumber(ARGV[2])
local held = {}
if state_of(run) ~= 'running' then return held end
for at = 4, #ARGV, 2 do
    local item = item_of(run, ARGV[at])
    if item and item[STATE] == 'leased' and item[FENCE] == tonumber(ARGV[at + 1]) then
        call('ZADD', run .. ':leased', until_, ARGV[at])
        held[#held + 1] = (at - 4) / 2
    end
end
return held
"""
)
"""run id, seconds, moment; URI and fence of each lease. Gives the numbers, from 0, of those that are held."""

SETTLE = Script(
    COMMON
    + LETTERS
    + ITEMS
    + r"""
local id, now = ARGV[1], clock(ARGV[2])
local run, lost = run_key(id), {}
local running = state_of(run) == 'running'
for at = 3, #ARGV, 6 do
    local uri, state, wait_s = ARGV[at], ARGV[at + 2], tonumber(ARGV[at + 5])
    local item = running and item_of(run, uri)
    if not item or item[STATE] ~= 'leased' or item[FENCE] ~= tonumber(ARGV[at + 1]) then
        lost[#lost + 1] = (at - 3) / 6
    else
        take_from_worker(run, uri, item)
        if state == 'failed' then
            fail(id, uri, item, ARGV[at + 3], ARGV[at + 4], now)
        else
            turn(run, item, state)
            if state ~= 'queued' then
                forget_letter(uri, '')
            elseif wait_s > 0 then
                call('ZADD', run .. ':later', now + wait_s, uri)
            else
                call('ZADD', run .. ':queue', item[NUMBER], uri)
            end
        end
        keep(run, uri, item)
    end
end
return lost
"""
)
"""run id, moment; URI, fence, state, reason, kind and wait of each. Gives the numbers, from 0, of the lost ones."""

NEXT_DUE = Script(
    COMMON
    + r"""
local run, now = run_key(ARGV[1]), clock(ARGV[2])
if call('EXISTS', run .. ':queue') == 1 then return '0' end
local found
for _, waits in ipairs({':later', ':leased'}) do
    local first = call('ZRANGE', run .. waits, 0, 0, 'WITHSCORES')[2]
    if first and (not found or tonumber(first) < found) then found = tonumber(first) end
end
return found and exact(math.max(0, found - now)) or ''
"""
)
"""run id, moment. Gives seconds, or nothing."""

FAILED_ITEMS = Script(
    COMMON
    + r"""
local run = run_key(ARGV[1])
local found = call('SMEMBERS', run .. ':failed')
for _, left in ipairs({':queue', ':later', ':leased'}) do
    for _, uri in ipairs(call('ZRANGE', run .. left, 0, -1)) do found[#found + 1] = uri end
end
return found
"""
)
"""run id."""

RECORD = Script(
    COMMON
    + LETTERS
    + ITEMS
    + r"""
-- Of a document:
local URI, WHERE, PRINT, CHUNKS, TOKENS, TRIED, REASON, KIND, WARNINGS = 1, 2, 3, 4, 5, 6, 7, 8, 9
local GOOD = {verified = true, unchanged = true, skipped = true, deleted = true}
local WRITTEN = {written = true, verified = true}
local EARLY = {seen = true, parsed = true, embedded = true}
local id, worker, now = ARGV[1], ARGV[2], clock(ARGV[3])
local run = run_key(id)
local state = state_of(run)
if not state then return 0 end
local held = {['']=true}

local function holds(uri)
    if held[uri] == nil then
        local item = state == 'running' and item_of(run, uri)
        held[uri] = item and item[STATE] == 'leased' and item[WORKER] == worker
    end
    return held[uri]
end

-- What comes by a second time in a run, since it was delivered again, takes nothing from what was reached before.
local function is_lesser(old, new)
    if not old or not WRITTEN[old[WHERE]] then return false end
    return EARLY[new[WHERE]] or (old[WHERE] == 'verified' and (new[WHERE] == 'unchanged' or new[WHERE] == 'skipped'))
end

local function tally(one, by)
    count(run, 'document:' .. one[WHERE], by)
    if WRITTEN[one[WHERE]] then
        count(run, 'chunks', by * tonumber(one[CHUNKS]))
        count(run, 'tokens', by * tonumber(one[TOKENS]))
    end
    if one[WHERE] == 'failed' then count(run, 'failure:' .. one[KIND], by) end
end

local function note(document, old, new)
    if old and old[WHERE] == 'written' and new[WHERE] == 'unchanged' then -- proven now
        new[WHERE], new[CHUNKS], new[TOKENS] = 'verified', old[CHUNKS], old[TOKENS]
    end
    if old then
        tally(old, -1)
        call('ZREM', run .. ':is:' .. old[WHERE], document)
    end
    tally(new, 1)
    call('ZADD', run .. ':is:' .. new[WHERE], 0, document)
    call('HSET', run .. ':documents', document, cmsgpack.pack(new))
end

local function note_failure(document, new)
    if new[WHERE] == 'failed' then
        local item = item_of(run, new[URI]) or {0, document, '', '0'}
        note_letter(new[URI], document, {id, document, new[REASON], new[KIND], new[TRIED], exact(now), item[NAME],
            item[FINGERPRINT], item[BYTES]})
    elseif GOOD[new[WHERE]] then
        forget_document(document)
    end
end

local last = {} -- of each document: only that is a failure, or a success
for at = 4, #ARGV, 10 do
    local document, new = ARGV[at], {unpack(ARGV, at + 1, at + 9)}
    local found = call('HGET', run .. ':documents', document)
    local old = found and cmsgpack.unpack(found)
    if holds(new[URI]) and not is_lesser(old, new) then
        note(document, old, new)
        last[document] = new
    end
end
for document, new in pairs(last) do note_failure(document, new) end
return 0
"""
)
"""run id, worker, moment; of each document its id, URI, state, fingerprint, chunks, tokens, attempt, reason, kind and
warnings."""

SEEN = Script(
    COMMON
    + r"""
local documents, found = run_key(ARGV[1]) .. ':documents', {}
for at = 2, #ARGV do
    local one = call('HGET', documents, ARGV[at])
    local state = one and cmsgpack.unpack(one)[2]
    if state and state ~= 'deleting' and state ~= 'deleted' then found[#found + 1] = at - 2 end
end
return found
"""
)
"""run id; document ids. Gives the numbers, from 0, of those that came by."""

DOCUMENTS = Script(
    COMMON
    + r"""
local run = run_key(ARGV[1])
local first, found = ARGV[2] == '' and '-' or '(' .. ARGV[2], {}
for at = 4, #ARGV do
    for _, document in ipairs(call('ZRANGEBYLEX', run .. ':is:' .. ARGV[at], first, '+', 'LIMIT', 0, ARGV[3])) do
        found[#found + 1] = {document, unpack(cmsgpack.unpack(call('HGET', run .. ':documents', document)))}
    end
end
return found
"""
)
"""run id, the id that all must be above, limit; states. Gives so many of each state, to be sorted and cut."""
