/**
 * Scripts on whole stores (see maintenance.ts). Each takes a store's name and derives the names of
 * its keys like `keysOf`. KEYS[1] is the registry if the script writes to it, else the store.
 */
const parts = `
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function prefixOf(store)
  return redis.call('GET', store .. ':lists') or (store .. ':list:')
end
local function rename(from, to)
  if redis.call('EXISTS', from) == 1 then redis.call('RENAME', from, to) end
end
local function moveAside(registry, store, old, base, moves)
  local aside = store .. old .. moves
  redis.call('SET', aside .. ':lists', prefixOf(store))
  for _, part in ipairs({ 'views', 'sequences', 'places' }) do
    rename(store .. ':' .. part, aside .. ':' .. part)
  end
  redis.call('SET', store .. ':lists', base .. ':list-' .. moves .. ':')
  redis.call('DEL', store .. ':checkpoint', store .. ':log')
  redis.call('HSET', registry, aside, string.format('%.0f', now() + 60000))
  return aside
end
`;

/**
 * ARGV: store, suffix of the renamed store, the projection's own store. Renames the store and
 * returns the new name, or nil if it is empty. The caller removes the renamed store; after a minute
 * any projector may.
 */
const setAside = `${parts}
local store, old, base = ARGV[1], ARGV[2], ARGV[3]
local moves = redis.call('HINCRBY', KEYS[1], 'moves', 1)
local held = redis.call('EXISTS', store .. ':checkpoint', store .. ':views', store .. ':sequences',
  store .. ':places', store .. ':log')
redis.call('HDEL', KEYS[1], store)
if held > 0 then return moveAside(KEYS[1], store, old, base, moves) end
if base ~= store then redis.call('SET', store .. ':lists', base .. ':list-' .. moves .. ':') end
return false
`;

/** ARGV: store, the store that replaces it, suffix of the renamed store, its least checkpoint. */
const replaceStore = `${parts}
local store, by = ARGV[1], ARGV[2]
local checkpoint = redis.call('GET', by .. ':checkpoint') or '0'
local stood = redis.call('GET', store .. ':checkpoint') or '0'
if tonumber(checkpoint) < math.max(tonumber(stood), tonumber(ARGV[4])) then return false end
local moves = redis.call('HINCRBY', KEYS[1], 'moves', 1)
local aside = moveAside(KEYS[1], store, ARGV[3], store, moves)
for _, part in ipairs({ 'views', 'sequences', 'places', 'log', 'checkpoint' }) do
  rename(by .. ':' .. part, store .. ':' .. part)
end
redis.call('SET', store .. ':lists', prefixOf(by))
redis.call('SET', by .. ':lists', store .. ':list-' .. moves .. ':')
redis.call('PUBLISH', store .. ':checkpoint', checkpoint)
return aside
`;

/** ARGV: renamed store, cursor, count. Removes the lists of `count` views. */
const unlinkLists = `
local prefix, seen, names = redis.call('GET', KEYS[1] .. ':lists') or '', {}, {}
local found = redis.call('HSCAN', KEYS[1] .. ':places', ARGV[1], 'COUNT', ARGV[2])
for i = 2, #found[2], 2 do
  for _, name in ipairs(cjson.decode(found[2][i]).lists) do
    if not seen[name] then
      seen[name] = true
      redis.call('UNLINK', prefix .. name)
    end
  end
end
return found[1]
`;

/** ARGV: renamed store. Removes its other keys, after `unlinkLists`. */
const unlinkStore = `
local store = ARGV[1]
for _, part in ipairs({ 'views', 'sequences', 'places', 'lists' }) do
  redis.call('UNLINK', store .. ':' .. part)
end
redis.call('HDEL', KEYS[1], store)
return 1
`;

/** ARGV: store, milliseconds. */
const renewStore = `${parts}
local untilMs = now() + tonumber(ARGV[2])
if untilMs > tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0') then
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', untilMs))
end
return 1
`;

/** ARGV: store, holder, milliseconds (0: releases the lock). */
const acquireStore = `${parts}
local store, holder, ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local held = redis.call('GET', store .. ':holder')
if held and held ~= holder then return 0 end
if ms == 0 then
  redis.call('DEL', store .. ':holder')
  redis.call('HDEL', KEYS[1], store)
else
  redis.call('SET', store .. ':holder', holder, 'PX', ms)
  redis.call('HSET', KEYS[1], store, string.format('%.0f', now() + ms))
end
return 1
`;

const listStores = `${parts}
local entries, stores, time = redis.call('HGETALL', KEYS[1]), {}, now()
for i = 1, #entries, 2 do
  local store = entries[i]
  if store ~= 'moves' then
    stores[#stores + 1] = {
      store,
      redis.call('GET', store .. ':checkpoint') or '0',
      redis.call('HLEN', store .. ':views'),
      tonumber(entries[i + 1]) > time and 1 or 0,
    }
  end
end
return stores
`;

/** ARGV: cursor, count. */
const scanKeys = `
local found = redis.call('HSCAN', KEYS[1] .. ':views', ARGV[1], 'COUNT', ARGV[2])
local keys = {}
for i = 1, #found[2], 2 do keys[#keys + 1] = found[2][i] end
return { found[1], keys }
`;

/**
 * ARGV: cursor, count, sequence. Removes the views of one step of the scan whose last event is at
 * or before the sequence; the sequences go last, so an interrupted script can be repeated. Returns
 * the next cursor and how many were removed.
 */
