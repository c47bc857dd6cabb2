import { expect, test } from 'vitest';
import { mayDo, mayGrant } from '#src/kernel/domain/organization/roles.ts';

test.each([
  ['viewer', { read: true, control: false, administer: false }],
  ['member', { read: true, control: true, administer: false }],
  ['admin', { read: true, control: true, administer: true }],
  ['owner', { read: true, control: true, administer: true }],
] as const)('a %s may do %j and no more', (role, may) => {
  const { read, control, administer } = may;
  expect(mayDo(role, 'read')).toBe(read);
  expect(mayDo(role, 'control')).toBe(control);
  expect(mayDo(role, 'administer')).toBe(administer);
});

test.each([
  ['owner', ['owner', 'admin', 'member', 'viewer']],
  ['admin', ['admin', 'member', 'viewer']],
  ['member', []],
  ['viewer', []],
] as const)('a %s issues and revokes keys of %j and no other', (role, granted) => {
  const all = ['owner', 'admin', 'member', 'viewer'] as const;
  expect(all.filter((one) => mayGrant(role, one))).toEqual(granted);
});
