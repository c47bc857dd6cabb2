import type { Batch, ViewWrite } from '../views.ts';

/**
 * The read model in Redis. All keys of a projection begin with its id:
 *
 *   session-view:v1:checkpoint     text: the sequence up to which the log is folded
 *   session-view:v1:views          hash: key → JSON text
 *   session-view:v1:sequences      hash: key → sequence of the last event in the view
 *   session-view:v1:places         hash: key → {"order":…,"lists":[…]}: its lists, its order there
 *   session-view:v1:list:<name>    sorted set: key by order
 *   session-view:v1:lists          text: the prefix of its lists' names, if not the default one
 *   session-view:v1:log            text: id of the event store that it is built from
 *
 * `session-view:v1:checkpoint` is also the channel on which a new checkpoint is published. Channels
 * are shared by all databases of a Redis server, so two services need two servers. The hash
 * `projections` has, for each store, until when it is in use (milliseconds since the epoch).
 *
 * A store replaces another by renaming its few keys. Lists are as many as there are labels, too
 * many to rename at once: `…:lists` holds the prefix of their names.
 */
export function keysOf(projection: string) {
  return {
    checkpoint: `${projection}:checkpoint`,
    views: `${projection}:views`,
    sequences: `${projection}:sequences`,
    places: `${projection}:places`,
    lists: `${projection}:lists`,
    log: `${projection}:log`,
    /** Prefix of its lists' names, unless `lists` holds another. */
    listPrefix: `${projection}:list:`,
  };
}

export const checkpointChannels = '*:checkpoint';

/** The projection of a channel of `checkpointChannels`. */
export function projectionOf(channel: string): string {
  return channel.slice(0, -':checkpoint'.length);
}

/**
 * KEYS: checkpoint, views, sequences, places, lists. ARGV: prefix of the lists, after, upTo, mode,
 * then for each view its key, sequence, JSON text ('' removes it), place ('': in no list). A key
 * comes only once. A write at or below the stored checkpoint is skipped even if its view is
 * missing: a projector that was ahead has removed it. The checkpoint and the sequences are written
 * last, so an interrupted script can be repeated. Changes are collected and issued as one command
 * per Redis key: measured, a quarter less time than commands for each view. Mode 'overwrite':
 * `after` and `upTo` are the checkpoint at which the views were folded, and stored views are
 * replaced whatever their sequence. Mode 'part': the checkpoint is not moved.
 */
const writeViews = `
local stored = tonumber(redis.call('GET', KEYS[1]) or '0')
local lists = redis.call('GET', KEYS[5]) or ARGV[1]
local after, upTo = tonumber(ARGV[2]), tonumber(ARGV[3])
local isOverwrite = ARGV[4] == 'overwrite'
if isOverwrite then
  if stored ~= after then return stored end
elseif stored < after or stored >= upTo then
  return stored
end

local function add(gathered, first, second)
  gathered[#gathered + 1] = first
  if second then gathered[#gathered + 1] = second end
end
local function call(command, key, gathered)
  if #gathered > 0 then redis.call(command, key, unpack(gathered)) end
end

local keys = {}
for i = 5, #ARGV, 4 do add(keys, ARGV[i]) end
local held = #keys > 0 and redis.call('HMGET', KEYS[3], unpack(keys))
local places = #keys > 0 and redis.call('HMGET', KEYS[4], unpack(keys))

local entering, leaving = {}, {}
local function move(key, was, place)
  local stood = {}
  local old = was and cjson.decode(was) or { lists = {} }
  for _, name in ipairs(old.lists) do stood[name] = old.order end
  local new = place ~= '' and cjson.decode(place) or { lists = {} }
  local order = new.order and string.format('%.17g', new.order)
  for _, name in ipairs(new.lists) do
    entering[name] = entering[name] or {}
    if stood[name] ~= new.order then add(entering[name], order, key) end
    stood[name] = nil
  end
  for name in pairs(stood) do
    leaving[name] = leaving[name] or {}
    add(leaving[name], key)
  end
end

local set, removed, placed, unplaced, sequences = {}, {}, {}, {}, {}
for n, key in ipairs(keys) do
  local sequence, view, place = ARGV[4 * n + 2], ARGV[4 * n + 3], ARGV[4 * n + 4]
  if isOverwrite or tonumber(sequence) > math.max(stored, tonumber(held[n] or '0')) then
    local was = places[n]
    if (was or '') ~= place then move(key, was, place) end
    if view == '' then
      add(removed, key)
    else
      add(set, key, view)
      add(sequences, key, sequence)
    end
    if place ~= '' then add(placed, key, place) elseif was then add(unplaced, key) end
  end
end

call('HSET', KEYS[2], set)
call('HDEL', KEYS[2], removed)
for name, gathered in pairs(entering) do call('ZADD', lists .. name, gathered) end
for name, gathered in pairs(leaving) do call('ZREM', lists .. name, gathered) end
call('HSET', KEYS[4], placed)
call('HDEL', KEYS[4], unplaced)
call('HSET', KEYS[3], sequences)
call('HDEL', KEYS[3], removed)
if ARGV[4] == 'part' then return stored end
redis.call('SET', KEYS[1], ARGV[3])
redis.call('PUBLISH', KEYS[1], ARGV[3])
return upTo
`;

/** KEYS: checkpoint, views. ARGV: keys. Returns the checkpoint and the views. */
const readViews = `
return { redis.call('GET', KEYS[1]) or '0', redis.call('HMGET', KEYS[2], unpack(ARGV)) }
`;

