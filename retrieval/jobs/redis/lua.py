"""What the store's scripts share: the clock, counts, items in and out of hands, dead letters.

Keys of a job, all in one slot by its hash tag; `job` is `<prefix>:jobs:1:{tenant/name}`:

    job               hash: the declaration, and `active`, the run that has not ended
    job:runs, :kept   sorted sets of run ids: all, and those whose rows are remembered
    job:dead          hash of dead letters by place: URI, zero byte, document id
    job:places, :documents    sorted sets: the places, and document id, zero byte, URI
    job:values        hash of what is remembered
    job:run:ID        hash: the run, its counts under `item:STATE`, `document:STATE` and `failure:KIND`
      :items          hash of items by URI
      :queue, :later, :leased   sorted sets of URIs: due by number, due at a time, leased until a time
      :failed         set of URIs
      :holders        hash: how many items each worker holds
      :documents      hash of records by id; :is:STATE: sorted sets of ids

Names that are not passed as keys are of the same slot, which is what a cluster asks for. Lists are MessagePack, which
Redis reads and writes itself. All ranges are by bytes, as everywhere; Lua's own comparison goes by the server's locale.
"""

from __future__ import annotations

COMMON = r"""
redis.replicate_commands()
local call = redis.call
local job = KEYS[1]
local ROWS = {':items', ':queue', ':later', ':leased', ':failed', ':holders', ':documents'}
local STATES = {'seen', 'parsed', 'embedded', 'written', 'verified', 'unchanged', 'skipped', 'failed', 'deleting',
    'deleted'}

-- The moment that a test gives, or else this server's, which all machines share.
local function clock(given)
    if given ~= '' then return tonumber(given) end
    local now = call('TIME')
    return tonumber(now[1]) + tonumber(now[2]) / 1000000
end

local function exact(number) return string.format('%.6f', number) end

local function run_key(id) return job .. ':run:' .. id end

local function count(run, name, by)
    if by ~= 0 then call('HINCRBY', run, name, by) end
end

local function state_of(run) return call('HGET', run, 'state') end

local function claimed(run, fence)
    local found = call('HMGET', run, 'state', 'fence')
    return found[1] == 'running' and found[2] == fence
end

local function forget_rows(run)
    for _, rows in ipairs(ROWS) do call('UNLINK', run .. rows) end
    for _, state in ipairs(STATES) do call('UNLINK', run .. ':is:' .. state) end
end
"""

LETTERS = r"""
-- Of a letter: 1 run id, 2 name, 3 reason, 4 kind, 5 attempt, 6 moment, 7 to 9 name, fingerprint and bytes of its item.
local function note_letter(uri, document, letter)
    local place = uri .. '\0' .. document
    call('HSET', job .. ':dead', place, cmsgpack.pack(letter))
    call('ZADD', job .. ':places', 0, place)
    if document ~= '' then call('ZADD', job .. ':documents', 0, document .. '\0' .. uri) end
end

local function forget_letter(uri, document)
    local place = uri .. '\0' .. document
    if call('HDEL', job .. ':dead', place) == 1 then
        call('ZREM', job .. ':places', place)
        call('ZREM', job .. ':documents', document .. '\0' .. uri)
    end
end

local function forget_document(document)
    local start = document .. '\0'
    for _, found in ipairs(call('ZRANGEBYLEX', job .. ':documents', '[' .. start, '(' .. document .. '\1')) do
        forget_letter(string.sub(found, #start + 1), document)
    end
end

local function parted(place)
    local cut = string.find(place, '%z')
    return string.sub(place, 1, cut - 1), string.sub(place, cut + 1)
end
"""

ITEMS = r"""
-- Of an item:
local NUMBER, NAME, FINGERPRINT, BYTES, STATE, WORKER, FENCE, ATTEMPT, ATTEMPTS = 1, 2, 3, 4, 5, 6, 7, 8, 9
local DIED = 'its worker died, each time that it was tried'

local function item_of(run, uri)
    local found = call('HGET', run .. ':items', uri)
    return found and cmsgpack.unpack(found)
end

local function keep(run, uri, item) call('HSET', run .. ':items', uri, cmsgpack.pack(item)) end

local function turn(run, item, state)
    count(run, 'item:' .. item[STATE], -1)
    count(run, 'item:' .. state, 1)
    item[STATE] = state
end

local function take_from_worker(run, uri, item)
    call('ZREM', run .. ':leased', uri)
    if call('HINCRBY', run .. ':holders', item[WORKER], -1) <= 0 then call('HDEL', run .. ':holders', item[WORKER]) end
    item[WORKER] = ''
end

local function fail(id, uri, item, reason, kind, now)
    local run = run_key(id)
    turn(run, item, 'failed')
    count(run, 'failure:' .. kind, 1)
    call('SADD', run .. ':failed', uri)
    note_letter(uri, '', {id, item[NAME], reason, kind, item[ATTEMPT], exact(now), item[NAME], item[FINGERPRINT],
        item[BYTES]})
end
"""