const removeViews = `${parts}
local store, upTo, keys = KEYS[1], tonumber(ARGV[3]), {}
local found = redis.call('HSCAN', store .. ':sequences', ARGV[1], 'COUNT', ARGV[2])
for i = 1, #found[2], 2 do
  if tonumber(found[2][i + 1]) <= upTo then keys[#keys + 1] = found[2][i] end
end
if #keys == 0 then return { found[1], 0 } end
local prefix, leaving = prefixOf(store), {}
for i, place in ipairs(redis.call('HMGET', store .. ':places', unpack(keys))) do
  for _, name in ipairs(place and cjson.decode(place).lists or {}) do
    leaving[name] = leaving[name] or {}
    table.insert(leaving[name], keys[i])
  end
end
for name, gathered in pairs(leaving) do redis.call('ZREM', prefix .. name, unpack(gathered)) end
redis.call('HDEL', store .. ':views', unpack(keys))
redis.call('HDEL', store .. ':places', unpack(keys))
return { found[1], redis.call('HDEL', store .. ':sequences', unpack(keys)) }
`;

/** ARGV: keys. Returns the checkpoint, then per key its view, sequence, place, missing lists. */
const inspectViews = `${parts}
local store, prefix = KEYS[1], prefixOf(KEYS[1])
local held = { redis.call('GET', store .. ':checkpoint') or '0' }
if #ARGV == 0 then return held end
local views = redis.call('HMGET', store .. ':views', unpack(ARGV))
local sequences = redis.call('HMGET', store .. ':sequences', unpack(ARGV))
local places = redis.call('HMGET', store .. ':places', unpack(ARGV))
for i, key in ipairs(ARGV) do
  local missing = {}
  if places[i] then
    local place = cjson.decode(places[i])
    for _, list in ipairs(place.lists) do
      local order = redis.call('ZSCORE', prefix .. list, key)
      if not order or tonumber(order) ~= place.order then missing[#missing + 1] = list end
    end
  end
  held[i + 1] = { views[i], sequences[i], places[i], missing }
end
return held
`;

/** ARGV: cursor, count. Returns the names of lists without their prefix. */
const scanLists = `${parts}
local prefix, names = prefixOf(KEYS[1]), {}
local found = redis.call('SCAN', ARGV[1], 'MATCH', prefix .. '*', 'COUNT', ARGV[2])
for _, name in ipairs(found[2]) do names[#names + 1] = string.sub(name, #prefix + 1) end
return { found[1], names }
`;

/** ARGV: list, cursor, count. Returns the list's keys whose place does not name the list. */
const scanOrphans = `${parts}
local list, orphans, keys = ARGV[1], {}, {}
local found = redis.call('ZSCAN', prefixOf(KEYS[1]) .. list, ARGV[2], 'COUNT', ARGV[3])
for i = 1, #found[2], 2 do keys[#keys + 1] = found[2][i] end
local places = #keys > 0 and redis.call('HMGET', KEYS[1] .. ':places', unpack(keys)) or {}
for i, key in ipairs(keys) do
  local stands = false
  for _, name in ipairs(places[i] and cjson.decode(places[i]).lists or {}) do
    if name == list then stands = true end
  end
  if not stands then orphans[#orphans + 1] = key end
end
return { found[1], orphans }
`;

/** ARGV: event store id. Returns 1 if the store has this id, or had none and has it now. */
const bindStore = `
local known = redis.call('GET', KEYS[1] .. ':log')
if known then return known == ARGV[1] and 1 or 0 end
redis.call('SET', KEYS[1] .. ':log', ARGV[1])
return 1
`;

export const maintenanceScripts = {
  setAside: { lua: setAside },
  replaceStore: { lua: replaceStore },
  unlinkLists: { lua: unlinkLists },
  unlinkStore: { lua: unlinkStore },
  renewStore: { lua: renewStore },
  acquireStore: { lua: acquireStore },
  listStores: { lua: listStores },
  removeViews: { lua: removeViews },
  scanKeys: { lua: scanKeys },
  inspectViews: { lua: inspectViews },
  scanLists: { lua: scanLists },
  scanOrphans: { lua: scanOrphans },
  bindStore: { lua: bindStore },
};

type Arguments = (string | number)[];
type Parts = [
  view: string | null,
  sequence: string | null,
  place: string | null,
  missingIn: string[],
];

/** The scripts as the client's commands; the first argument is the number of keys. */
export type MaintenanceCommands = {
  setAside(keyCount: number, ...rest: Arguments): Promise<string | null>;
  replaceStore(keyCount: number, ...rest: Arguments): Promise<string | null>;
  unlinkLists(keyCount: number, ...rest: Arguments): Promise<string>;
  unlinkStore(keyCount: number, ...rest: Arguments): Promise<number>;
  renewStore(keyCount: number, ...rest: Arguments): Promise<number>;
  acquireStore(keyCount: number, ...rest: Arguments): Promise<number>;
  listStores(
    keyCount: number,
    ...rest: Arguments
  ): Promise<[store: string, checkpoint: string, views: number, isInUse: number][]>;
  removeViews(keyCount: number, ...rest: Arguments): Promise<[cursor: string, removed: number]>;
  scanKeys(keyCount: number, ...rest: Arguments): Promise<[cursor: string, keys: string[]]>;
  inspectViews(keyCount: number, ...rest: Arguments): Promise<[checkpoint: string, ...Parts[]]>;
  scanLists(keyCount: number, ...rest: Arguments): Promise<[cursor: string, lists: string[]]>;
  scanOrphans(keyCount: number, ...rest: Arguments): Promise<[cursor: string, keys: string[]]>;
  bindStore(keyCount: number, ...rest: Arguments): Promise<number>;
};
