import { post, remove } from '../api/api-client.ts';

const pathOf = (id: string) => `/api/sessions/${encodeURIComponent(id)}`;

/** What a person does with a session; each asks first. */
export const ACTIONS = {
  extend: {
    verb: 'Extend',
    done: 'extended',
    hint: 'Each extension reserves 30 credits of the organization.',
    run: (id: string) => post(`${pathOf(id)}/extend`, { duration: '30m' }),
  },
  stop: {
    verb: 'Stop',
    done: 'stopped',
    hint: 'Its browser ends. This cannot be undone.',
    run: (id: string) => remove(pathOf(id)),
  },
} as const;
export type ActionName = keyof typeof ACTIONS;
