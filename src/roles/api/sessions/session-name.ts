import { randomInt } from 'node:crypto';

const ADJECTIVES = [
  'amber',
  'brisk',
  'calm',
  'deft',
  'eager',
  'fleet',
  'gentle',
  'hardy',
  'ivory',
  'jolly',
  'keen',
  'lucid',
  'mellow',
  'nimble',
  'patient',
  'quiet',
  'rapid',
  'silver',
  'steady',
  'vivid',
];
const NOUNS = [
  'badger',
  'comet',
  'delta',
  'ember',
  'falcon',
  'grove',
  'harbor',
  'island',
  'juniper',
  'kestrel',
  'lantern',
  'meadow',
  'otter',
  'pebble',
  'quartz',
  'river',
  'sparrow',
  'tundra',
  'valley',
  'willow',
];

/** A readable name for a session without one, like `quiet-otter-4821`. Not unique. */
export function generateName(): string {
  return `${pick(ADJECTIVES)}-${pick(NOUNS)}-${randomInt(1000, 10_000)}`;
}

function pick(words: readonly string[]): string {
  return words[randomInt(words.length)] ?? '';
}
