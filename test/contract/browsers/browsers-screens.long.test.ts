import { describe } from 'vitest';
import { adapters } from '#test/support/browsers/browsers-adapters.ts';
import { browsersScreens } from '#test/support/browsers/browsers-screens-suite.ts';

const elsewhere = adapters.filter(({ adapter }) => adapter !== 'docker');
describe.each(elsewhere)('screens of browsers ($adapter)', browsersScreens);