/** The JSON texts of these keys' views, joined by commas. */
const textsOf = `
local function textsOf(keys)
  if #keys == 0 then return '' end
  local texts = {}
  for _, text in ipairs(redis.call('HMGET', KEYS[2], unpack(keys))) do
    if text then texts[#texts + 1] = text end
  end
  return table.concat(texts, ',')
end
`;

/**
 * KEYS: checkpoint, views, lists. ARGV: prefix of the lists, then list, offset and limit of each
 * page: O(log n + page) at any offset. Returns the checkpoint, then items and total of each page.
 */
const pagesOfLists = `${textsOf}
local prefix = redis.call('GET', KEYS[3]) or ARGV[1]
local answers = { tonumber(redis.call('GET', KEYS[1]) or '0') }
for i = 2, #ARGV, 3 do
  local list, offset = prefix .. ARGV[i], tonumber(ARGV[i + 1])
  local last = offset + tonumber(ARGV[i + 2]) - 1
  answers[#answers + 1] = textsOf(redis.call('ZREVRANGE', list, offset, last))
  answers[#answers + 1] = redis.call('ZCARD', list)
end
return answers
`;

/**
 * KEYS: checkpoint, views, lists. ARGV: prefix of the lists, offset, limit, several lists. Scans
 * the shortest from its high end in steps of 500 and looks the keys up in the others. The total is
 * the size of the intersection, O(n of the shortest): some 0.3 µs per entry, during which Redis
 * serves no other client.
 */
const pageOfIntersection = `${textsOf}
local prefix = redis.call('GET', KEYS[3]) or ARGV[1]
local offset, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local keys, others, shortest = {}, {}, prefix .. ARGV[4]
for i = 5, #ARGV do
  local list = prefix .. ARGV[i]
  if redis.call('ZCARD', list) < redis.call('ZCARD', shortest) then
    shortest, list = list, shortest
  end
  others[#others + 1] = list
end
local total = redis.call('ZINTERCARD', 1 + #others, shortest, unpack(others))
local last = offset < total and math.min(offset + limit, total) or 0
local seen, from = 0, 0
while seen < last do
  local some = redis.call('ZREVRANGE', shortest, from, from + 499)
  local isOut = {}
  for _, other in ipairs(others) do
    for i, score in ipairs(redis.call('ZMSCORE', other, unpack(some))) do
      if not score then isOut[i] = true end
    end
  end
  for i, key in ipairs(some) do
    if not isOut[i] and seen < last then
      seen = seen + 1
      if seen > offset then keys[#keys + 1] = key end
    end
  end
  from = from + 500
end
return { textsOf(keys), total, tonumber(redis.call('GET', KEYS[1]) or '0') }
`;

/** KEYS: lists. ARGV: prefix of the lists, then lists. */
const countLists = `
local prefix, counts = redis.call('GET', KEYS[1]) or ARGV[1], {}
for i = 2, #ARGV do counts[i - 1] = redis.call('ZCARD', prefix .. ARGV[i]) end
return counts
`;

/** KEYS: lists. ARGV: prefix of the lists, a list, a key. */
const rankInList = `
return redis.call('ZRANK', (redis.call('GET', KEYS[1]) or ARGV[1]) .. ARGV[2], ARGV[3])
`;

export const scripts = {
  writeViews: { lua: writeViews },
  readViews: { lua: readViews },
  pagesOfLists: { lua: pagesOfLists },
  pageOfIntersection: { lua: pageOfIntersection },
  countLists: { lua: countLists },
  rankInList: { lua: rankInList },
};

/** The scripts as the client's commands; the first argument is the number of keys. */
export type ScriptCommands = {
  writeViews(keyCount: number, ...keysAndArguments: (string | number)[]): Promise<number>;
  readViews(
    keyCount: number,
    ...keysAndArguments: string[]
  ): Promise<[checkpoint: string, views: (string | null)[]]>;
  pagesOfLists(
    keyCount: number,
    ...keysAndArguments: (string | number)[]
  ): Promise<[checkpoint: number, ...itemsAndTotals: (string | number)[]]>;
  pageOfIntersection(
    keyCount: number,
    ...keysAndArguments: (string | number)[]
  ): Promise<[items: string, total: number, checkpoint: number]>;
  countLists(keyCount: number, ...keysAndArguments: string[]): Promise<number[]>;
  rankInList(keyCount: number, ...keysAndArguments: string[]): Promise<number | null>;
};

/** The arguments of `writeViews`. */
export function writeArguments(projection: string, batch: Batch, isOverwrite = false) {
  const { after, upTo, writes, isPart = false } = batch;
  const mode = isOverwrite ? 'overwrite' : isPart ? 'part' : 'whole';
  const { checkpoint, views, sequences, places, lists, listPrefix } = keysOf(projection);
  const rest: (string | number)[] = [listPrefix, after, upTo, mode];
  for (const write of writes) rest.push(...partsOf(write));
  return { keys: [checkpoint, views, sequences, places, lists], rest };
}

function partsOf({ key, sequence, view, lists, order }: ViewWrite): (string | number)[] {
  if (view === null || lists.length === 0) return [key, sequence, view ?? '', ''];
  // A label may contain half a surrogate pair; its JSON escape would be unreadable for Redis.
  const names = lists.map((name) => name.toWellFormed());
  return [key, sequence, view, JSON.stringify({ order, lists: names })];
}
